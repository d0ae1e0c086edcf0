# How everything of Tenon is compiled: standard, warnings, sanitizers, output folders, compiler cache, optional CUDA.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

include(GNUInstallDirs)

# The build tree has the layout of the installed one, so that plugins are found by the same rule: LIB/tenon/plugins.
set(TENON_BIN_DIR ${PROJECT_BINARY_DIR}/bin)
set(TENON_LIB_DIR ${PROJECT_BINARY_DIR}/lib)
set(TENON_PLUGIN_DIR ${TENON_LIB_DIR}/tenon/plugins)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TENON_CCACHE ccache)
  if(TENON_CCACHE)  # it keeps nothing that uses a precompiled header unless it is told what may be ignored of one;
    # and what it has not seen yet need not be preprocessed for its sake: the compiler says what was included
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${TENON_CCACHE})
  endif()
endif()

# TENON_WITH_CUDA: whether plugins/cuda is built. "auto" asks for nvcc, as a sign that the whole toolkit is there, and new
# enough.
set(TENON_OLDEST_CUDA 12.0)
set(TENON_WITH_CUDA OFF)
if(NOT TENON_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "TENON_CUDA is '${TENON_CUDA}'; it must be auto, on or off")
elseif(TENON_CUDA STREQUAL "on")
  find_package(CUDAToolkit ${TENON_OLDEST_CUDA} REQUIRED)
  set(TENON_WITH_CUDA ON)
elseif(TENON_CUDA STREQUAL "auto")
  find_package(CUDAToolkit ${TENON_OLDEST_CUDA} QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    set(TENON_WITH_CUDA ON)
  endif()
endif()

# Warnings and sanitizers for one of our own targets.
function(tenon_configure_target target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers -Wno-unused-parameter>
    # g++ sees uninitialized members in a copied std::optional and overlaps in std::string's operator+ that are not there.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized -Wno-restrict>
    # __FILE__ in messages is relative to the tree: binaries name no path of the machine that built them.
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
    # Compiled together (below), files add up to a unit that g++ calls large and hardly inlines in: calls of allocators and
    # operators took 9 % longer (bench/results/speed_kept.md). With this it treats the unit as it does each of its files.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=large-unit-insns=1000000>)
  if(TENON_SANITIZE)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
    target_link_options(${target} PRIVATE -fsanitize=${TENON_SANITIZE})
  endif()
endfunction()

# What is not timed gains nothing by -O3, and takes a third less to compile without it.
function(tenon_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# With CMAKE_UNITY_BUILD (the preset `release`) the sources of one folder are compiled together, so that what they include
# is read once. The objects then are unity_LAYER-ROOM_cxx.cxx.o. FOLDER is where the layers lie.
function(tenon_join_rooms target folder)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  get_target_property(own_folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${own_folder} NORMALIZE)
    cmake_path(GET source PARENT_PATH room)
    cmake_path(RELATIVE_PATH room BASE_DIRECTORY ${folder})
    string(REPLACE "/" "-" room "${room}")
    set_property(SOURCE ${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP ${room})
  endforeach()
endfunction()

# tenon_compile_rooms_quickly(TARGET FOLDER rooms…): the sources of these rooms are compiled as tenon_compile_quickly() says, as
# objects of TARGET_cold. They are linked last: of a template that others compile as well, the linker takes theirs.
function(tenon_compile_rooms_quickly target folder)
  get_target_property(own_folder ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  set(hot ${sources})
  set(cold "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${own_folder} NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH room)
    cmake_path(RELATIVE_PATH room BASE_DIRECTORY ${folder})
    if(room IN_LIST ARGN)
      list(REMOVE_ITEM hot ${source})
      list(APPEND cold ${source})
    endif()
  endforeach()
  add_library(${target}_cold OBJECT ${cold})
  set_target_properties(${target}_cold PROPERTIES UNITY_BUILD_MODE GROUP)
  foreach(property COMPILE_DEFINITIONS COMPILE_FEATURES COMPILE_OPTIONS INCLUDE_DIRECTORIES LINK_LIBRARIES)
    set_property(TARGET ${target}_cold PROPERTY ${property} $<TARGET_PROPERTY:${target},${property}>)
  endforeach()
  tenon_compile_quickly(${target}_cold)
  set_target_properties(${target} PROPERTIES SOURCES "${hot};$<TARGET_OBJECTS:${target}_cold>")
endfunction()
