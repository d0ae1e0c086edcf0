// Views of a part: a position, a range, a diagonal, windows. Each knows how its gradient is laid back into the whole.
// Declared in slicing.h and tensor.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/shape/slicing.h>
#include <tenon/ops/support/make_view.h>

#include <algorithm>

namespace tenon {

using namespace ops;

namespace {

/// A gradient for a part: zeros of the whole with the part filled in.
template <class Part>
Tensor embedded(const Tensor& gradient, const Dims& whole, Part part) {
  Tensor result = gradient.new_zeros(whole);
  part(result).copy_(gradient);
  return result;
}

}  // namespace

Tensor Tensor::as_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<std::int64_t> offset) const {
  TENON_SCOPE(as_strided, *this, sizes, strides, offset)
  const std::int64_t start = offset.value_or(storage_offset());
  const Dims new_sizes(sizes);
  const Dims new_strides(strides);
  if (new_sizes.rank() != new_strides.rank()) throw Error("mismatch in length of strides and shape");
  for (const std::int64_t stride : new_strides) {
    if (stride < 0) {
      throw Error("as_strided: Negative strides are not supported at the moment, got strides: " +
                  to_string(new_strides));
    }
  }
  if (start < 0) throw Error("Tensor: invalid storage offset " + std::to_string(start));
  const std::size_t needed = strided_bytes(new_sizes, new_strides, scalar_type(), start);
  if (needed > impl().storage().nbytes()) {
    throw Error("setStorage: sizes " + to_string(new_sizes) + ", strides " + to_string(new_strides) +
                ", storage offset " + std::to_string(start) + ", and itemsize " + std::to_string(itemsize()) +
                " requiring a storage size of " + std::to_string(needed) + " are out of bounds for storage of size " +
                std::to_string(impl().storage().nbytes()));
  }
  const Dims self_sizes = impl().sizes();
  const Dims self_strides = impl().strides();
  const std::int64_t self_offset = storage_offset();
  const bool shares_places = impl().may_overlap_itself();
  return ops::make_view("AsStridedBackward0", *this, new_sizes, new_strides, start, [=](Backward& b) {
    // Positions of the storage that self reaches, each summed over the view's elements that lie there, then read as
    // self.
    const auto extent = [](const Dims& sizes, const Dims& strides) {
      std::int64_t reach = 1;
      for (int i = 0; i < sizes.rank(); ++i) reach += sizes[i] == 0 ? 0 : (sizes[i] - 1) * strides[i];
      return reach;
    };
    const std::int64_t first = std::min(self_offset, start);
    const std::int64_t last =
        std::max(self_offset + extent(self_sizes, self_strides), start + extent(new_sizes, new_strides));
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

Tensor Tensor::select(std::int64_t dim, std::int64_t index) const {
  const TensorImpl& self = impl();
  if (self.rank() == 0) throw IndexError("select() cannot be applied to a 0-dim tensor.");
  const int at = wrap_dim(dim, self.rank());
  const std::int64_t length = self.sizes()[at];
  if (index < -length || index >= length) {
    throw IndexError("select(): index " + std::to_string(index) + " out of range for tensor of size " +
                     to_string(self.sizes()) + " at dimension " + std::to_string(at) + " (index " +
                     std::to_string(index) + " is out of bounds for dimension " + std::to_string(at) + " with size " +
                     std::to_string(length) + ")");
  }
  if (index < 0) index += length;
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  const std::int64_t offset = self.offset() + index * strides[at];
  const Dims whole = sizes;
  sizes.erase(at);
  strides.erase(at);
  return ops::make_view(
      TENON_VIEW(select, *this, dim, index), "SelectBackward0", *this, sizes, strides, offset,
      [whole, at, index](Backward& b) {
        b.set(0, embedded(b.grad(), whole, [&](const Tensor& zeros) { return zeros.select(at, index); }));
      });
}

namespace {

/// A stride times a step. Where that overflows the dimension has one element at most, so that its stride is never used.
std::int64_t step_by(std::int64_t stride, std::int64_t step) {
  std::int64_t product;
  return __builtin_mul_overflow(stride, step, &product) ? stride : product;
}

}  // namespace

Tensor Tensor::slice(std::int64_t dim, std::optional<std::int64_t> start, std::optional<std::int64_t> end,
                     std::int64_t step) const {
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
  return ops::make_view(
      TENON_VIEW(slice, *this, dim, start, end, step), "SliceBackward0", *this, sizes, strides, offset,
      [whole, at, first, last, step](Backward& b) {
        b.set(0, embedded(b.grad(), whole, [&](const Tensor& zeros) { return zeros.slice(at, first, last, step); }));
      });
}
Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  TENON_SCOPE(narrow, *this, dim, start, length)
  if (this->dim() == 0) throw Error("narrow() cannot be applied to a 0-dim tensor.");
  const std::int64_t available = size(dim);
  if (start < -available || start > available) {
    throw IndexError("Dimension out of range (expected to be in range of [" + std::to_string(-available) + ", " +
                     std::to_string(available - 1) + "], but got " + std::to_string(start) + "): narrow()'s start");
  }
  if (start < 0) start += available;
  if (length < 0 || start > available - length) {
    throw Error("start (" + std::to_string(start) + ") + length (" + std::to_string(length) +
                ") exceeds dimension size (" + std::to_string(available) + ").");
  }
  return slice(dim, start, start + length, 1);
}

Tensor Tensor::diagonal(std::int64_t offset, std::int64_t dim1, std::int64_t dim2) const {
  TENON_SCOPE(diagonal, *this, offset, dim1, dim2)
  const TensorImpl& self = impl();
  const int a = wrap_dim(dim1, self.rank());
  const int b = wrap_dim(dim2, self.rank());
  if (a == b)
    throw Error("diagonal dimensions cannot be identical " + std::to_string(dim1) + ", " + std::to_string(dim2));
  Dims sizes;
  Dims strides;
  for (int i = 0; i < self.rank(); ++i) {
    if (i == a || i == b) continue;
    sizes.push_back(self.sizes()[i]);
    strides.push_back(self.strides()[i]);
  }
  const std::int64_t length = std::max<std::int64_t>(offset >= 0 ? std::min(self.sizes()[a], self.sizes()[b] - offset)
                                                                 : std::min(self.sizes()[a] + offset, self.sizes()[b]),
                                                     0);
  std::int64_t start = self.offset();
  if (length > 0) start += offset >= 0 ? offset * self.strides()[b] : -offset * self.strides()[a];
  sizes.push_back(length);
  strides.push_back(self.strides()[a] + self.strides()[b]);
  const Dims whole = self.sizes();
  return ops::make_view("DiagonalBackward0", *this, sizes, strides, start, [whole, offset, a, b](Backward& backward) {
    backward.set(0,
                 embedded(backward.grad(), whole, [&](const Tensor& zeros) { return zeros.diagonal(offset, a, b); }));
  });
}

Tensor Tensor::unfold(std::int64_t dim, std::int64_t size, std::int64_t step) const {
  TENON_SCOPE(unfold, *this, dim, size, step)
  const TensorImpl& self = impl();
  const int at = wrap_dim(dim, self.rank());
  const std::int64_t length = self.rank() == 0 ? 1 : self.sizes()[at];
  if (size > length) {
    throw Error("maximum size for tensor at dimension " + std::to_string(at) + " is " + std::to_string(length) +
                " but size is " + std::to_string(size));
  }
  if (step <= 0) throw Error("step is " + std::to_string(step) + " but must be > 0");
  Dims sizes = self.sizes();
  Dims strides = self.strides();
  sizes.push_back(size);
  strides.push_back(self.rank() == 0 ? 1 : strides[at]);
  if (self.rank() > 0) {
    // as_strided() refuses a negative size; until then `length - size` must not overflow.
    sizes[at] = size < 0 ? length : (length - size) / step + 1;
    strides[at] = step_by(strides[at], step);
  }
  // Of elements that share memory as_strided() would share the gradient.
  if (!self.may_overlap_itself() || size < 1) return as_strided(sizes, strides, self.offset());
  const Dims whole = self.sizes();
  return ops::make_view(
      "UnfoldBackward0", *this, sizes, strides, self.offset(), [whole, at, size, step](Backward& backward) {
        const Tensor& gradient = backward.grad();
        const std::int64_t reach = (gradient.size(at) - 1) * step + 1;
        Tensor sum;
        for (std::int64_t k = 0; k < size; ++k) {
          const Tensor part = embedded(gradient.select(-1, k), whole,
                                       [&](const Tensor& zeros) { return zeros.slice(at, k, k + reach, step); });
          sum = sum.defined() ? sum + part : part;
        }
        backward.set(0, sum);
      });
}

}  // namespace tenon
