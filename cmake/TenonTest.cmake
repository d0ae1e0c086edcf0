# tenon_add_test(NAME sources…): one GoogleTest program, its cases registered one by one with CTest.
find_package(GTest REQUIRED)
include(GoogleTest)

function(tenon_add_test name)
  add_executable(${name} ${ARGN})
  tenon_configure_target(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE Tenon::tenon GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    TENON_BINARY_DIR="${PROJECT_BINARY_DIR}"
    TENON_PROGRAM="${TENON_BIN_DIR}/tenon"
    TENON_PLUGIN_DIR="${TENON_PLUGIN_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
endfunction()
