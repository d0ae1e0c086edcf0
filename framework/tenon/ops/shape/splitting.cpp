// A dim cut into parts, each a view. Declared in splitting.h and tensor.h.
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/splitting.h>
#include <tenon/ops/support/make_view.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

using namespace ops;

namespace {

/// Neighbouring parts of one dimension as views with one node, which joins their gradients instead of adding each to
/// zeros of the whole size. Such views must not be modified in place. With `drop` every part has length 1 and loses the
/// dimension.
std::vector<Tensor> parts_of(const char* name, const Tensor& self, int at, const std::vector<std::int64_t>& lengths,
                             bool drop) {
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
    record_view(self, parts.back(), recording, autograd::CreationMeta::MULTI_OUTPUT_NODE);
  }
  return parts;
}

}  // namespace

std::vector<Tensor> Tensor::unbind(std::int64_t dim) const {
  TENON_SCOPE(unbind, *this, dim)
  const int at = wrap_dim(dim, impl().rank(), false);
  return parts_of("UnbindBackward0", *this, at, std::vector<std::int64_t>(static_cast<std::size_t>(size(at)), 1), true);
}
std::vector<Tensor> Tensor::split_with_sizes(IntArrayRef sizes, std::int64_t dim) const {
  TENON_SCOPE(split_with_sizes, *this, sizes, dim)
  const int at = wrap_dim(dim, impl().rank(), false);
  std::size_t parts = 0;
  std::int64_t start = 0;
  for (const std::int64_t part : sizes) {
    if (part < 0)
      throw Error("split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=" +
                  to_string(sizes));
    if (start + part > size(at)) break;
    ++parts;
    start += part;
  }
  if (start != size(at) || parts != sizes.size()) {
    throw Error("split_with_sizes expects split_sizes to sum exactly to " + std::to_string(size(at)) +
                " (input tensor's size at dimension " + std::to_string(at) +
                "), but got split_sizes=" + to_string(sizes));
  }
  return parts_of("SplitWithSizesBackward0", *this, at, sizes.vec(), false);
}
std::vector<Tensor> Tensor::split(IntArrayRef sizes, std::int64_t dim) const {
  TENON_SCOPE(split, *this, sizes, dim)
  return split_with_sizes(sizes, dim);
}
std::vector<Tensor> Tensor::split(std::int64_t part, std::int64_t dim) const {
  TENON_SCOPE(split, *this, part, dim)
  if (this->dim() == 0) throw Error("split expects at least a 1-dimensional tensor");
  const int at = wrap_dim(dim, impl().rank(), false);
  const std::int64_t length = size(at);
  if (part < 0) throw Error("split expects split_size be non-negative, but got split_size=" + std::to_string(part));
  if (part == 0 && length != 0) {
    throw Error("split_size can only be 0 if dimension size is 0, but got dimension size of " + std::to_string(length));
  }
  std::vector<std::int64_t> lengths;
  std::int64_t start = 0;
  do {
    lengths.push_back(std::min(part, length - start));
    start += part;
  } while (start < length);
  return parts_of("SplitBackward0", *this, at, lengths, false);
}
std::vector<Tensor> Tensor::chunk(std::int64_t chunks, std::int64_t dim) const {
  TENON_SCOPE(chunk, *this, chunks, dim)
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

namespace {

void check_splits(const Tensor& self) {
  if (self.dim() == 0) {
    throw Error("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  }
}

void check_rank(const char* name, const Tensor& self, std::int64_t rank) {
  if (self.dim() < rank) {
    throw Error(
        fmt::format("torch.{} requires a tensor with at least {} dimension, but got a tensor with {} dimensions!", name,
                    rank, self.dim()));
  }
}

/// hsplit and its like: `dim` of a tensor of at least `rank` dims in equal parts.
std::vector<Tensor> even_split(const char* name, const Tensor& self, std::int64_t rank, std::int64_t dim,
                               std::int64_t sections) {
  check_rank(name, self, rank);
  if (sections <= 0 || self.size(dim) % sections != 0) {
    throw Error(
        fmt::format("torch.{} attempted to split along dimension {}, but the size of the dimension {} is not "
                    "divisible by the split_size {}!",
                    name, dim, self.size(dim), sections));
  }
  return self.tensor_split(sections, dim);
}

/// The same in parts that begin at 0 and at each of `indices`.
std::vector<Tensor> cut(const char* name, const Tensor& self, std::int64_t rank, std::int64_t dim,
                        IntArrayRef indices) {
  check_rank(name, self, rank);
  return self.tensor_split(indices, dim);
}

std::int64_t columns_of(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

}  // namespace

std::vector<Tensor> Tensor::tensor_split(std::int64_t sections, std::int64_t dim) const {
  TENON_SCOPE(tensor_split, *this, sections, dim)
  check_splits(*this);
  if (sections <= 0) throw Error(fmt::format("number of sections must be larger than 0, got {}", sections));
  const std::int64_t at = wrap_dim(dim, impl().rank());
  const std::int64_t length = size(at);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < sections; ++i) {
    const std::int64_t end = start + length / sections + (i < length % sections ? 1 : 0);
    parts.push_back(slice(at, start, end));
    start = end;
  }
  return parts;
}

std::vector<Tensor> Tensor::tensor_split(IntArrayRef indices, std::int64_t dim) const {
  TENON_SCOPE(tensor_split, *this, indices, dim)
  check_splits(*this);
  const std::int64_t at = wrap_dim(dim, impl().rank());
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t index : indices) {
    parts.push_back(slice(at, start, index));
    start = index;
  }
  parts.push_back(slice(at, start, std::nullopt));
  return parts;
}

std::vector<Tensor> Tensor::tensor_split(const Tensor& indices_or_sections, std::int64_t dim) const {
  TENON_SCOPE(tensor_split, *this, indices_or_sections, dim)
  check_splits(*this);
  if (indices_or_sections.scalar_type() != kInt64) {
    throw Error(std::string("tensor_split expected tensor_indices_or_sections to have dtype of long, but got ") +
                tenon::toString(indices_or_sections.scalar_type()));
  }
  if (!indices_or_sections.is_cpu()) {
    throw Error("tensor_split expected tensor_indices_or_sections to be on cpu, but it's on " +
                indices_or_sections.device().str());
  }
  if (indices_or_sections.dim() > 1) {
    throw Error(
        fmt::format("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                    "tensor, but got a "
                    "tensor with {} dims",
                    indices_or_sections.dim()));
  }
  if (indices_or_sections.dim() == 0) return tensor_split(indices_or_sections.item<std::int64_t>(), dim);
  const Tensor list = indices_or_sections.contiguous();
  return tensor_split(IntArrayRef(list.data_ptr<std::int64_t>(), static_cast<std::size_t>(list.numel())), dim);
}

std::vector<Tensor> Tensor::hsplit(std::int64_t sections) const {
  TENON_SCOPE(hsplit, *this, sections)
  return even_split("hsplit", *this, 1, columns_of(*this), sections);
}
std::vector<Tensor> Tensor::hsplit(IntArrayRef indices) const {
  TENON_SCOPE(hsplit, *this, indices)
  return cut("hsplit", *this, 1, columns_of(*this), indices);
}
std::vector<Tensor> Tensor::vsplit(std::int64_t sections) const {
  TENON_SCOPE(vsplit, *this, sections)
  return even_split("vsplit", *this, 2, 0, sections);
}
std::vector<Tensor> Tensor::vsplit(IntArrayRef indices) const {
  TENON_SCOPE(vsplit, *this, indices)
  return cut("vsplit", *this, 2, 0, indices);
}
std::vector<Tensor> Tensor::dsplit(std::int64_t sections) const {
  TENON_SCOPE(dsplit, *this, sections)
  return even_split("dsplit", *this, 3, 2, sections);
}
std::vector<Tensor> Tensor::dsplit(IntArrayRef indices) const {
  TENON_SCOPE(dsplit, *this, indices)
  return cut("dsplit", *this, 3, 2, indices);
}

}  // namespace tenon
