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

/// Puts the fault into the body that begins at `begin` and ends before `end`.
void put_into(std::string& text, std::size_t begin, std::size_t end, const Fault& fault) {
  std::size_t at = begin;
  for (int n = 0; n < fault.nth; ++n) {
    at = text.find(fault.line, n == 0 ? at : at + 1);
    if (at == std::string::npos || at >= end)
      misuse("kernel " + fault.kernel + " has no line " + std::to_string(fault.nth) + " with '" + fault.line + "'");
  }
  if (!fault.becomes.empty()) {
    text.replace(at, fault.line.size(), fault.becomes);
    return;
  }
  const std::size_t first = text.rfind('\n', at) + 1;
  text.erase(first, text.find('\n', at) - first);
}

}  // namespace

std::string text_of_fat_binary(const void* wrapper, int compute_capability) {
  Wrapper outer;
  std::memcpy(&outer, wrapper, sizeof outer);
  if (outer.magic != kWrapperMagic || at<std::uint32_t>(outer.data, 0) != kMagic) misuse("this is not a fat binary");
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

std::string with_faults(std::string text, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    for (std::size_t entry = text.find(".entry "); entry != std::string::npos;
         entry = text.find(".entry ", entry + 1)) {
      const std::string name = text.substr(entry, text.find('(', entry) - entry);
      const std::size_t body = text.find("\n{", entry);
      if (name.find(fault.kernel) != std::string::npos) put_into(text, body, text.find("\n}", body), fault);
    }
  }
  return text;
}

}  // namespace tenon::emulated_cuda::ptx
