// Philox4x32-10 (Salmon et al., 2011): many blocks of the stream side by side. Which element takes which word is fixed
// by Note [Same numbers on every device] in kernel/attributes/random.h. By hand: Random123 has functions of one block;
// loops over many side by side become vector instructions.
#pragma once

#include "kernels/level.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

inline constexpr i64 kGroup = 64;          // blocks computed side by side
inline constexpr i64 kChunk = kGroup * 4;  // words in them

struct Words {
  alignas(64) u32 word[kChunk];  // word j of block b at 4 b + j
};

// Blocks first … first + kGroup - 1 of the stream.
inline void philox(u64 seed, u64 first, Words& out) {
  alignas(64) u32 a[kGroup], b[kGroup], c[kGroup], d[kGroup];
  for (i64 i = 0; i < kGroup; ++i) {
    const u64 counter = first + static_cast<u64>(i);
    a[i] = static_cast<u32>(counter);
    b[i] = static_cast<u32>(counter >> 32);
    c[i] = d[i] = 0;
  }
  u32 key0 = static_cast<u32>(seed), key1 = static_cast<u32>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (i64 i = 0; i < kGroup; ++i) {
      const u64 p = u64{0xD2511F53} * a[i];
      const u64 q = u64{0xCD9E8D57} * c[i];
      const u32 b0 = b[i], d0 = d[i];
      a[i] = static_cast<u32>(q >> 32) ^ b0 ^ key0;
      b[i] = static_cast<u32>(q);
      c[i] = static_cast<u32>(p >> 32) ^ d0 ^ key1;
      d[i] = static_cast<u32>(p);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (i64 i = 0; i < kGroup; ++i) {
    out.word[4 * i] = a[i];
    out.word[4 * i + 1] = b[i];
    out.word[4 * i + 2] = c[i];
    out.word[4 * i + 3] = d[i];
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
