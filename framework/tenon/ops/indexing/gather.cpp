// Elements along one dimension, picked or written by a tensor of positions of the result's shape.
// Declared in indexing.h and tensor.h.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/index_operand.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

namespace tenon {

using namespace ops;

namespace {

/// Whether it has one dimension, or none and so one element.
bool is_line(const Tensor& tensor) { return tensor.dim() <= 1; }
Tensor as_line(const Tensor& tensor) { return tensor.dim() == 0 ? tensor.view({1}) : tensor; }

}  // namespace

Tensor Tensor::gather(std::int64_t dim, const Tensor& index, bool) const {
  TENON_SCOPE(gather, *this, dim, index)
  check_index_dtype(index, "gather");
  check_same_device("gather", {this, &index});
  const int at = wrap_dim(dim, impl().rank());
  const bool is_empty = index.numel() == 0;  // of whatever rank
  if (!is_empty && index.dim() != this->dim()) {
    if (!is_line(*this) || !is_line(index))
      throw Error("Index tensor must have the same number of dimensions as input tensor");
    return as_owned(as_line(*this).gather(0, as_line(index)).view(index.sizes()));
  }
  for (int i = 0; !is_empty && i < impl().rank(); ++i) {
    if (i != at && index.size(i) > size(i)) {
      throw Error("Size does not match at dimension " + std::to_string(i) + " expected index " +
                  to_string(index.sizes()) + " to be no larger than self " + to_string(sizes()) +
                  " apart from dimension " + std::to_string(at));
    }
  }
  const Tensor places = index.to(kInt64);
  const Dims whole = impl().sizes();
  Recording recording = record<1>("GatherBackward0", {this}, [whole, at](Backward& b) {
    b.set(0, b.grad().new_zeros(whole).scatter_add(at, b.saved(0), b.grad()));
  });
  if (recording) recording.save(0, places);
  Tensor result = allocate_like(*this, places.impl().sizes(), scalar_type());
  const DimAttributes attributes{at};
  if (!is_empty)
    run(TENON_OP("gather"), ops::state_of(*this), {view_of(result)}, {view_of(*this), view_of(places)}, &attributes);
  recording.output(result);
  return result;
}

namespace {

Tensor& scatter_impl(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source, bool add) {
  const char* name = add ? "scatter_add_" : "scatter_";
  check_index_dtype(index, name);
  check_same_device(name, {&self, &index, &source});
  check_same_dtype(name, {&self, &source});
  autograd::check_inplace(self, autograd::requires_grad(source));
  check_written(self);
  const int at = wrap_dim(dim, self.impl().rank());
  if (index.numel() > 0 && (index.dim() != self.dim() || index.dim() != source.dim())) {
    if (is_line(self) && is_line(index) && is_line(source)) {
      scatter_impl(as_line(self), 0, as_line(index), as_line(source), add);
      return const_cast<Tensor&>(self);
    }
    throw Error("Index tensor must have the same number of dimensions as self tensor");
  }
  for (int i = 0; index.numel() > 0 && i < self.impl().rank(); ++i) {
    if ((i != at && index.size(i) > self.size(i)) || index.size(i) > source.size(i)) {
      throw Error("Expected index " + to_string(index.sizes()) + " to be no larger than self " +
                  to_string(self.sizes()) + " apart from dimension " + std::to_string(at) +
                  " and to be no larger size than src " + to_string(source.sizes()));
    }
  }
  const Tensor places = index.to(kInt64);
  const Dims source_sizes = source.impl().sizes();
  Recording recording = record<1>(
      add ? "ScatterAddBackward0" : "ScatterBackward0", {&self, &source}, [at, add, source_sizes](Backward& b) {
        if (b.needs(1)) {
          const Tensor places = b.saved(0);
          Tensor gradient = b.grad().gather(at, places);
          if (!(gradient.impl().sizes() == source_sizes)) {  // only the part that the index covers was read
            Tensor whole = b.grad().new_zeros(source_sizes);
            Tensor part = whole;
            if (places.numel() > 0) {  // an empty index may have another rank
              for (int i = 0; i < source_sizes.rank(); ++i) part = part.narrow(i, 0, gradient.size(i));
              part.copy_(gradient);
            }
            gradient = whole;
          }
          b.set(1, gradient);
        }
        if (b.needs(0)) b.set(0, add ? b.grad() : b.grad().scatter(at, b.saved(0), Scalar(0)));
      });
  if (recording && (!add || autograd::requires_grad(source))) recording.save(0, places);
  const ScatterAttributes attributes{at, add};
  if (index.numel() > 0) {
    run(TENON_OP("scatter"), ops::state_of(self), {view_of(self)},
        {view_of(apart_from(self, places)), view_of(apart_from(self, source))}, &attributes);
  }
  finish_inplace(self, recording);
  return const_cast<Tensor&>(self);
}

}  // namespace

Tensor& Tensor::scatter_(std::int64_t dim, const Tensor& index, const Tensor& source) const {
  TENON_SCOPE(scatter_, *this, dim, index, source)
  return scatter_impl(*this, dim, index, source, false);
}
Tensor& Tensor::scatter_(std::int64_t dim, const Tensor& index, const Scalar& value) const {
  TENON_SCOPE(scatter_, *this, dim, index, value)
  return scatter_impl(*this, dim, index, scalar_tensor_like(value, *this).expand(index.sizes()), false);
}
Tensor& Tensor::scatter_add_(std::int64_t dim, const Tensor& index, const Tensor& source) const {
  TENON_SCOPE(scatter_add_, *this, dim, index, source)
  return scatter_impl(*this, dim, index, source, true);
}
Tensor Tensor::scatter(std::int64_t dim, const Tensor& index, const Tensor& source) const {
  TENON_SCOPE(scatter, *this, dim, index, source)
  return as_fresh(clone(MemoryFormat::Contiguous).scatter_(dim, index, source));
}
Tensor Tensor::scatter(std::int64_t dim, const Tensor& index, const Scalar& value) const {
  TENON_SCOPE(scatter, *this, dim, index, value)
  return as_fresh(clone(MemoryFormat::Contiguous).scatter_(dim, index, value));
}
Tensor Tensor::scatter_add(std::int64_t dim, const Tensor& index, const Tensor& source) const {
  TENON_AUTOCAST_METHOD(scatter_add, *this, dim, index, source)
  return as_fresh(clone(MemoryFormat::Contiguous).scatter_add_(dim, index, source));
}

Tensor one_hot(const Tensor& self, std::int64_t classes) {
  TENON_SCOPE(one_hot, self, classes)
  if (self.scalar_type() != kInt64) throw Error("one_hot is only applicable to index tensor of type LongTensor.");
  if (self.numel() == 0 && classes <= 0) throw Error("Can not infer total number of classes from empty tensor.");
  if (classes <= 0) check_has_values("one_hot", self, "the number of classes (unless num_classes is given)");
  const bool known = self.numel() > 0 && has_values(self);
  if (known && self.min().item<std::int64_t>() < 0) throw Error("Class values must be non-negative.");
  const std::int64_t highest = known ? self.max().item<std::int64_t>() : -1;
  if (classes == -1) classes = highest + 1;
  if (classes <= highest) throw Error("Class values must be smaller than num_classes.");
  std::vector<std::int64_t> sizes = self.sizes().vec();
  sizes.push_back(classes);
  return as_fresh(tenon::zeros(sizes, self.options()).scatter_(-1, self.unsqueeze(-1), Scalar(1)));
}

}  // namespace tenon
