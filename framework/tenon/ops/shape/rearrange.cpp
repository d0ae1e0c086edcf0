// Elements turned, moved or repeated along dims, into copies. Semantics are those of PyTorch's functions of the same
// names. Declared in rearrange.h and tensor.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/rearrange.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

using namespace ops;

Tensor Tensor::flip(IntArrayRef dims) const {
  TENON_SCOPE(flip, *this, dims)
  if (!dims.empty()) dim_mask(dims, impl().rank());  // throws where a dimension is named twice
  if (dims.empty() || numel() == 0 || impl().rank() == 0) return clone();
  const std::vector<std::int64_t> turned = dims.vec();
  Recording recording = record<0>("FlipBackward0", {this}, [turned](Backward& b) { b.set(0, b.grad().flip(turned)); });
  Tensor result;
  {
    NoGradGuard no_grad;
    result = *this;
    for (const std::int64_t dim : dims) {
      const int at = wrap_dim(dim, impl().rank());
      const std::int64_t length = size(at);
      const Tensor backwards = arange(length - 1, -1, -1, TensorOptions(kInt64).device(device()));
      result = result.index_select(at, backwards);
    }
    if (!is_contiguous()) {
      const Tensor kept = allocate_preserving(*this, scalar_type());
      if (!kept.is_contiguous()) {
        run(TENON_OP("copy"), ops::state_of(kept), {view_of(kept)}, {view_of(result)});
        result = kept;
      }
    }
  }
  recording.output(result);
  return result;
}
Tensor Tensor::fliplr() const {
  TENON_SCOPE(fliplr, *this)
  if (dim() < 2) throw Error("Input must be >= 2-d.");
  return flip(1);
}
Tensor Tensor::flipud() const {
  TENON_SCOPE(flipud, *this)
  if (dim() < 1) throw Error("Input must be >= 1-d.");
  return flip(0);
}

Tensor Tensor::rot90(std::int64_t k, IntArrayRef dims) const {
  TENON_SCOPE(rot90, *this, k, dims)
  if (dims.size() != 2) throw Error(fmt::format("expected total rotation dims == 2, but got dims = {}", dims.size()));
  if (dim() < 2) throw Error(fmt::format("expected total dims >= 2, but got total dims = {}", dim()));
  const int a = wrap_dim(dims[0], impl().rank());
  const int b = wrap_dim(dims[1], impl().rank());
  if (a == b) {
    throw Error(
        fmt::format("expected rotation dims to be different, but got dim0 = {} and dim1 = {}", dims[0], dims[1]));
  }
  switch ((k % 4 + 4) % 4) {
    case 1:
      return flip(b).transpose_(a, b);
    case 2:
      return flip({a, b});
    case 3:
      return flip(a).transpose_(a, b);
    default:
      return clone(MemoryFormat::Contiguous);
  }
}

Tensor Tensor::roll(IntArrayRef shifts, IntArrayRef dims) const {
  TENON_SCOPE(roll, *this, shifts, dims)
  if (dims.empty()) {
    if (shifts.size() != 1) throw Error("`shifts` must have one element when no dims are given");
    return ops::as_owned(flatten().roll(shifts, {0}).view(sizes()));
  }
  if (dims.size() != shifts.size()) {
    throw Error("shifts and dimensions must align. shifts: " + std::to_string(shifts.size()) +
                ", dims:" + std::to_string(dims.size()));
  }
  Tensor result = *this;
  MemoryFormat format = suggest_memory_format();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int at = wrap_dim(dims[i], impl().rank());
    const std::int64_t length = size(at);
    if (length == 0) continue;
    const std::int64_t start = ((length - shifts[i]) % length + length) % length;
    if (start == 0) format = MemoryFormat::Contiguous;  // as libtorch has it, which joins the whole and nothing
    result = cat({result.slice(at, start, length), result.slice(at, 0, start)}, at);
  }
  return result.is_same(*this) ? clone() : result.contiguous(format);
}

Tensor Tensor::repeat(IntArrayRef repeats) const {
  TENON_SCOPE(repeat, *this, repeats)
  const int rank = static_cast<int>(repeats.size());
  if (rank < impl().rank()) {
    throw Error("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor (" +
                std::to_string(rank) + " < " + std::to_string(impl().rank()) + ")");
  }
  // [r0, s0, r1, s1, …]: expanded in the r dimensions, then flattened.
  Tensor expanded = *this;
  while (expanded.impl().rank() < rank) expanded = expanded.unsqueeze(0);
  const Dims sizes = expanded.impl().sizes();
  Dims flat;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t times = repeats[static_cast<std::size_t>(i)];
    flat.push_back(size_product(times, sizes[i], sizes));
  }
  check_sizes(flat);
  dense_bytes(flat, scalar_type());
  if (2 * rank > kMaxRank) {
    for (int i = 0; i < rank; ++i) {
      std::vector<Tensor> copies(static_cast<std::size_t>(repeats[static_cast<std::size_t>(i)]), expanded);
      expanded = copies.empty() ? expanded.narrow(i, 0, 0) : cat(copies, i);
    }
    return expanded;
  }
  Dims wide;
  for (int i = 0; i < rank; ++i) {
    expanded = expanded.unsqueeze(2 * i);
    wide.push_back(repeats[static_cast<std::size_t>(i)]);
    wide.push_back(sizes[i]);
  }
  return as_owned(expanded.expand(wide).clone(MemoryFormat::Contiguous).view(flat));
}
Tensor Tensor::tile(IntArrayRef repeats) const {
  TENON_SCOPE(tile, *this, repeats)
  std::vector<std::int64_t> all = repeats.vec();
  while (static_cast<std::int64_t>(all.size()) < dim()) all.insert(all.begin(), 1);
  return repeat(all);
}
Tensor Tensor::repeat_interleave(std::int64_t repeats, std::optional<std::int64_t> dim) const {
  TENON_SCOPE(repeat_interleave, *this, repeats, dim)
  if (repeats < 0) throw Error("repeats can not be negative, got " + std::to_string(repeats));
  const Tensor source = dim ? *this : flatten();
  const int at = dim ? wrap_dim(*dim, source.impl().rank()) : 0;
  Dims wide = source.impl().sizes();
  wide.insert(at + 1, repeats);
  Dims flat = source.impl().sizes();
  flat[at] = size_product(flat[at], repeats, wide);
  dense_bytes(flat, scalar_type());
  return as_owned(source.unsqueeze(at + 1).expand(wide).clone(MemoryFormat::Contiguous).view(flat));
}

}  // namespace tenon
