// Views. Each knows how its gradient is laid back into the base's shape.
#include <tenon/ops/factory.h>
#include <tenon/ops/fresh.h>
#include <tenon/ops/support.h>
#include <tenon/ops/view.h>

#include <algorithm>

namespace tenon {

using namespace ops;

namespace {

template <class Formula>
Tensor make_view(const char* name, const Tensor& self, const Dims& sizes, const Dims& strides, std::int64_t offset,
                 Formula formula, autograd::CreationMeta creation = autograd::CreationMeta::DEFAULT) {
  Tensor result = alias_of(self, sizes, strides, offset);
  const Recording recording = record<0>(name, {&self}, std::move(formula));
  if (!autograd::modes.grad_enabled) {
    creation = autograd::modes.inference ? autograd::CreationMeta::INFERENCE_MODE : autograd::CreationMeta::NO_GRAD_MODE;
  }
  autograd::make_view(self, result, creation);
  if (recording) {
    const std::uint32_t number = recording.node()->add_input_metadata(result);
    autograd::set_gradient_edge(result, {recording.node(), number});
  }
  return result;
}

/// Views that keep every element: the gradient is brought back by reshaping.
Tensor reshaping_view(const char* name, const Tensor& self, const Dims& sizes, const Dims& strides) {
  const Dims original = self.impl().sizes();
  return make_view(name, self, sizes, strides, self.storage_offset(),
                   [original](Backward& b) { b.set(0, b.grad().reshape(original)); });
}

/// A gradient for a part: zeros of the whole with the part filled in.
template <class Part>
Tensor embedded(const Tensor& gradient, const Dims& whole, Part part) {
  Tensor result = gradient.new_zeros(whole);
  part(result).copy_(gradient);
  return result;
}

}  // namespace

Tensor Tensor::alias() const {
  const TensorImpl& self = impl();
  return make_view("AliasBackward0", *this, self.sizes(), self.strides(), self.offset(), [](Backward& b) { b.set(0, b.take_grad()); });
}

Tensor Tensor::view(IntArrayRef sizes) const {
  const TensorImpl& self = impl();
  const Dims wanted = infer_sizes(sizes, self.numel());
  const std::optional<Dims> strides = view_strides(self.sizes(), self.strides(), wanted);
  if (!strides) {
    throw Error("view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                "contiguous subspaces). Use .reshape(...) instead. (size " + to_string(self.sizes()) + ", stride " +
                to_string(self.strides()) + ", wanted " + to_string(wanted) + ")");
  }
  return reshaping_view("ViewBackward0", *this, wanted, *strides);
}

Tensor Tensor::view_dtype(Dtype dtype) const {
  if (size_of(dtype) != itemsize()) throw Error("view(dtype) needs a dtype of the same element size");
  Tensor result = alias_of(*this);
  result.impl().set_storage(impl().storage_ptr(), dtype);
  return result;
}

Tensor Tensor::reshape(IntArrayRef sizes) const {
  const TensorImpl& self = impl();
  const Dims wanted = infer_sizes(sizes, self.numel());
  if (const std::optional<Dims> strides = view_strides(self.sizes(), self.strides(), wanted)) {
    return reshaping_view("ReshapeAliasBackward0", *this, wanted, *strides);
  }
  // A copy in its new shape is no view of anything.
  const Tensor copy = clone(MemoryFormat::Contiguous);
  const Dims original = self.sizes();
  Recording recording = record<0>("UnsafeViewBackward0", {&copy}, [original](Backward& b) { b.set(0, b.grad().reshape(original)); });
  const Tensor result = alias_of(copy, wanted, contiguous_strides(wanted), 0);
  recording.output(result);
  return result;
}

Tensor Tensor::flatten(std::int64_t start_dim, std::int64_t end_dim) const {
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
  const int at = wrap_dim(dim, impl().rank());
  Dims wanted;
  const Dims parts = infer_sizes(sizes, size(at));
  for (int i = 0; i < impl().rank(); ++i) {
    if (i != at) {
      wanted.push_back(impl().sizes()[i]);
    } else {
      for (const std::int64_t part : parts) wanted.push_back(part);
    }
  }
  return view(wanted);
}
Tensor Tensor::ravel() const { return contiguous().view({-1}); }

Tensor Tensor::as_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<std::int64_t> offset) const {
  const std::int64_t start = offset.value_or(storage_offset());
  const Dims new_sizes(sizes);
  const Dims new_strides(strides);
  if (new_sizes.rank() != new_strides.rank()) throw Error("mismatch in length of strides and shape");
  for (const std::int64_t stride : new_strides) {
    if (stride < 0) {
      throw Error("as_strided: Negative strides are not supported at the moment, got strides: " + to_string(new_strides));
    }
  }
  if (start < 0) throw Error("Tensor: invalid storage offset " + std::to_string(start));
  const std::size_t needed = strided_bytes(new_sizes, new_strides, scalar_type(), start);
  if (needed > impl().storage().nbytes()) {
    throw Error("setStorage: sizes " + to_string(new_sizes) + ", strides " + to_string(new_strides) + ", storage offset " +
                std::to_string(start) + ", and itemsize " + std::to_string(itemsize()) + " requiring a storage size of " +
                std::to_string(needed) + " are out of bounds for storage of size " +
                std::to_string(impl().storage().nbytes()));
  }
  const Dims self_sizes = impl().sizes();
  const Dims self_strides = impl().strides();
  const std::int64_t self_offset = storage_offset();
  const bool shares_places = impl().may_overlap_itself();
  return ::tenon::make_view(
      "AsStridedBackward0", *this, new_sizes, new_strides, start,
      [=](Backward& b) {
        // Positions of the storage that self reaches, each summed over the view's elements that lie there, then read as self.
        const auto extent = [](const Dims& sizes, const Dims& strides) {
          std::int64_t reach = 1;
          for (int i = 0; i < sizes.rank(); ++i) reach += sizes[i] == 0 ? 0 : (sizes[i] - 1) * strides[i];
          return reach;
        };
        const std::int64_t first = std::min(self_offset, start);
        const std::int64_t last = std::max(self_offset + extent(self_sizes, self_strides), start + extent(new_sizes, new_strides));
        const Tensor positions = arange(last - first, TensorOptions(kInt64).device(b.grad().device()));
        const Tensor places = positions.as_strided(new_sizes, new_strides, start - first).reshape({-1});
        const Tensor own_places = positions.as_strided(self_sizes, self_strides, self_offset - first).reshape({-1});
        Tensor line = b.grad().new_zeros({last - first}).index_add(0, places, b.grad().reshape({-1}));
        if (shares_places) {  // elements of self in one place share what arrives there
          const Tensor ones = b.grad().new_ones({own_places.numel()});
          line = line / b.grad().new_zeros({last - first}).index_add(0, own_places, ones).clamp_min(1);
        }
        b.set(0, line.index_select(0, own_places).view(self_sizes));
      });
}

Tensor Tensor::expand(IntArrayRef sizes, bool) const {
  const TensorImpl& self = impl();
  Dims wanted(sizes);
  const int added = wanted.rank() - self.rank();
  if (added < 0) {
    throw Error("expand(" + toString() + "{" + to_string(self.sizes()) + "}, size=" + to_string(wanted) +
                "): the number of sizes provided (" + std::to_string(wanted.rank()) +
                ") must be greater or equal to the number of dimensions in the tensor (" + std::to_string(self.rank()) + ")");
  }
  for (int i = 0; i < wanted.rank(); ++i) {
    if (wanted[i] == -1) {
      if (i < added) {
        throw Error("The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension " + std::to_string(i));
      }
      wanted[i] = self.sizes()[i - added];
    } else if (i >= added && self.sizes()[i - added] != 1 && self.sizes()[i - added] != wanted[i]) {
      throw Error("The expanded size of the tensor (" + std::to_string(wanted[i]) + ") must match the existing size (" +
                  std::to_string(self.sizes()[i - added]) + ") at non-singleton dimension " + std::to_string(i) +
                  ".  Target sizes: " + to_string(wanted) + ".  Tensor sizes: " + to_string(self.sizes()));
    }
  }
  const Dims original = self.sizes();
  return ::tenon::make_view("ExpandBackward0", *this, wanted, expanded_strides(self.sizes(), self.strides(), wanted),
                            self.offset(), [original](Backward& b) { b.set(0, b.grad().sum_to_size(original)); });
}
Tensor broadcast_to(const Tensor& self, IntArrayRef sizes) { return self.expand(sizes); }

Tensor Tensor::permute(IntArrayRef dims) const {
  const TensorImpl& self = impl();
  if (static_cast<int>(dims.size()) != self.rank()) {
    throw Error("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
                "of dimensions i.e. input.dim() = " + std::to_string(self.rank()) + " is not equal to len(dims) = " +
                std::to_string(dims.size()));
  }
  Dims order;
  Dims sizes;
  Dims strides;
  std::uint32_t seen = 0;
  for (const std::int64_t dim : dims) {
    const int from = wrap_dim(dim, self.rank());
    if (seen >> from & 1) throw Error("repeated dim in permute");
    seen |= 1u << from;
    order.push_back(from);
    sizes.push_back(self.sizes()[from]);
    strides.push_back(self.strides()[from]);
  }
  return ::tenon::make_view("PermuteBackward0", *this, sizes, strides, self.offset(), [order](Backward& b) {
    Dims inverse;
    inverse.resize(order.rank());
    for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
    b.set(0, b.grad().permute(inverse));
  });
}

Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const {
  const TensorImpl& self = impl();
  const int a = wrap_dim(dim0, self.rank());
  const int b = wrap_dim(dim1, self.rank());
  if (self.rank() == 0) return alias();
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return ::tenon::make_view("TransposeBackward0", *this, sizes, strides, self.offset(),
                            [a, b](Backward& backward) { backward.set(0, backward.grad().transpose(a, b)); });
}
Tensor Tensor::t() const {
  if (dim() > 2) throw Error("t() expects a tensor with <= 2 dimensions, but self is " + std::to_string(dim()) + "D");
  return dim() < 2 ? alias() : transpose(0, 1);
}
Tensor Tensor::movedim(std::int64_t source, std::int64_t destination) const {
  const int rank = impl().rank();
  const int from = wrap_dim(source, rank);
  const int to = wrap_dim(destination, rank);
  Dims order;
  for (int i = 0; i < rank; ++i) {
    if (i != from) order.push_back(i);
  }
  order.insert(to, from);
  return permute(order);
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

Tensor& Tensor::transpose_(std::int64_t dim0, std::int64_t dim1) const { return become(*this, transpose(dim0, dim1)); }
Tensor& Tensor::t_() const { return become(*this, t()); }
Tensor& Tensor::squeeze_() const { return become(*this, squeeze()); }
Tensor& Tensor::squeeze_(std::int64_t dim) const { return become(*this, squeeze(dim)); }
Tensor& Tensor::unsqueeze_(std::int64_t dim) const { return become(*this, unsqueeze(dim)); }

Tensor Tensor::squeeze() const {
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
  return ::tenon::make_view("UnsqueezeBackward0", *this, sizes, strides, self.offset(),
                            [at](Backward& b) { b.set(0, b.grad().squeeze(at)); });
}

Tensor Tensor::select(std::int64_t dim, std::int64_t index) const {
  const TensorImpl& self = impl();
  if (self.rank() == 0) throw IndexError("select() cannot be applied to a 0-dim tensor.");
  const int at = wrap_dim(dim, self.rank());
  const std::int64_t length = self.sizes()[at];
  if (index < -length || index >= length) {
    throw IndexError("select(): index " + std::to_string(index) + " out of range for tensor of size " + to_string(self.sizes()) +
                     " at dimension " + std::to_string(at) + " (index " + std::to_string(index) +
                     " is out of bounds for dimension " + std::to_string(at) + " with size " + std::to_string(length) + ")");
  }
  if (index < 0) index += length;
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  const std::int64_t offset = self.offset() + index * strides[at];
  const Dims whole = sizes;
  sizes.erase(at);
  strides.erase(at);
  return ::tenon::make_view("SelectBackward0", *this, sizes, strides, offset, [whole, at, index](Backward& b) {
    b.set(0, embedded(b.grad(), whole, [&](const Tensor& zeros) { return zeros.select(at, index); }));
  });
}

namespace {

/// A stride times a step. Beyond 64 bits the dimension has one element at most, and its stride is never walked.
std::int64_t step_by(std::int64_t stride, std::int64_t step) {
  std::int64_t product;
  return __builtin_mul_overflow(stride, step, &product) ? stride : product;
}

}  // namespace

Tensor Tensor::slice(std::int64_t dim, std::optional<std::int64_t> start, std::optional<std::int64_t> end, std::int64_t step) const {
  const TensorImpl& self = impl();
  if (self.rank() == 0) throw IndexError("slice() cannot be applied to a 0-dim tensor.");
  if (step <= 0) throw Error("slice step must be positive");
  const int at = wrap_dim(dim, self.rank());
  const std::int64_t length = self.sizes()[at];
  std::int64_t first = start.value_or(0);
  std::int64_t last = end.value_or(length);
  if (first < 0) first += length;
  if (last < 0) last += length;
  first = std::clamp<std::int64_t>(first, 0, length);
  last = std::clamp<std::int64_t>(last, first, length);
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  const Dims whole = sizes;
  const std::int64_t offset = self.offset() + first * strides[at];
  sizes[at] = last == first ? 0 : (last - first - 1) / step + 1;
  strides[at] = step_by(strides[at], step);
  return ::tenon::make_view("SliceBackward0", *this, sizes, strides, offset, [whole, at, first, last, step](Backward& b) {
    b.set(0, embedded(b.grad(), whole, [&](const Tensor& zeros) { return zeros.slice(at, first, last, step); }));
  });
}
Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  const std::int64_t available = size(dim);
  if (length < 0) throw Error("narrow(): length must be non-negative.");
  if (start < -available || start > available) {
    throw IndexError("start out of range (expected to be in range of [" + std::to_string(-available) + ", " +
                     std::to_string(available) + "], but got " + std::to_string(start) + ")");
  }
  if (start < 0) start += available;
  if (start > available - length) {
    throw Error("start (" + std::to_string(start) + ") + length (" + std::to_string(length) + ") exceeds dimension size (" +
                std::to_string(available) + ").");
  }
  return slice(dim, start, start + length, 1);
}

Tensor Tensor::diagonal(std::int64_t offset, std::int64_t dim1, std::int64_t dim2) const {
  const TensorImpl& self = impl();
  const int a = wrap_dim(dim1, self.rank());
  const int b = wrap_dim(dim2, self.rank());
  if (a == b) throw Error("diagonal dimensions cannot be identical " + std::to_string(dim1) + ", " + std::to_string(dim2));
  Dims sizes;
  Dims strides;
  for (int i = 0; i < self.rank(); ++i) {
    if (i == a || i == b) continue;
    sizes.push_back(self.sizes()[i]);
    strides.push_back(self.strides()[i]);
  }
  const std::int64_t length = std::max<std::int64_t>(
      offset >= 0 ? std::min(self.sizes()[a], self.sizes()[b] - offset) : std::min(self.sizes()[a] + offset, self.sizes()[b]), 0);
  std::int64_t start = self.offset();
  if (length > 0) start += offset >= 0 ? offset * self.strides()[b] : -offset * self.strides()[a];
  sizes.push_back(length);
  strides.push_back(self.strides()[a] + self.strides()[b]);
  const Dims whole = self.sizes();
  return ::tenon::make_view("DiagonalBackward0", *this, sizes, strides, start, [whole, offset, a, b](Backward& backward) {
    backward.set(0, embedded(backward.grad(), whole, [&](const Tensor& zeros) { return zeros.diagonal(offset, a, b); }));
  });
}

Tensor Tensor::unfold(std::int64_t dim, std::int64_t size, std::int64_t step) const {
  const TensorImpl& self = impl();
  const int at = wrap_dim(dim, self.rank());
  const std::int64_t length = self.rank() == 0 ? 1 : self.sizes()[at];
  if (size > length) {
    throw Error("maximum size for tensor at dimension " + std::to_string(at) + " is " + std::to_string(length) + " but size is " + std::to_string(size));
  }
  if (step <= 0) throw Error("step is " + std::to_string(step) + " but must be > 0");
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  sizes.push_back(size);
  strides.push_back(self.rank() == 0 ? 1 : strides[at]);
  if (self.rank() > 0) {
    // A negative size, which as_strided() refuses, may be as far from `length` as no integer is.
    sizes[at] = size < 0 ? length : (length - size) / step + 1;
    strides[at] = step_by(strides[at], step);
  }
  return as_strided(sizes, strides, self.offset());
}

namespace {

/// Neighbouring parts of one dimension as views with one node, whose gradient is theirs joined: no part is laid into zeros of
/// the whole. Views made together are not to be modified in place. With `drop` every part has length 1 and loses the dimension.
std::vector<Tensor> parts_of(const char* name, const Tensor& self, int at, const std::vector<std::int64_t>& lengths, bool drop) {
  const TensorImpl& impl = self.impl();
  Dims sizes = impl.sizes();
  const Recording recording = record<0>(name, {&self}, [sizes, at, lengths, drop](Backward& b) {
    std::vector<Tensor> gradients;
    const Tensor* given = nullptr;
    for (std::size_t i = 0; i < lengths.size() && !given; ++i) given = b.grad(i).defined() ? &b.grad(i) : nullptr;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      Dims part = sizes;
      part[at] = lengths[i];
      const Tensor& gradient = b.grad(i);
      gradients.push_back(!gradient.defined() ? given->new_zeros(part) : drop ? gradient.unsqueeze(at) : gradient);
    }
    b.set(0, cat(gradients, at));
  });
  autograd::CreationMeta creation = autograd::CreationMeta::MULTI_OUTPUT_NODE;
  if (!autograd::modes.grad_enabled) {
    creation = autograd::modes.inference ? autograd::CreationMeta::INFERENCE_MODE : autograd::CreationMeta::NO_GRAD_MODE;
  }
  Dims strides = impl.strides();
  const std::int64_t step = strides[at];
  if (drop) {
    sizes.erase(at);
    strides.erase(at);
  }
  std::vector<Tensor> parts;
  parts.reserve(lengths.size());
  std::int64_t offset = impl.offset();
  for (const std::int64_t length : lengths) {
    if (!drop) sizes[at] = length;
    parts.push_back(alias_of(self, sizes, strides, offset));
    offset += length * step;
    autograd::make_view(self, parts.back(), creation);
    if (!recording) continue;
    const std::uint32_t number = recording.node()->add_input_metadata(parts.back());
    autograd::set_gradient_edge(parts.back(), {recording.node(), number});
  }
  return parts;
}

}  // namespace

std::vector<Tensor> Tensor::unbind(std::int64_t dim) const {
  const int at = wrap_dim(dim, impl().rank(), false);
  return parts_of("UnbindBackward0", *this, at, std::vector<std::int64_t>(static_cast<std::size_t>(size(at)), 1), true);
}
std::vector<Tensor> Tensor::split_with_sizes(IntArrayRef sizes, std::int64_t dim) const {
  const int at = wrap_dim(dim, impl().rank(), false);
  std::size_t parts = 0;
  std::int64_t start = 0;
  for (const std::int64_t part : sizes) {
    if (part < 0) throw Error("split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=" + to_string(sizes));
    if (start + part > size(at)) break;
    ++parts;
    start += part;
  }
  if (start != size(at) || parts != sizes.size()) {
    throw Error("split_with_sizes expects split_sizes to sum exactly to " + std::to_string(size(at)) +
                " (input tensor's size at dimension " + std::to_string(at) + "), but got split_sizes=" + to_string(sizes));
  }
  return parts_of("SplitWithSizesBackward0", *this, at, sizes.vec(), false);
}
std::vector<Tensor> Tensor::split(IntArrayRef sizes, std::int64_t dim) const { return split_with_sizes(sizes, dim); }
std::vector<Tensor> Tensor::split(std::int64_t part, std::int64_t dim) const {
  const int at = wrap_dim(dim, impl().rank(), false);
  const std::int64_t length = size(at);
  if (part < 0 || (part == 0 && length != 0)) throw Error("split expects split_size be non-negative, but got split_size=" + std::to_string(part));
  std::vector<std::int64_t> lengths;
  std::int64_t start = 0;
  do {
    lengths.push_back(std::min(part, length - start));
    start += part;
  } while (start < length);
  return parts_of("SplitBackward0", *this, at, lengths, false);
}
std::vector<Tensor> Tensor::chunk(std::int64_t chunks, std::int64_t dim) const {
  if (dim >= impl().rank() || impl().rank() == 0) throw Error("chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0) throw Error("chunk expects `chunks` to be greater than 0, got: " + std::to_string(chunks));
  const std::int64_t length = size(dim);
  const std::int64_t part = (length + chunks - 1) / chunks;
  if (part == 0) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunks), 0);
    return split_with_sizes(sizes, dim);
  }
  return split(part, dim);
}

// --- joining and repeating ------------------------------------------------------------------------------------------------

Tensor cat(TensorList tensors, std::int64_t dim) {
  if (tensors.empty()) throw Error("torch.cat(): expected a non-empty list of Tensors");
  // One-dimensional empty tensors are skipped, as PyTorch does for old times' sake.
  const auto skipped = [](const Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == 0; };
  constexpr std::int64_t kSkipped = -1;
  const Tensor* first = nullptr;
  for (const Tensor& tensor : tensors) {
    if (!first && !skipped(tensor)) first = &tensor;
  }
  if (!first) return tensors[0].clone();
  if (first->dim() == 0) throw Error("zero-dimensional tensor (at position 0) cannot be concatenated");
  const int at = wrap_dim(dim, first->impl().rank());
  Dims sizes = first->impl().sizes();
  sizes[at] = 0;
  Dtype dtype = first->scalar_type();
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    lengths.push_back(kSkipped);
    check_same_device("cat", {first, &tensor});
    dtype = promote_types(dtype, tensor.scalar_type());
    if (skipped(tensor)) continue;
    if (tensor.dim() != first->dim()) {
      throw Error("Tensors must have same number of dimensions: got " + std::to_string(first->dim()) + " and " + std::to_string(tensor.dim()));
    }
    for (int d = 0; d < sizes.rank(); ++d) {
      if (d != at && tensor.size(d) != sizes[d]) {
        throw Error("Sizes of tensors must match except in dimension " + std::to_string(at) + ". Expected size " +
                    std::to_string(sizes[d]) + " but got size " + std::to_string(tensor.size(d)) + " for tensor number " +
                    std::to_string(i) + " in the list.");
      }
    }
    lengths.back() = tensor.size(at);
    sizes[at] += tensor.size(at);
  }
  Recording recording;
  const bool wanted = autograd::modes.grad_enabled &&
                      std::any_of(tensors.begin(), tensors.end(), [](const Tensor& x) { return autograd::requires_grad(x); });
  Tensor result = allocate_like(*first, sizes, dtype);
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
      throw Error("stack expects each tensor to be equal size, but got " + to_string(tensors[0].sizes()) + " at entry 0 and " +
                  to_string(tensor.sizes()) + " at entry " + std::to_string(parts.size()));
    }
    parts.push_back(tensor.unsqueeze(dim));
  }
  return cat(parts, wrap_dim(dim, tensors[0].impl().rank() + 1));
}
Tensor hstack(TensorList tensors) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(tensor.dim() == 0 ? tensor.reshape({1}) : tensor);
  return cat(parts, parts.at(0).dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) {
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
      throw Error("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got one of sizes " + to_string(tensor.sizes()));
    }
    if (tensor.scalar_type() != tensors[0].scalar_type()) {
      throw Error(std::string("torch.meshgrid expects all tensors to have the same dtype, got ") +
                  toString(tensors[0].scalar_type()) + " and " + toString(tensor.scalar_type()));
    }
    if (!(tensor.device() == tensors[0].device())) throw Error("torch.meshgrid expects all tensors to have the same device");
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
    if (times < 0) throw Error("Trying to create tensor with negative dimension " + std::to_string(times));
    flat.push_back(size_product(times, sizes[i], sizes));
  }
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
  return expanded.expand(wide).clone(MemoryFormat::Contiguous).view(flat);
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
  if (dims.size() != shifts.size()) throw Error("shifts and dimensions must align");
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

Tensor constant_pad_nd(const Tensor& self, IntArrayRef amounts, const Scalar& value) {
  const int rank = self.impl().rank();
  const int padded = static_cast<int>(amounts.size() / 2);
  if (amounts.size() % 2 != 0 || padded > rank) {
    throw Error("Length of pad must be even and at most twice the number of dimensions (" + std::to_string(rank) + "), got " + to_string(amounts));
  }
  Tensor core = self;
  Dims sizes = self.impl().sizes();
  Dims before = Dims::filled(rank, 0);
  for (int i = 0; i < padded; ++i) {
    const int dim = rank - 1 - i;
    const std::int64_t left = amounts[static_cast<std::size_t>(2 * i)];
    const std::int64_t right = amounts[static_cast<std::size_t>(2 * i + 1)];
    if (sizes[dim] + left + right < 0) {
      throw Error("The input size " + std::to_string(sizes[dim]) + ", plus negative padding " + std::to_string(left) + " and " +
                  std::to_string(right) + ", resulted in a negative output size, which is invalid.");
    }
    if (left < 0) core = core.narrow(dim, -left, core.size(dim) + left);
    if (right < 0) core = core.narrow(dim, 0, core.size(dim) + right);
    sizes[dim] += left + right;
    before[dim] = std::max<std::int64_t>(left, 0);
  }
  const std::vector<std::int64_t> given = amounts.vec();
  Recording recording = record<0>("ConstantPadNdBackward0", {&self}, [given](Backward& b) {
    std::vector<std::int64_t> opposite = given;
    for (std::int64_t& amount : opposite) amount = -amount;
    b.set(0, constant_pad_nd(b.grad(), opposite, 0));
  });
  NoGradGuard no_grad;
  const Tensor result = as_fresh(tenon::full(sizes, value, self.options()));
  Tensor inside = result;
  for (int dim = 0; dim < rank; ++dim) inside = inside.narrow(dim, before[dim], core.size(dim));
  run(TENON_OP("copy"), ops::state_of(self), {view_of(inside)}, {view_of(core)});
  recording.output(result);
  return result;
}

Tensor pad(const Tensor& self, IntArrayRef amounts, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") return constant_pad_nd(self, amounts, value.value_or(0));
  // The others read positions of the same dimension: an index for each padded one.
  Tensor result = self;
  for (std::size_t i = 0; 2 * i + 1 < amounts.size(); ++i) {
    const std::int64_t dim = self.dim() - 1 - static_cast<std::int64_t>(i);
    const std::int64_t length = self.size(dim);
    const std::int64_t left = amounts[2 * i];
    const std::int64_t right = amounts[2 * i + 1];
    if (left == 0 && right == 0) continue;
    Tensor index = arange(-left, length + right, TensorOptions(kInt64).device(self.device()));
    if (mode == "replicate") {
      index = index.clamp(0, length - 1);
    } else if (mode == "circular") {
      if (left > length || right > length) throw Error("Padding value causes wrapping around more than once.");
      index = index.remainder(length);
    } else if (mode == "reflect") {
      if (left >= length || right >= length) {
        throw Error("Padding size should be less than the corresponding input dimension, but got: padding (" + std::to_string(left) +
                    ", " + std::to_string(right) + ") at dimension " + std::to_string(dim) + " of input " + to_string(self.sizes()));
      }
      index = index.abs();
      index = index.mul(-1).add(length - 1).abs().mul(-1).add(length - 1);
    } else {
      throw Error("Unrecognised padding mode " + std::string(mode));
    }
    result = result.index_select(dim, index);
  }
  return result;
}

}  // namespace tenon
