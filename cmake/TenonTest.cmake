# tenon_add_test, tenon_add_script_test: GoogleTest programs and bash scripts, each labelled with its folder under tests/.
find_package(GTest REQUIRED)
include(GoogleTest)

# GoogleTest's headers are a second of each test file, and those of nlohmann/json two of each that reads what the program
# writes, so they are compiled once for each level of optimization. They alone: a header of ours in there would compile every
# test anew when it changes. They belong to a program, since a library is compiled with -fPIC.
find_package(nlohmann_json REQUIRED)

# What is tested has -O3. A test has -O0, which takes half as long to compile as -O1, where its time goes into what it tests;
# these have loops of their own.
set(TENON_TESTS_WITH_LOOPS allocators architecture conformance)

# The folder directly under tests/: the label of a test, and tests_LABEL is the target that builds what the label needs.
function(tenon_test_label out)
  file(RELATIVE_PATH label ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" label "${label}")
  if(NOT TARGET tests_${label})
    add_custom_target(tests_${label} DEPENDS tenon_all_plugins tenon_program)
  endif()
  set(${out} ${label} PARENT_SCOPE)
endfunction()

function(tenon_test_optimization out)
  tenon_test_label(label)
  if(label IN_LIST TENON_TESTS_WITH_LOOPS)
    set(${out} O1 PARENT_SCOPE)
  else()
    set(${out} O0 PARENT_SCOPE)
  endif()
endfunction()

function(tenon_configure_test_at target optimization)
  tenon_configure_target(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # g++ collects its garbage from half a gigabyte on: of what ten tests together need, an eighth of the time.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-${optimization}>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
  target_compile_definitions(${target} PRIVATE
    TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    TENON_BINARY_DIR="${PROJECT_BINARY_DIR}"
    TENON_PROGRAM="${TENON_BIN_DIR}/tenon"
    TENON_PLUGIN_DIR="${TENON_PLUGIN_DIR}")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

# What every C++ file of the tests is compiled with.
function(tenon_configure_test target)
  tenon_test_optimization(optimization)
  tenon_configure_test_at(${target} ${optimization})
endfunction()

foreach(optimization O0 O1)
  foreach(headers tenon_test_headers_${optimization} tenon_test_json_headers_${optimization})
    add_executable(${headers} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/support/precompiled.cpp)
    target_precompile_headers(${headers} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    tenon_configure_test_at(${headers} ${optimization})
    target_link_libraries(${headers} PRIVATE GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)
  endforeach()
  target_precompile_headers(tenon_test_json_headers_${optimization} PRIVATE <nlohmann/json.hpp>)
endforeach()

# Gives a test, which tenon_configure_test() has seen, the compiled headers; with JSON those of nlohmann/json as well.
function(tenon_use_test_headers target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "JSON" "" "")
  tenon_test_optimization(optimization)
  if(arg_JSON)
    target_precompile_headers(${target} REUSE_FROM tenon_test_json_headers_${optimization})
  else()
    target_precompile_headers(${target} REUSE_FROM tenon_test_headers_${optimization})
  endif()
endfunction()

add_library(tenon_test_json OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/support/json.cpp)
tenon_configure_test_at(tenon_test_json O1)
target_link_libraries(tenon_test_json PUBLIC nlohmann_json::nlohmann_json)

# tenon_add_test(NAME [JSON] [PREFIX text] [FILTER cases] [LOCK name] sources…): one GoogleTest program, its cases
# registered one by one with CTest. JSON: most of its sources include "support/json.h". PREFIX: before the names of its
# cases, where another program has the same. FILTER: only these, as --gtest_filter. LOCK: what all processes share; cases
# with one lock run one by one.
function(tenon_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "JSON" "PREFIX;FILTER;LOCK" "")
  tenon_test_label(label)
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  tenon_configure_test(${name})
  target_link_libraries(${name} PRIVATE Tenon::tenon GTest::gtest GTest::gmock GTest::gtest_main)
  set(json)
  if(arg_JSON)
    target_link_libraries(${name} PRIVATE tenon_test_json)
    set(json JSON)
  endif()
  tenon_use_test_headers(${name} ${json})
  add_dependencies(tests_${label} ${name})
  set(timeout 300)
  if(TENON_SANITIZE)  # the slowest of the kit's cases takes seventy times as long, beside other builds
    set(timeout 1800)
  endif()
  set(lock)
  if(arg_LOCK)
    set(lock RESOURCE_LOCK ${arg_LOCK})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${arg_PREFIX}" TEST_FILTER "${arg_FILTER}"
    PROPERTIES TIMEOUT ${timeout} LABELS ${label} ${lock})
endfunction()

# tenon_add_script_test(NAME SCRIPT arguments…): a bash script; exit code 77 means skipped, and its last line says why.
# The environment tells it where things are: TENON_SOURCE_DIR, TENON_BINARY_DIR, TENON_PROGRAM.
function(tenon_add_script_test name script)
  tenon_test_label(label)
  list(JOIN CMAKE_CXX_COMPILER_LAUNCHER " " launcher)
  add_test(NAME ${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
  # COST: the first to begin, since at the end one that takes half a minute would run alone.
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77 LABELS ${label} COST 30
    ENVIRONMENT "TENON_SOURCE_DIR=${PROJECT_SOURCE_DIR};TENON_BINARY_DIR=${PROJECT_BINARY_DIR};TENON_PROGRAM=${TENON_BIN_DIR}/tenon;CMAKE_COMMAND=${CMAKE_COMMAND};CXX=${CMAKE_CXX_COMPILER};CXX_LAUNCHER=${launcher}")
endfunction()
