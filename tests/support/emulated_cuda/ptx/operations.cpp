// The table of operations, made once.
#include "support/emulated_cuda/ptx/operations.h"

#include "support/emulated_cuda/ptx/operation_table.h"

#include <algorithm>

namespace tenon::emulated_cuda::ptx {

namespace {

Table make_table() {
  Table table;
  add_integer_operations(table);
  add_bit_operations(table);
  add_float_operations(table);
  add_half_operations(table);
  add_comparisons(table);
  add_conversions(table);
  return table;
}

const Table& the_table() {
  static const Table table = make_table();
  return table;
}

}  // namespace

Operation find_operation(std::string_view opcode) {
  const auto found = the_table().find(std::string(opcode));
  return found == the_table().end() ? Operation{} : found->second;
}

std::vector<std::string> known_opcodes() {
  std::vector<std::string> names;
  for (const auto& [name, operation] : the_table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tenon::emulated_cuda::ptx
