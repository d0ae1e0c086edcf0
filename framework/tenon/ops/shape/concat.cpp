// Operators that join tensors, repeat one, or move its elements along a dimension. Declared in view.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <algorithm>

namespace tenon {

using namespace ops;

Tensor cat(TensorList tensors, std::int64_t dim) {
  if (tensors.empty()) throw Error("torch.cat(): expected a non-empty list of Tensors");
  // Empty tensors of rank 1 are skipped, as in PyTorch, whose tensors of no elements once had no other rank.
  const auto skipped = [](const Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == 0; };
  constexpr std::int64_t kSkipped = -1;
  const Tensor* first = nullptr;
  for (const Tensor& tensor : tensors) {
    if (!first && !skipped(tensor)) first = &tensor;
  }
  if (!first) first = &tensors[0];  // nothing but such: their dtypes count
  if (first->dim() == 0) throw Error("zero-dimensional tensor (at position 0) cannot be concatenated");
  const int at = wrap_dim(dim, first->impl().rank());
  Dims sizes = first->impl().sizes();
  sizes[at] = 0;
  Dtype dtype = first->scalar_type();
  MemoryFormat format = first->suggest_memory_format();  // where all have the same
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    lengths.push_back(kSkipped);
    check_same_device("cat", {first, &tensor});
    dtype = promote_types(dtype, tensor.scalar_type());
    if (skipped(tensor)) continue;
    if (tensor.dim() != first->dim()) {
      throw Error("Tensors must have same number of dimensions: got " + std::to_string(first->dim()) + " and " +
                  std::to_string(tensor.dim()));
    }
    for (int d = 0; d < sizes.rank(); ++d) {
      if (d != at && tensor.size(d) != sizes[d]) {
        throw Error("Sizes of tensors must match except in dimension " + std::to_string(at) + ". Expected size " +
                    std::to_string(sizes[d]) + " but got size " + std::to_string(tensor.size(d)) +
                    " for tensor number " + std::to_string(i) + " in the list.");
      }
    }
    if (tensor.suggest_memory_format() != format) format = MemoryFormat::Contiguous;
    lengths.back() = tensor.size(at);
    sizes[at] += tensor.size(at);
  }
  Recording recording;
  const bool wanted = autograd::modes.grad_enabled && std::any_of(tensors.begin(), tensors.end(), [](const Tensor& x) {
                        return autograd::requires_grad(x);
                      });
  Tensor result = allocate_in(format, *first, sizes, dtype);
  {
    NoGradGuard no_grad;
    std::int64_t start = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (lengths[i] <= 0) continue;
      const Tensor part = result.narrow(at, start, lengths[i]);
      run(TENON_OP("copy"), ops::state_of(result), {view_of(part)}, {view_of(tensors[i])});
      start += lengths[i];
    }
  }
  if (wanted) {
    auto formula = [lengths, at](Backward& b) {
      std::int64_t start = 0;
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        if (b.needs(i)) {
          b.set(i, lengths[i] == kSkipped ? b.grad().new_zeros({0}) : b.grad().narrow(at, start, lengths[i]));
        }
        if (lengths[i] != kSkipped) start += lengths[i];
      }
    };
    IntrusivePtr<autograd::Node> node(new FormulaNode<decltype(formula), 0>("CatBackward0", formula));
    for (const Tensor& tensor : tensors) node->add_next_edge(autograd::gradient_edge(tensor));
    autograd::set_history(result, node);
  }
  return result;
}

Tensor stack(TensorList tensors, std::int64_t dim) {
  if (tensors.empty()) throw Error("stack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes() != tensors[0].sizes()) {
      throw Error("stack expects each tensor to be equal size, but got " + to_string(tensors[0].sizes()) +
                  " at entry 0 and " + to_string(tensor.sizes()) + " at entry " + std::to_string(parts.size()));
    }
    parts.push_back(tensor.unsqueeze(dim));
  }
  return cat(parts, wrap_dim(dim, tensors[0].impl().rank() + 1));
}
Tensor hstack(TensorList tensors) {
  if (tensors.empty()) throw Error("hstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.dim() == 0 ? tensor.reshape({1}) : tensor);
  return cat(parts, parts.at(0).dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) {
  if (tensors.empty()) throw Error("vstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.dim() < 2 ? tensor.reshape({1, -1}) : tensor);
  return cat(parts, 0);
}
std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  Dims sizes;
  for (const Tensor& tensor : tensors) sizes = broadcast_sizes(sizes, tensor.impl().sizes());
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.expand(sizes));
  return result;
}
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  if (tensors.empty()) throw Error("meshgrid expects a non-empty TensorList");
  if (indexing != "ij" && indexing != "xy") {
    throw Error("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: " + std::string(indexing));
  }
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() > 1) {
      throw Error("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got one of sizes " +
                  to_string(tensor.sizes()));
    }
    if (tensor.scalar_type() != tensors[0].scalar_type()) {
      throw Error(std::string("torch.meshgrid expects all tensors to have the same dtype, got ") +
                  toString(tensors[0].scalar_type()) + " and " + toString(tensor.scalar_type()));
    }
    if (!(tensor.device() == tensors[0].device()))
      throw Error("torch.meshgrid expects all tensors to have the same device");
  }
  const bool swap = indexing == "xy" && tensors.size() >= 2;
  std::vector<Tensor> inputs = tensors.vec();
  if (swap) std::swap(inputs[0], inputs[1]);
  Dims sizes;
  for (const Tensor& tensor : inputs) sizes.push_back(tensor.numel());
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Dims shape = Dims::filled(sizes.rank(), 1);
    shape[static_cast<int>(i)] = sizes[static_cast<int>(i)];
    grids.push_back(inputs[i].reshape(shape).expand(sizes));
  }
  if (swap) std::swap(grids[0], grids[1]);
  return grids;
}

Tensor Tensor::repeat(IntArrayRef repeats) const {
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
Tensor Tensor::repeat_interleave(std::int64_t repeats, std::optional<std::int64_t> dim) const {
  if (repeats < 0) throw Error("repeats can not be negative, got " + std::to_string(repeats));
  const Tensor source = dim ? *this : flatten();
  const int at = dim ? wrap_dim(*dim, source.impl().rank()) : 0;
  Dims wide = source.impl().sizes();
  wide.insert(at + 1, repeats);
  Dims flat = source.impl().sizes();
  flat[at] = size_product(flat[at], repeats, wide);
  dense_bytes(flat, scalar_type());
  return source.unsqueeze(at + 1).expand(wide).clone(MemoryFormat::Contiguous).view(flat);
}
Tensor Tensor::flip(IntArrayRef dims) const {
  if (!dims.empty()) dim_mask(dims, impl().rank());  // throws where a dimension is named twice
  Tensor result = *this;
  for (const std::int64_t dim : dims) {
    const int at = wrap_dim(dim, impl().rank());
    if (numel() == 0 || impl().rank() == 0) return clone();
    const std::int64_t length = size(at);
    const Tensor backwards = arange(length - 1, -1, -1, TensorOptions(kInt64).device(device()));
    result = result.index_select(at, backwards);
  }
  return dims.empty() ? clone() : result;
}
Tensor Tensor::roll(IntArrayRef shifts, IntArrayRef dims) const {
  if (dims.empty()) {
    if (shifts.size() != 1) throw Error("`shifts` must have one element when no dims are given");
    return flatten().roll(shifts, {0}).view(sizes());
  }
  if (dims.size() != shifts.size()) {
    throw Error("shifts and dimensions must align. shifts: " + std::to_string(shifts.size()) +
                ", dims:" + std::to_string(dims.size()));
  }
  Tensor result = *this;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int at = wrap_dim(dims[i], impl().rank());
    const std::int64_t length = size(at);
    if (length == 0) continue;
    const std::int64_t start = ((length - shifts[i]) % length + length) % length;
    result = cat({result.slice(at, start, length), result.slice(at, 0, start)}, at);
  }
  return result.is_same(*this) ? clone() : result;
}

}  // namespace tenon
