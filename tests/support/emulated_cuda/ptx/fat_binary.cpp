// Fat binaries: a header, then entries. NVIDIA documents none of it; this is what nvcc 12 and 13 write.
#include "support/emulated_cuda/ptx/fat_binary.h"

#include "support/emulated_cuda/misuse.h"

#include <cstdint>
#include <cstring>

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

}  // namespace

std::string text_of_fat_binary(const void* wrapper) {
  Wrapper outer;
  std::memcpy(&outer, wrapper, sizeof outer);
  if (outer.magic != kWrapperMagic || at<std::uint32_t>(outer.data, 0) != kMagic) misuse("this is not a fat binary");
  const unsigned char* entry = outer.data + at<std::uint16_t>(outer.data, 6);
  const unsigned char* end = entry + at<std::uint64_t>(outer.data, 8);
  while (entry < end) {
    const auto kind = at<std::uint16_t>(entry, 0);
    const auto header = at<std::uint32_t>(entry, 4);
    const auto size = at<std::uint64_t>(entry, 8);
    if (kind == kPtx) {
      const auto* text = reinterpret_cast<const char*>(entry + header);
      const std::string found(text, strnlen(text, size));
      if (found.find(".version") == std::string::npos) misuse("the PTX is compressed: compile with nvcc --no-compress");
      return found;
    }
    entry += header + size;
  }
  misuse("there is no PTX in the fat binary: compile for a virtual architecture (-gencode arch=…,code=compute_75)");
}

}  // namespace tenon::emulated_cuda::ptx
