// Fuzzes the reader of one format of histories, TENON_FUZZED_FORMAT.
#include <tenon/replay/formats/readers.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

/// Bytes in, a history or a refusal out, nothing else.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::replay;
  static const Format* const format = find_format(TENON_FUZZED_FORMAT);
  if (format == nullptr || format->read == nullptr) std::abort();
  std::vector<std::uint8_t> bytes(data, data + size);
  if (format->mend != nullptr) format->mend(bytes);
  try {
    InputFile input("input", bytes);
    format->read(input, {.with_stacks = true, .with_columns = true});
  } catch (const TraceError&) {
  }
  return 0;
}
