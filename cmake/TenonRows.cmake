# Lists that the build and the program share: what a name in a CMake list stands for is found by a table in C++, so that
# the name is written once.

# Generated headers, for the INCLUDE_DIRECTORIES of the sources that include them.
set(TENON_ROWS_DIR ${PROJECT_BINARY_DIR}/rows)

# tenon_write_rows(LIST NAMES…): writes LIST.inc, one line ROW(name) for each name in the given order. Who includes it
# defines ROW. The file is only touched when the list changes.
function(tenon_write_rows list)
  list(TRANSFORM ARGN REPLACE "(.+)" "ROW(\\1)" OUTPUT_VARIABLE rows)
  list(JOIN rows "\n" rows)
  file(CONFIGURE OUTPUT ${TENON_ROWS_DIR}/${list}.inc CONTENT "${rows}\n" @ONLY)
endfunction()
