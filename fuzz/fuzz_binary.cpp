// Fuzzes the reader of binary files. Checksums are put right first, or nothing behind them would be reached.
#include "fuzz_target.h"

#include <zlib.h>

#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kHead = 9;

void mend_checksums(std::vector<std::uint8_t>& bytes) {
  std::size_t at = kHead;
  while (at + 8 <= bytes.size()) {
    std::uint32_t count = 0;
    std::memcpy(&count, &bytes[at], 4);
    if (count > bytes.size() - at - 8) return;
    const auto sum = static_cast<std::uint32_t>(::crc32(0, &bytes[at] + 8, count));
    std::memcpy(&bytes[at + 4], &sum, 4);
    at += 8 + count;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  std::vector<std::uint8_t> bytes(data, data + size);
  if (bytes.size() >= kHead) {
    std::memcpy(bytes.data(), "TENONTRC\x01", kHead);
    mend_checksums(bytes);
  }
  return fuzz::run(bytes.data(), bytes.size(),
                   [](replay::InputFile& input) { replay::read_binary(input, {.with_stacks = true}); });
}
