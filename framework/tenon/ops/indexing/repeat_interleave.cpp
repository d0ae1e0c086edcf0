// Repeating is selecting: position i stands repeats[i] times among those selected.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/indexing/repeat_interleave.h>
#include <tenon/ops/indexing/search.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

Tensor repeat_interleave(const Tensor& repeats, std::optional<std::int64_t> output_size) {
  TENON_SCOPE(repeat_interleave, repeats, output_size)
  NoGradGuard no_grad;
  if (repeats.dim() != 1) throw Error("repeat_interleave only accept 1D vector as repeat");
  if (repeats.scalar_type() != kInt64 && repeats.scalar_type() != kInt32)
    throw Error("repeats has to be Long or Int tensor");
  if (repeats.numel() == 0) return empty({0}, repeats.options());
  if (!output_size)
    check_has_values("repeat_interleave", repeats, "the size of its output (unless output_size is given)");
  const bool known = has_values(repeats);
  if (known && repeats.min().item<std::int64_t>() < 0) throw Error("repeats can not be negative");
  const Tensor ends = repeats.to(kInt64).cumsum(0);
  const std::int64_t total = known ? ends.select(0, -1).item<std::int64_t>() : *output_size;
  if (output_size && *output_size != total) {
    throw Error(fmt::format("allocated size does not match required size: output_size is {}, the repeats sum up to {}",
                            *output_size, total));
  }
  return searchsorted(ends, arange(total, ends.options()), false, true).to(repeats.scalar_type());
}

Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<std::int64_t> dim,
                                 std::optional<std::int64_t> output_size) const {
  TENON_SCOPE(repeat_interleave, *this, repeats, dim, output_size)
  const Tensor source = dim ? *this : flatten();
  const int at = wrap_dim(dim.value_or(0), source.impl().rank(), false);
  const std::int64_t length = source.size(at);
  Tensor times = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.size(0) == 1)) {
    times = repeats.reshape({1}).expand({length});
  } else if (repeats.dim() != 1) {
    throw Error("repeats must be 0-dim or 1-dim tensor");
  } else if (repeats.size(0) != length) {
    throw Error(
        fmt::format("repeats must have the same size as input along dim, but got repeats.size(0) = {} and "
                    "input.size({}) = {}",
                    repeats.size(0), at, length));
  }
  return source.index_select(at, tenon::repeat_interleave(times, output_size));
}

}  // namespace tenon
