// x.index({…}) and x[…]: basic indices are views, and what tensors stand among them is left to index().
// Declared in tensor.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/support/support.h>

#include <algorithm>

namespace tenon {

using namespace ops;
using indexing::TensorIndex;
using Indices = std::vector<std::optional<Tensor>>;

namespace {

std::int64_t consumed(ArrayRef<TensorIndex> indices) {
  std::int64_t count = 0;
  for (const TensorIndex& index : indices) {
    if (index.is_tensor()) {
      const Dtype dtype = index.tensor().scalar_type();
      count += dtype == kBool || dtype == kUInt8 ? index.tensor().dim() : 1;
    } else if (index.is_integer() || index.is_slice()) {
      ++count;
    }
  }
  return count;
}

/// Applies the indices that give views, and collects the others in `advanced`.
// Long: one pass over the indices, in which each kind of index moves the same three positions.
Tensor apply_basic(const Tensor& self, ArrayRef<TensorIndex> given, Indices& advanced) {
  Tensor result = self;
  std::int64_t dim = 0;
  const std::int64_t named = consumed(given);
  // In x.index({i, tensor}) the number i selects, as in PyTorch; it is not made a tensor.
  const auto set = [&](Tensor index) {
    advanced.resize(
        static_cast<std::size_t>(std::max<std::int64_t>(dim + 1, static_cast<std::int64_t>(advanced.size()))));
    advanced[static_cast<std::size_t>(dim)] = std::move(index);
    ++dim;
  };
  std::int64_t named_at = -1;  // the position among the indices given is what an error names, as in PyTorch
  for (const TensorIndex& index : given) {
    ++named_at;
    if (index.is_none()) {
      result = result.unsqueeze(dim++);
    } else if (index.is_ellipsis()) {
      if (named > self.dim()) {
        throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()));
      }
      dim += self.dim() - named;
    } else if (index.is_slice()) {
      const indexing::Slice& slice = index.slice();
      if (slice.step() < 0) throw ValueError("step must be greater than zero");
      if (result.dim() == 0) throw IndexError("slice() cannot be applied to a 0-dim tensor.");
      if (dim >= result.dim())
        throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()));
      if (slice.start() == 0 && slice.stop() >= result.size(dim) && slice.step() == 1) {
        ++dim;
        continue;
      }
      result = result.slice(dim++, slice.start(),
                            slice.stop() == indexing::INDEX_MAX ? std::optional<std::int64_t>() : slice.stop(),
                            slice.step());
    } else if (index.is_integer()) {
      if (self.dim() == 0) {
        throw IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number");
      }
      if (dim >= result.dim())
        throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()));
      const std::int64_t length = result.size(dim);
      if (index.integer() < -length || index.integer() >= length) {
        throw IndexError("index " + std::to_string(index.integer()) + " is out of bounds for dimension " +
                         std::to_string(named_at) + " with size " + std::to_string(length));
      }
      result = result.select(dim, index.integer());
    } else if (index.is_boolean()) {
      result = result.unsqueeze(dim);
      set(index.boolean() ? tenon::zeros({1}, TensorOptions(kInt64).device(self.device()))
                          : tenon::empty({0}, TensorOptions(kInt64).device(self.device())));
    } else {
      const Tensor& tensor = index.tensor();
      const Dtype dtype = tensor.scalar_type();
      if (tensor.dim() == 0 && is_integral(dtype, true)) {
        if (dtype != kUInt8 && dtype != kBool) {
          const std::int64_t position = tensor.item<std::int64_t>();
          if (dim >= result.dim())
            throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()));
          const std::int64_t length = result.size(dim);
          if (position < -length || position >= length) {
            throw IndexError("index " + std::to_string(position) + " is out of bounds for dimension " +
                             std::to_string(named_at) + " with size " + std::to_string(length));
          }
          result = result.select(dim, position);
        } else {
          result = result.unsqueeze(dim);
          set(tensor.item<bool>() ? tenon::zeros({1}, TensorOptions(kInt64).device(self.device()))
                                  : tenon::empty({0}, TensorOptions(kInt64).device(self.device())));
        }
        continue;
      }
      if (dtype == kBool || dtype == kUInt8) {
        // A mask takes as many dimensions as it has.
        const std::int64_t width = tensor.dim();
        set(tensor);
        // Empty entries fill the mask's other dimensions in `advanced`, so that later indices stand at their dimension;
        // without_padding() drops them.
        dim += width - 1;
        while (static_cast<std::int64_t>(advanced.size()) < dim) advanced.emplace_back(Tensor());
        continue;
      }
      set(tensor);
    }
  }
  return result;
}

/// Whether the indices are one mask and nothing else.
bool named_once_by_mask(const Indices& indices) {
  int masks = 0;
  for (const std::optional<Tensor>& index : indices) {
    if (!index || !index->defined()) continue;
    if (index->scalar_type() != kBool && index->scalar_type() != kUInt8) return false;
    ++masks;
  }
  return masks == 1;
}

/// Entries that pad a wide mask are dropped: expanded() makes the mask's own columns.
Indices without_padding(const Indices& advanced) {
  Indices result;
  for (std::size_t i = 0; i < advanced.size(); ++i) {
    result.push_back(advanced[i]);
    if (advanced[i] && advanced[i]->defined()) {
      const Dtype dtype = advanced[i]->scalar_type();
      if (dtype == kBool || dtype == kUInt8)
        i += static_cast<std::size_t>(std::max<std::int64_t>(advanced[i]->dim() - 1, 0));
    }
  }
  return result;
}

bool any_tensor(const Indices& indices) {
  return std::any_of(indices.begin(), indices.end(), [](const auto& index) { return index && index->defined(); });
}

}  // namespace

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  if (indices.empty()) throw Error("Passing an empty index list to Tensor::index() is not valid syntax");
  Indices advanced;
  Tensor result = apply_basic(*this, indices, advanced);
  if (!any_tensor(advanced)) return result.is_same(*this) ? alias() : result;
  return tenon::index(result, without_padding(advanced));
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const { return index(ArrayRef<TensorIndex>(indices)); }

Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& values) {
  if (indices.empty()) throw Error("Passing an empty index list to Tensor::index_put_() is not valid syntax");
  Indices advanced;
  const Tensor target = apply_basic(*this, indices, advanced);
  if (!any_tensor(advanced)) {
    Tensor source = values;
    while (source.dim() > target.dim() && source.size(0) == 1) source = source.squeeze(0);
    target.copy_(source.expand(target.sizes()));
    return *this;
  }
  // One value under a mask is a fill, which takes any dtype.
  const Indices indices_left = without_padding(advanced);
  const bool fills = values.numel() == 1 && named_once_by_mask(indices_left);
  target.index_put_(indices_left, fills ? values.to(scalar_type()) : values, false);
  return *this;
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) {
  if (!indices.empty()) {
    Indices advanced;
    const Tensor target = apply_basic(*this, indices, advanced);
    if (!any_tensor(advanced)) {
      target.fill_(value);
      return *this;
    }
  }
  return index_put_(indices, scalar_tensor_like(value, *this));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) {
  return index_put_(ArrayRef<TensorIndex>(indices), values);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) {
  return index_put_(ArrayRef<TensorIndex>(indices), value);
}

Tensor Tensor::operator[](std::int64_t position) const { return select(0, position); }
Tensor Tensor::operator[](const Scalar& position) const {
  if (!position.isIntegral()) throw IndexError("Can only index tensors with integral scalars");
  return (*this)[position.toLong()];
}
Tensor Tensor::operator[](const Tensor& position) const {
  if (!position.defined()) throw IndexError("Can only index with tensors that are defined");
  if (position.dim() != 0) throw IndexError("Can only index with tensors that are scalars (zero-dim)");
  return (*this)[position.item()];
}

namespace indexing {
std::ostream& operator<<(std::ostream& stream, const TensorIndex& index) {
  if (index.is_none()) return stream << "None";
  if (index.is_ellipsis()) return stream << "...";
  if (index.is_integer()) return stream << index.integer();
  if (index.is_boolean()) return stream << (index.boolean() ? "true" : "false");
  if (index.is_slice()) return stream << index.slice();
  return stream << index.tensor();
}
std::ostream& operator<<(std::ostream& stream, const std::vector<TensorIndex>& indices) {
  stream << "(";
  for (std::size_t i = 0; i < indices.size(); ++i) stream << (i ? ", " : "") << indices[i];
  return stream << ")";
}
}  // namespace indexing

}  // namespace tenon
