// The radix sort of CUB, once for all of this plugin: it takes long to compile.
#include "kernels/reduce/sort_pairs.h"

#include "driver.h"
#include "handles.h"

#include <cub/device/device_radix_sort.cuh>

namespace tenon::cuda {

Pairs make_pairs(KernelContext& context, std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count) * 8;
  return {static_cast<std::uint64_t*>(context.scratch(bytes)), static_cast<std::int64_t*>(context.scratch(bytes)),
          count};
}

Pairs sort_pairs(KernelContext& context, const Pairs& pairs, int bits) {
  if (pairs.count == 0) return pairs;
  const ContextGuard guard(static_cast<CudaDriver&>(context.driver()).context());
  const Pairs other = make_pairs(context, pairs.count);
  cub::DoubleBuffer<std::uint64_t> keys(pairs.keys, other.keys);
  cub::DoubleBuffer<std::int64_t> values(pairs.values, other.values);
  void* workspace = nullptr;
  std::size_t bytes = 0;
  const auto sort = [&] {
    check(
        cub::DeviceRadixSort::SortPairs(workspace, bytes, keys, values, pairs.count, 0, bits, native(context.stream())),
        "cub::DeviceRadixSort::SortPairs");
  };
  sort();  // says how much it needs
  workspace = context.scratch(bytes);
  sort();
  return {keys.Current(), values.Current(), pairs.count};
}

}  // namespace tenon::cuda
