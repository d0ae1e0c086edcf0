# What the readers are made of, relative to framework/tenon. The fuzz targets compile these themselves, instrumented; the
# test of the corpus links nothing else of Tenon, so that it fails to link where one is missing here.
set(TENON_READER_SOURCES
  core/error.cpp
  core/options.cpp
  core/units.cpp
  replay/binary_reader.cpp
  replay/chrome_reader.cpp
  replay/csv_reader.cpp
  replay/input_file.cpp
  replay/pickle.cpp
  replay/pickle_builder.cpp
  replay/pickle_machine.cpp
  replay/readers.cpp
  replay/recorded_lines.cpp
  replay/snapshot_file.cpp
  replay/snapshot_reader.cpp
  replay/text_reader.cpp
  replay/trace_builder.cpp
  replay/utf8.cpp
  runtime/config_value.cpp
  runtime/toml_reader.cpp
)
set(TENON_FUZZED_FORMATS binary chrome gz minimalloc rmm snapshot text toml)
