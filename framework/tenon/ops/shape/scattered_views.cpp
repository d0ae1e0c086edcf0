// Copies in which one view has other values. Declared in scattered_views.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/shape/scattered_views.h>
#include <tenon/ops/shape/slicing.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

namespace {

/// A copy of `self` with `source` in what `view` takes of it; `view` takes as much of a gradient.
template <class View>
Tensor scattered(const char* node, const Tensor& self, const Tensor& source, View view) {
  check_same_device(node, {&self, &source});
  const Tensor part = view(self.detach());
  if (part.sizes() != source.sizes()) {
    throw Error(fmt::format("expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
                            to_string(source.sizes()), to_string(part.sizes())));
  }
  Recording recording;
  if (self.is_floating_point()) {
    const std::vector<std::int64_t> sizes = source.sizes().vec();
    const Dtype dtype = source.scalar_type();
    recording = record<0>(node, {&self, &source}, [=](Backward& b) {
      if (b.needs(0)) b.set(0, scattered(node, b.grad(), b.grad().new_zeros(sizes), view));
      if (b.needs(1)) b.set(1, view(b.grad()).to(dtype));
    });
  }
  Tensor result;
  {
    NoGradGuard no_grad;
    const bool repeats = self.impl().may_overlap_itself();
    result = repeats ? self.clone() : empty_strided(self.sizes(), self.strides(), self.options().requires_grad(false));
    if (!repeats) result.copy_(self);
    view(result).copy_(source);
  }
  recording.output(as_fresh(result));
  return result;
}

}  // namespace

Tensor slice_scatter(const Tensor& self, const Tensor& source, std::int64_t dim, std::optional<std::int64_t> start,
                     std::optional<std::int64_t> end, std::int64_t step) {
  TENON_SCOPE(slice_scatter, self, source, dim, start, end, step)
  return scattered("SliceScatterBackward0", self, source,
                   [=](const Tensor& x) { return x.slice(dim, start, end, step); });
}
Tensor select_scatter(const Tensor& self, const Tensor& source, std::int64_t dim, std::int64_t index) {
  TENON_SCOPE(select_scatter, self, source, dim, index)
  return scattered("SelectScatterBackward0", self, source, [=](const Tensor& x) { return x.select(dim, index); });
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& source, std::int64_t offset, std::int64_t dim1,
                        std::int64_t dim2) {
  TENON_SCOPE(diagonal_scatter, self, source, offset, dim1, dim2)
  return scattered("DiagonalScatterBackward0", self, source,
                   [=](const Tensor& x) { return x.diagonal(offset, dim1, dim2); });
}

Tensor Tensor::slice_scatter(const Tensor& source, std::int64_t dim, std::optional<std::int64_t> start,
                             std::optional<std::int64_t> end, std::int64_t step) const {
  return tenon::slice_scatter(*this, source, dim, start, end, step);
}
Tensor Tensor::select_scatter(const Tensor& source, std::int64_t dim, std::int64_t index) const {
  return tenon::select_scatter(*this, source, dim, index);
}
Tensor Tensor::diagonal_scatter(const Tensor& source, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) const {
  return tenon::diagonal_scatter(*this, source, offset, dim1, dim2);
}

Tensor block_diag(TensorList tensors) {
  TENON_SCOPE(block_diag, tensors)
  if (tensors.empty()) return empty({1, 0});
  std::vector<Tensor> blocks;
  std::int64_t rows = 0, columns = 0;
  std::optional<Dtype> of_numbers, of_others;  // numbers weigh less
  for (const Tensor& tensor : tensors) {
    if (tensor.device() != tensors[0].device())
      throw Error("torch.block_diag: input tensors must all be on the same device.");
    if (tensor.dim() > 2) {
      throw Error(
          fmt::format("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {} has {} dimensions",
                      blocks.size(), tensor.dim()));
    }
    std::optional<Dtype>& among = tensor.dim() == 0 ? of_numbers : of_others;
    among = among ? promote_types(*among, tensor.scalar_type()) : tensor.scalar_type();
    blocks.push_back(tensor.dim() == 2 ? tensor : tensor.reshape({1, -1}));
    rows += blocks.back().size(0);
    columns += blocks.back().size(1);
  }
  const Dtype dtype = of_numbers && of_others ? result_type(empty({1}, *of_others), empty({}, *of_numbers))
                                              : of_others.value_or(of_numbers.value_or(kFloat32));
  const Tensor result = zeros({rows, columns}, tensors[0].options().dtype(dtype).requires_grad(false));
  std::int64_t row = 0, column = 0;
  for (const Tensor& block : blocks) {
    result.narrow(0, row, block.size(0)).narrow(1, column, block.size(1)).copy_(block);
    row += block.size(0);
    column += block.size(1);
  }
  return as_fresh(result);
}

}  // namespace tenon
