# What the readers are made of, relative to framework/tenon. The fuzz targets compile these themselves, instrumented; the
# test of the corpus links nothing else of Tenon, so that it fails to link where one is missing here.
set(TENON_READER_SOURCES
  core/error.cpp
  core/options.cpp
  core/units.cpp
  replay/formats/binary_reader.cpp
  replay/formats/pytorch/chrome_reader.cpp
  replay/formats/csv_reader.cpp
  replay/formats/input_file.cpp
  replay/formats/pytorch/pickle.cpp
  replay/formats/pytorch/pickle_builder.cpp
  replay/formats/pytorch/pickle_machine.cpp
  replay/formats/readers.cpp
  replay/trace/recorded_lines.cpp
  replay/formats/pytorch/snapshot_file.cpp
  replay/formats/pytorch/snapshot_reader.cpp
  replay/formats/text_reader.cpp
  replay/trace/trace_builder.cpp
  replay/formats/utf8.cpp
  runtime/config/config_value.cpp
  runtime/config/toml_reader.cpp
)
set(TENON_FUZZED_FORMATS binary chrome gz minimalloc rmm snapshot text toml)
