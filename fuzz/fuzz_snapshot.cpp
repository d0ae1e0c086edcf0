// Fuzzes the reader of snapshot files.
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  return fuzz::run(data, size, [](replay::InputFile& input) { replay::read_snapshot(input, {.with_stacks = true}); });
}
