# The file formats of memory histories, in the order of help and messages. A format is a line here: its name and its
# sources, of which one defines `const Format& NAME_format()` (see format.h). One that is read has its fuzz target and its
# corpus test by that; the folder fuzz/corpus/NAME holds its inputs.
set(TENON_FORMATS)
set(TENON_FORMAT_SOURCES)
macro(tenon_format name)
  list(APPEND TENON_FORMATS ${name})
  list(APPEND TENON_FORMAT_SOURCES ${ARGN})
endmacro()

tenon_format(text       tenon/text_format.cpp tenon/text_reader.cpp tenon/text_writer.cpp)
tenon_format(binary     tenon/binary_format.cpp tenon/binary_reader.cpp tenon/binary_writer.cpp)
tenon_format(snapshot   pytorch/snapshot_format.cpp pytorch/snapshot_file.cpp pytorch/snapshot_fields.cpp
                        pytorch/snapshot_events.cpp pytorch/snapshot_settings.cpp pytorch/snapshot_stacks.cpp
                        pytorch/snapshot_reader.cpp pytorch/snapshot_beginning.cpp pytorch/snapshot_writer.cpp
                        pytorch/pickle/pickle.cpp pytorch/pickle/pickle_builder.cpp pytorch/pickle/pickle_machine.cpp)
tenon_format(chrome     pytorch/chrome_format.cpp pytorch/profiler_events.cpp pytorch/chrome_reader.cpp pytorch/chrome_writer.cpp)
tenon_format(folded     folded_format.cpp)
tenon_format(rmm        rmm_format.cpp io/csv_table.cpp)
tenon_format(minimalloc minimalloc_format.cpp minimalloc_problem.cpp)
tenon_format(mtrace     mtrace_format.cpp)

# What they stand on, relative to framework/tenon: with their sources this is all that a fuzz target links.
set(TENON_FORMAT_SUPPORT
  core/files/atomic_file.cpp
  core/error.cpp
  core/files/nearest_file.cpp
  core/files/write_all.cpp
  core/options.cpp
  core/process/standard_output.cpp
  core/units.cpp
  memory/call_stacks.cpp
  memory/history/text_lines.cpp
  memory/packing/problem.cpp
  memory/purpose.cpp
  memory/snapshot.cpp
  replay/formats/foreign_file.cpp
  replay/formats/format.cpp
  replay/formats/image/image_memory.cpp
  replay/formats/io/input_file.cpp
  replay/formats/io/output_file.cpp
  replay/formats/readers.cpp
  replay/formats/io/utf8.cpp
  replay/trace/long_work.cpp
  replay/trace/recorded_lines.cpp
  replay/trace/trace_builder.cpp
)
tenon_write_rows(history_formats ${TENON_FORMATS})
