// Views that keep every element: other sizes, other strides, another order of the dimensions. Each knows how its
// gradient is laid back into the base's shape.
#include <tenon/autograd/variable.h>
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/make_view.h>
#include <tenon/tensor/factory.h>

#include <algorithm>

namespace tenon {

using namespace ops;

namespace {

/// Views that keep every element: the gradient is brought back by reshaping.
Tensor reshaping_view(const char* name, const Tensor& self, const Dims& sizes, const Dims& strides) {
  const Dims original = self.impl().sizes();
  return make_view(name, self, sizes, strides, self.storage_offset(),
                   [original](Backward& b) { b.set(0, b.grad().reshape(original)); });
}

}  // namespace

Tensor Tensor::alias() const {
  const TensorImpl& self = impl();
  return make_view(TENON_VIEW(alias, *this), "AliasBackward0", *this, self.sizes(), self.strides(), self.offset(),
                   [](Backward& b) { b.set(0, b.take_grad()); });
}

Tensor Tensor::detach() const {
  TENON_SCOPE(detach, *this)
  return alias_of(*this);
}

Tensor& Tensor::detach_() const {
  TENON_SCOPE(detach_, *this)
  if (is_view()) {
    throw Error(
        "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
        "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets.");
  }
  if (autograd::AutogradMeta* meta = autograd::meta_of(*this)) {
    autograd::set_gradient_edge(*this, {});
    meta->requires_grad = false;
  }
  return const_cast<Tensor&>(*this);
}

Tensor Tensor::view(IntArrayRef sizes) const {
  TENON_SCOPE(view, *this, sizes)
  const TensorImpl& self = impl();
  const Dims wanted = infer_sizes(sizes, self.numel());
  const std::optional<Dims> strides = view_strides(self.sizes(), self.strides(), wanted);
  if (!strides) {
    throw Error(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead. (size " +
        to_string(self.sizes()) + ", stride " + to_string(self.strides()) + ", wanted " + to_string(wanted) + ")");
  }
  return reshaping_view("ViewBackward0", *this, wanted, *strides);
}

namespace {

/// Throws view(dtype)'s error for sizes, strides or an offset that do not fit elements of the other size.
[[noreturn]] void no_such_view(const std::string& what, Dtype from, Dtype to, const std::string& but) {
  throw Error("self." + what + " to view " + toString(from) + " as " + toString(to) +
              " (different element sizes), but got " + but);
}

}  // namespace

Tensor Tensor::view_dtype(Dtype dtype) const {
  TENON_SCOPE(view, *this)
  const TensorImpl& self = impl();
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  std::int64_t offset = self.offset();
  const auto from = static_cast<std::int64_t>(itemsize());
  const auto to = static_cast<std::int64_t>(size_of(dtype));
  if (from != to) {
    const int last = self.rank() - 1;
    if (last < 0) {
      throw Error(std::string("self.dim() cannot be 0 to view ") + tenon::toString(scalar_type()) + " as " +
                  tenon::toString(dtype) + " (different element sizes)");
    }
    if (strides[last] != 1) no_such_view("stride(-1) must be 1", scalar_type(), dtype, std::to_string(strides[last]));
    if (from > to) {
      const std::int64_t ratio = from / to;
      for (int i = 0; i < last; ++i) strides[i] *= ratio;
      sizes[last] *= ratio;
      offset *= ratio;
    } else {
      const std::int64_t ratio = to / from;
      const auto divided = [&](std::int64_t& value, const std::string& name) {
        if (value % ratio != 0) {
          no_such_view(name + " must be divisible by " + std::to_string(ratio), scalar_type(), dtype,
                       std::to_string(value));
        }
        value /= ratio;
      };
      divided(sizes[last], "size(-1)");
      divided(offset, "storage_offset()");
      for (int i = 0; i < last; ++i) divided(strides[i], "stride(" + std::to_string(i) + ")");
    }
  }
  Tensor result = alias_of(*this);
  result.impl().set_storage(self.storage_ptr(), dtype);
  result.impl().set_strided(sizes, strides, offset);
  return result;
}

Tensor Tensor::reshape(IntArrayRef sizes) const {
  TENON_SCOPE(reshape, *this, sizes)
  const TensorImpl& self = impl();
  const Dims wanted = infer_sizes(sizes, self.numel());
  if (const std::optional<Dims> strides = view_strides(self.sizes(), self.strides(), wanted)) {
    return reshaping_view("ReshapeAliasBackward0", *this, wanted, *strides);
  }
  // The result is a copy, so it is not recorded as a view.
  const Tensor copy = clone(MemoryFormat::Contiguous);
  const Dims original = self.sizes();
  Recording recording =
      record<0>("UnsafeViewBackward0", {&copy}, [original](Backward& b) { b.set(0, b.grad().reshape(original)); });
  Tensor result = alias_of(copy, wanted, contiguous_strides(wanted), 0);
  recording.output(result);
  return result;
}

Tensor Tensor::flatten(std::int64_t start_dim, std::int64_t end_dim) const {
  TENON_SCOPE(flatten, *this, start_dim, end_dim)
  const int rank = impl().rank();
  const int first = wrap_dim(start_dim, rank);
  const int last = wrap_dim(end_dim, rank);
  if (first > last) throw Error("flatten() has invalid args: start_dim cannot come after end_dim");
  if (rank == 0) return reshape({1});
  if (first == last) return *this;
  Dims wanted;
  std::int64_t run = 1;
  for (int i = 0; i < rank; ++i) {
    if (i < first || i > last) {
      wanted.push_back(impl().sizes()[i]);
    } else {
      run *= impl().sizes()[i];
      if (i == last) wanted.push_back(run);
    }
  }
  return reshape(wanted);
}

Tensor Tensor::unflatten(std::int64_t dim, IntArrayRef sizes) const {
  TENON_SCOPE(unflatten, *this, dim, sizes)
  const int at = wrap_dim(dim, impl().rank());
  Dims wanted;
  Dims parts;
  try {
    parts = infer_sizes(sizes, size(at));
  } catch (const Error&) {
    throw Error("unflatten: Provided sizes " + to_string(sizes) + " don't multiply up to the size of dim " +
                std::to_string(at) + " (" + std::to_string(size(at)) + ") in the input tensor");
  }
  for (int i = 0; i < impl().rank(); ++i) {
    if (i != at) {
      wanted.push_back(impl().sizes()[i]);
    } else {
      for (const std::int64_t part : parts) wanted.push_back(part);
    }
  }
  return view(wanted);
}
Tensor Tensor::ravel() const {
  TENON_SCOPE(ravel, *this)
  return contiguous().view({-1});
}

Tensor Tensor::permute(IntArrayRef dims) const {
  const TensorImpl& self = impl();
  if (static_cast<int>(dims.size()) != self.rank()) {
    throw Error(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering "
        "of dimensions i.e. input.dim() = " +
        std::to_string(self.rank()) + " is not equal to len(dims) = " + std::to_string(dims.size()));
  }
  Dims order;
  Dims sizes;
  Dims strides;
  std::uint32_t seen = 0;
  for (const std::int64_t dim : dims) {
    const int from = wrap_dim(dim, self.rank());
    if (seen >> from & 1) throw Error("permute(): duplicate dims are not allowed.");
    seen |= 1u << from;
    order.push_back(from);
    sizes.push_back(self.sizes()[from]);
    strides.push_back(self.strides()[from]);
  }
  return ops::make_view(TENON_VIEW(permute, *this, dims), "PermuteBackward0", *this, sizes, strides, self.offset(),
                        [order](Backward& b) {
                          Dims inverse;
                          inverse.resize(order.rank());
                          for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
                          b.set(0, b.grad().permute(inverse));
                        });
}

namespace {

Tensor swapped(const char* name, const Tensor& tensor, int a, int b) {
  const TensorImpl& self = tensor.impl();
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return ops::make_view(name, tensor, sizes, strides, self.offset(),
                        [a, b](Backward& backward) { backward.set(0, backward.grad().transpose(a, b)); });
}

}  // namespace

Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const {
  TENON_SCOPE(transpose, *this, dim0, dim1)
  const int rank = impl().rank();
  const int a = wrap_dim(dim0, rank);
  const int b = wrap_dim(dim1, rank);
  return rank == 0 ? alias() : swapped("TransposeBackward0", *this, a, b);
}
Tensor Tensor::t() const {
  TENON_SCOPE(t, *this)
  if (dim() > 2) throw Error("t() expects a tensor with <= 2 dimensions, but self is " + std::to_string(dim()) + "D");
  return dim() < 2 ? alias() : swapped("TBackward0", *this, 0, 1);
}

Tensor Tensor::movedim(IntArrayRef source, IntArrayRef destination) const {
  TENON_SCOPE(movedim, *this, source, destination)
  if (source.size() != destination.size()) {
    throw Error("movedim: Invalid source or destination dims: source (" + to_string(source) +
                " dims) should contain the same number of dims as destination (" + to_string(destination) + " dims)");
  }
  const int rank = impl().rank();
  Dims order = Dims::filled(std::max(rank, 1), -1);
  std::uint32_t taken = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const int from = wrap_dim(source[i], rank);
    const int to = wrap_dim(destination[i], rank);
    if (taken >> from & 1) throw Error("movedim: repeated dim in `source` (" + to_string(source) + ")");
    if (order[to] != -1) throw Error("movedim: repeated dim in `destination` (" + to_string(destination) + ")");
    taken |= 1u << from;
    order[to] = from;
  }
  if (rank == 0) return alias();
  int next = 0;
  for (int to = 0; to < rank; ++to) {
    if (order[to] != -1) continue;
    while (taken >> next & 1) ++next;
    order[to] = next++;
  }
  return permute(order);
}
Tensor Tensor::movedim(std::int64_t source, std::int64_t destination) const {
  return movedim(IntArrayRef{source}, IntArrayRef{destination});
}

namespace {

/// x.transpose_(): the tensor itself takes the view's geometry and history.
Tensor& become(const Tensor& self, const Tensor& view) {
  autograd::check_inplace(self);
  const TensorImpl& from = view.impl();
  const autograd::Edge edge = autograd::gradient_edge(view);
  self.impl().set_strided(from.sizes(), from.strides(), from.offset());
  autograd::impl_bump_version(self);
  if (edge.function && autograd::modes.grad_enabled) autograd::set_gradient_edge(self, edge);
  return const_cast<Tensor&>(self);
}

}  // namespace

Tensor& Tensor::transpose_(std::int64_t dim0, std::int64_t dim1) const {
  TENON_SCOPE(transpose_, *this, dim0, dim1)
  return become(*this, transpose(dim0, dim1));
}
Tensor& Tensor::t_() const {
  TENON_SCOPE(t_, *this)
  return become(*this, t());
}
const Tensor& Tensor::as_strided_(IntArrayRef sizes, IntArrayRef strides, std::optional<std::int64_t> offset) const {
  TENON_SCOPE(as_strided_, *this, sizes, strides, offset)
  return become(*this, as_strided(sizes, strides, offset));
}
Tensor& Tensor::squeeze_() const {
  TENON_SCOPE(squeeze_, *this)
  return become(*this, squeeze());
}
Tensor& Tensor::squeeze_(std::int64_t dim) const {
  TENON_SCOPE(squeeze_, *this, dim)
  return become(*this, squeeze(dim));
}
Tensor& Tensor::unsqueeze_(std::int64_t dim) const {
  TENON_SCOPE(unsqueeze_, *this, dim)
  return become(*this, unsqueeze(dim));
}

Tensor Tensor::squeeze() const {
  TENON_SCOPE(squeeze, *this)
  const TensorImpl& self = impl();
  Dims sizes;
  Dims strides;
  for (int i = 0; i < self.rank(); ++i) {
    if (self.sizes()[i] == 1) continue;
    sizes.push_back(self.sizes()[i]);
    strides.push_back(self.strides()[i]);
  }
  return reshaping_view("SqueezeBackward0", *this, sizes, strides);
}
Tensor Tensor::squeeze(std::int64_t dim) const {
  TENON_SCOPE(squeeze, *this, dim)
  const TensorImpl& self = impl();
  const int at = wrap_dim(dim, self.rank());
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  if (self.rank() > 0 && sizes[at] == 1) {
    sizes.erase(at);
    strides.erase(at);
  }
  return reshaping_view("SqueezeBackward1", *this, sizes, strides);
}
Tensor Tensor::unsqueeze(std::int64_t dim) const {
  const TensorImpl& self = impl();
  const int at = wrap_dim(dim, self.rank() + 1);
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  strides.insert(at, at < self.rank() ? self.sizes()[at] * self.strides()[at] : 1);
  sizes.insert(at, 1);
  return ops::make_view(TENON_VIEW(unsqueeze, *this, dim), "UnsqueezeBackward0", *this, sizes, strides, self.offset(),
                        [at](Backward& b) { b.set(0, b.grad().squeeze(at)); });
}

Tensor atleast_1d(const Tensor& self) {
  TENON_SCOPE(atleast_1d, self)
  return self.dim() == 0 ? self.reshape({1}) : self;
}
Tensor atleast_2d(const Tensor& self) {
  TENON_SCOPE(atleast_2d, self)
  if (self.dim() == 0) return self.reshape({1, 1});
  return self.dim() == 1 ? self.unsqueeze(0) : self;
}
Tensor atleast_3d(const Tensor& self) {
  TENON_SCOPE(atleast_3d, self)
  if (self.dim() == 0) return self.reshape({1, 1, 1});
  if (self.dim() == 1) return self.unsqueeze(0).unsqueeze(-1);
  return self.dim() == 2 ? self.unsqueeze(-1) : self;
}

namespace {

std::vector<Tensor> each(TensorList tensors, Tensor (*change)(const Tensor&)) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(change(tensor));
  return result;
}

}  // namespace

std::vector<Tensor> atleast_1d(TensorList tensors) {
  TENON_SCOPE(atleast_1d, tensors)
  return each(tensors, &atleast_1d);
}
std::vector<Tensor> atleast_2d(TensorList tensors) {
  TENON_SCOPE(atleast_2d, tensors)
  return each(tensors, &atleast_2d);
}
std::vector<Tensor> atleast_3d(TensorList tensors) {
  TENON_SCOPE(atleast_3d, tensors)
  return each(tensors, &atleast_3d);
}

}  // namespace tenon
