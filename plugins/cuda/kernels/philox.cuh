// Philox4x32-10 (Salmon et al., 2011). Which element takes which word is fixed by Note [Same numbers on
// every device] in kernel/attributes/random.h.
#pragma once

#include <tenon/core/half.h>
#include <tenon/kernel/attributes/replay.h>

#include <cstdint>

namespace tenon::cuda {

/// Where a kernel draws from: what its attributes say, and what a replayed graph adds to it.
struct PhiloxStream {
  std::uint64_t seed, offset;
  const ReplayCounters* replay;

  template <class Attributes>
  static PhiloxStream of(const Attributes& attributes) {
    return {attributes.seed, attributes.offset, attributes.replay};
  }
  __device__ std::uint64_t key() const { return seed + (replay != nullptr ? replay->seed : 0); }
  __device__ std::uint64_t first_block() const { return offset + (replay != nullptr ? replay->offset : 0); }
};

struct PhiloxBlock {
  std::uint32_t word[4];
  /// Words 2 * half and the next as 64 bits, the first one low.
  TENON_HOST_DEVICE std::uint64_t pair(int half) const {
    return std::uint64_t{word[2 * half + 1]} << 32 | word[2 * half];
  }
};

TENON_HOST_DEVICE inline PhiloxBlock philox(std::uint64_t seed, std::uint64_t block) {
  auto a = static_cast<std::uint32_t>(block), b = static_cast<std::uint32_t>(block >> 32);
  std::uint32_t c = 0, d = 0;
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53} * a, q = std::uint64_t{0xCD9E8D57} * c;
    a = static_cast<std::uint32_t>(q >> 32) ^ b ^ key0;
    b = static_cast<std::uint32_t>(q);
    c = static_cast<std::uint32_t>(p >> 32) ^ d ^ key1;
    d = static_cast<std::uint32_t>(p);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

/// Words of single elements in growing order: a block is computed once for its four.
class PhiloxReader {
 public:
  __device__ explicit PhiloxReader(const PhiloxStream& stream) : seed_(stream.key()), first_(stream.first_block()) {}
  __device__ std::uint32_t word(std::int64_t element) {
    if (element / 4 != held_) {
      held_ = element / 4;
      block_ = philox(seed_, first_ + static_cast<std::uint64_t>(held_));
    }
    const auto at = static_cast<int>(element % 4);  // chosen without an array in local memory
    return at < 2 ? (at == 0 ? block_.word[0] : block_.word[1]) : (at == 2 ? block_.word[2] : block_.word[3]);
  }

 private:
  std::uint64_t seed_, first_;
  std::int64_t held_ = -1;
  PhiloxBlock block_;
};

}  // namespace tenon::cuda
