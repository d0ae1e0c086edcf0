// Fat binaries: a header, then entries. NVIDIA documents none of it; this is what nvcc 12 and 13 write.
#include "support/emulated_cuda/ptx/fat_binary.h"

#include "support/emulated_cuda/misuse.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint16_t kPtx = 1;

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const unsigned char* data;
  const void* unused;
};

template <class T>
T at(const unsigned char* data, std::size_t offset) {
  T value;
  std::memcpy(&value, data + offset, sizeof value);
  return value;
}

/// 75 of ".target sm_75".
int target_of(std::string_view text) {
  constexpr std::string_view kTarget = ".target sm_";
  const std::size_t found = text.find(kTarget);
  if (found == std::string_view::npos) misuse("the PTX is compressed: compile with nvcc --no-compress");
  return std::atoi(text.data() + found + kTarget.size());
}

}  // namespace

std::string text_of_fat_binary(const void* wrapper, int compute_capability) {
  Wrapper outer;
  std::memcpy(&outer, wrapper, sizeof outer);
  if (outer.magic != kWrapperMagic || at<std::uint32_t>(outer.data, 0) != kMagic) misuse("this is no fat binary");
  const unsigned char* entry = outer.data + at<std::uint16_t>(outer.data, 6);
  const unsigned char* end = entry + at<std::uint64_t>(outer.data, 8);
  std::string best;
  int best_target = 0;
  while (entry < end) {
    const auto kind = at<std::uint16_t>(entry, 0);
    const auto header = at<std::uint32_t>(entry, 4);
    const auto size = at<std::uint64_t>(entry, 8);
    if (kind == kPtx) {
      const auto* begin = reinterpret_cast<const char*>(entry + header);
      const std::string_view text(begin, strnlen(begin, size));
      const int target = target_of(text);
      if (target <= compute_capability && target > best_target) best = text, best_target = target;
    }
    entry += header + size;
  }
  if (best_target == 0) {
    misuse("there is no PTX for compute capability " + std::to_string(compute_capability) +
           " in the fat binary: compile for a virtual architecture (-gencode arch=…,code=compute_75)");
  }
  return best;
}

}  // namespace tenon::emulated_cuda::ptx
