// Operators that join tensors along a dimension.
#include <tenon/core/recycled.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <algorithm>

namespace tenon {

using namespace ops;

Tensor cat(TensorList tensors, std::int64_t dim) {
  TENON_AUTOCAST(cat, tensors, dim)
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
  std::vector<std::int64_t, RecycledAllocator<std::int64_t>> lengths;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    lengths.push_back(kSkipped);
    check_same_device("cat", {first, &tensor});
    dtype = promote_types(dtype, tensor.scalar_type());
    if (tensor.suggest_memory_format() != format) format = MemoryFormat::Contiguous;
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
  TENON_AUTOCAST(stack, tensors, dim)
  if (tensors.empty()) throw Error("stack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes() != tensors[0].sizes()) {
      throw Error("stack expects each tensor to be equal size, but got " + to_string(tensors[0].sizes()) +
                  " at entry 0 and " + to_string(tensor.sizes()) + " at entry " + std::to_string(parts.size()));
    }
    parts.push_back(tensor);
  }
  const int rank = tensors[0].impl().rank();
  const int at = wrap_dim(dim, rank + 1);
  if (at == rank) {
    for (Tensor& part : parts) part = part.unsqueeze(at);
    return cat(parts, at);
  }
  // Joined along the dimension that follows, which is cut then: pictures keep their layout so.
  Dims sizes = tensors[0].impl().sizes();
  sizes.insert(at, static_cast<std::int64_t>(tensors.size()));
  return as_owned(cat(parts, at).view(IntArrayRef(sizes)));
}
Tensor hstack(TensorList tensors) {
  TENON_SCOPE(hstack, tensors)
  if (tensors.empty()) throw Error("hstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.dim() == 0 ? tensor.reshape({1}) : tensor);
  return cat(parts, parts.at(0).dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) {
  TENON_SCOPE(vstack, tensors)
  if (tensors.empty()) throw Error("vstack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.dim() < 2 ? tensor.reshape({1, -1}) : tensor);
  return cat(parts, 0);
}
Tensor dstack(TensorList tensors) {
  TENON_SCOPE(dstack, tensors)
  if (tensors.empty()) throw Error("dstack expects a non-empty TensorList");
  return cat(atleast_3d(tensors), 2);
}
Tensor column_stack(TensorList tensors) {
  TENON_SCOPE(column_stack, tensors)
  if (tensors.empty()) throw Error("column_stack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.dim() < 2 ? tensor.reshape({tensor.numel(), 1}) : tensor);
  return hstack(parts);
}
Tensor row_stack(TensorList tensors) {
  TENON_SCOPE(row_stack, tensors)
  return vstack(tensors);
}

}  // namespace tenon
