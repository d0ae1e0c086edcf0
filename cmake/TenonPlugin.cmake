# tenon_add_plugin, tenon_add_allocator: the same calls inside this tree and in a project that found the Tenon package.

# tenon_add_plugin(NAME sources…): the target tenon_plugin_NAME, which makes NAME.so: a loadable module that links
# Tenon::plugin. Undefined symbols are link errors. Inside this tree it lands in lib/tenon/plugins and is installed;
# elsewhere in the caller's binary folder, from where a TOML file or `--allocator PATH` selects it.
function(tenon_add_plugin name)
  add_library(tenon_plugin_${name} MODULE ${ARGN})
  set_target_properties(tenon_plugin_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_features(tenon_plugin_${name} PRIVATE cxx_std_20)
  target_link_libraries(tenon_plugin_${name} PRIVATE Tenon::plugin)
  if(NOT (TENON_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang"))  # its sanitizer runtime is in the program only
    target_link_options(tenon_plugin_${name} PRIVATE -Wl,-z,defs)
  endif()
  cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH tenon_root)
  if(PROJECT_SOURCE_DIR STREQUAL tenon_root)  # one of ours
    tenon_configure_target(tenon_plugin_${name})
    set_target_properties(tenon_plugin_${name} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${TENON_PLUGIN_DIR}
      INSTALL_RPATH "$ORIGIN/../..")
    set_property(GLOBAL APPEND PROPERTY TENON_PLUGIN_TARGETS tenon_plugin_${name})
  endif()
endfunction()

# tenon_add_allocator(NAME sources…): a plugin that supplies allocators. It sees core, memory and plugin only.
function(tenon_add_allocator name)
  tenon_add_plugin(${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY TENON_ALLOCATOR_TARGETS tenon_plugin_${name})
endfunction()
