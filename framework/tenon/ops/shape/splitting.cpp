// tensor_split and its like: parts of a dim as views of their own. Declared in rearrange.h and tensor.h.
#include <tenon/ops/shape/rearrange.h>
#include <tenon/tensor/shape/dims.h>

#include <fmt/format.h>

namespace tenon {

namespace {

void check_splits(const Tensor& self) {
  if (self.dim() == 0) {
    throw Error("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  }
}

/// hsplit and its like: `dim` of a tensor of at least `rank` dims in equal parts.
std::vector<Tensor> even_split(const char* name, const Tensor& self, std::int64_t rank, std::int64_t dim,
                               std::int64_t sections) {
  if (self.dim() < rank) {
    throw Error(
        fmt::format("torch.{} requires a tensor with at least {} dimension, but got a tensor with {} dimensions!", name,
                    rank, self.dim()));
  }
  if (sections <= 0 || self.size(dim) % sections != 0) {
    throw Error(
        fmt::format("torch.{} attempted to split along dimension {}, but the size of the dimension {} is not "
                    "divisible by the split_size {}!",
                    name, dim, self.size(dim), sections));
  }
  return self.tensor_split(sections, dim);
}

std::vector<Tensor> cut(const char* name, const Tensor& self, std::int64_t rank, std::int64_t dim,
                        IntArrayRef indices) {
  if (self.dim() < rank) {
    throw Error(
        fmt::format("torch.{} requires a tensor with at least {} dimension, but got a tensor with {} dimensions!", name,
                    rank, self.dim()));
  }
  return self.tensor_split(indices, dim);
}

std::int64_t columns_of(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

}  // namespace

std::vector<Tensor> Tensor::tensor_split(std::int64_t sections, std::int64_t dim) const {
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
  return even_split("hsplit", *this, 1, columns_of(*this), sections);
}
std::vector<Tensor> Tensor::hsplit(IntArrayRef indices) const {
  return cut("hsplit", *this, 1, columns_of(*this), indices);
}
std::vector<Tensor> Tensor::vsplit(std::int64_t sections) const { return even_split("vsplit", *this, 2, 0, sections); }
std::vector<Tensor> Tensor::vsplit(IntArrayRef indices) const { return cut("vsplit", *this, 2, 0, indices); }
std::vector<Tensor> Tensor::dsplit(std::int64_t sections) const { return even_split("dsplit", *this, 3, 2, sections); }
std::vector<Tensor> Tensor::dsplit(IntArrayRef indices) const { return cut("dsplit", *this, 3, 2, indices); }

}  // namespace tenon
