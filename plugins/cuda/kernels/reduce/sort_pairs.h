// sort_pairs: the one sort of the device, of numbers that stand for whatever is to be ordered.
#pragma once

#include <tenon/kernel/kernel.h>

#include <cstdint>

namespace tenon::cuda {

/// Pairs in scratch memory, which a sort may swap with others.
struct Pairs {
  std::uint64_t* keys = nullptr;
  std::int64_t* values = nullptr;
  std::int64_t count = 0;
};
Pairs make_pairs(KernelContext& context, std::int64_t count);

/// In ascending order of the lowest `bits` of the keys; equal keys keep their order. What `pairs` was is used up.
Pairs sort_pairs(KernelContext& context, const Pairs& pairs, int bits);

}  // namespace tenon::cuda
