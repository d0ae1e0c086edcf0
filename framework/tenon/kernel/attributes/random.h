// Attributes of sequences and random numbers.
#pragma once

#include <tenon/kernel/attributes/replay.h>
#include <tenon/kernel/attributes/scalar.h>

#include <cstdint>
#include <limits>

namespace tenon {

/// arange: out[i] = start + i * step. linspace: the same, and the last element is exactly `end`, the second half
/// computed from the end as in PyTorch.
struct SequenceAttributes {
  ScalarValue start;
  ScalarValue step;
  ScalarValue end;
};

/// Note [Same numbers on every device]: element i of a contiguous output takes the Philox4x32-10 block with key = seed
/// (low, high) and counter = (offset + i / 4) as 128 bits (low two words; high two words zero); its word is i % 4.
///   uniform     no more than `most`, which is below b, whatever is rounded;
///               float32/16: a + (b - a) * (word >> 8) * 2^-24;
///               float64: two words: block (offset + i / 2), words 2 * (i % 2) (low) and the next (high), 53 bits.
///   normal      Box-Muller on pairs: elements 2j and 2j + 1 of the block share u1, u2 (the words 2j and 2j + 1 as
///               (word + 1) * 2^-32 in double for u1, word * 2^-32 for u2); even: cos, odd: sin. mean a, deviation b.
///   bernoulli   word * 2^-32 < p; p is `a`, or inputs[0] (same sizes as the output) where that is defined.
///   exponential -log((word + 1) * 2^-32) / a, rate a; the last word, which would make 0, counts as the one before.
///   randint     low + (64 bits made from two words as for float64) % (high - low); high > low.
///   randperm    Fisher-Yates from the end with randint draws: for i = n - 1 … 1: j = draw(n - 1 - i) % (i + 1), swap.
/// A kernel writes any floating dtype (randint, randperm, bernoulli: any dtype); the output is contiguous.
/// The framework advances offset by the number of elements.
struct RandomAttributes {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  double a = 0;
  double b = 1;
  std::int64_t low = 0;
  std::int64_t high = 1;
  const ReplayCounters* replay = nullptr;                 ///< adds to seed and offset; null: nothing does
  double most = std::numeric_limits<double>::infinity();  ///< a number of the output's dtype
};

}  // namespace tenon
