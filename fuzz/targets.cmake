# What is fuzzed and what it is made of. Histories: each format that is read, as the corpus has a folder for it; further
# targets have a source fuzz_NAME.cpp and a folder of their own.
include(${PROJECT_SOURCE_DIR}/framework/tenon/replay/formats/formats.cmake)
set(TENON_FUZZED_FORMATS)
foreach(format ${TENON_FORMATS})
  if(IS_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/corpus/${format})
    list(APPEND TENON_FUZZED_FORMATS ${format})
  endif()
endforeach()
set(TENON_FURTHER_FUZZ_TARGETS gz plan toml)

# Relative to framework/tenon. The fuzz targets compile these themselves, instrumented; the test of the corpus links
# nothing else of Tenon, so that it fails to link where one is missing here.
list(TRANSFORM TENON_FORMAT_SOURCES PREPEND replay/formats/ OUTPUT_VARIABLE TENON_FUZZED_SOURCES)
list(APPEND TENON_FUZZED_SOURCES ${TENON_FORMAT_SUPPORT}
  core/text/utf8.cpp
  memory/packing/plan_file.cpp
  runtime/config/config_value.cpp
  runtime/config/toml_reader.cpp
)
