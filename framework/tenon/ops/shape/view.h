// Views: the same memory under other sizes and strides; and operators that join or repeat tensors.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

inline Tensor reshape(const Tensor& self, IntArrayRef sizes) { return self.reshape(sizes); }
inline Tensor flatten(const Tensor& self, std::int64_t start_dim = 0, std::int64_t end_dim = -1) {
  return self.flatten(start_dim, end_dim);
}
inline Tensor transpose(const Tensor& self, std::int64_t a, std::int64_t b) { return self.transpose(a, b); }
inline Tensor t(const Tensor& self) { return self.t(); }
inline Tensor permute(const Tensor& self, IntArrayRef dims) { return self.permute(dims); }
inline Tensor squeeze(const Tensor& self) { return self.squeeze(); }
inline Tensor squeeze(const Tensor& self, std::int64_t dim) { return self.squeeze(dim); }
inline Tensor unsqueeze(const Tensor& self, std::int64_t dim) { return self.unsqueeze(dim); }
inline Tensor select(const Tensor& self, std::int64_t dim, std::int64_t index) { return self.select(dim, index); }
inline Tensor slice(const Tensor& self, std::int64_t dim = 0, std::optional<std::int64_t> start = std::nullopt,
                    std::optional<std::int64_t> end = std::nullopt, std::int64_t step = 1) {
  return self.slice(dim, start, end, step);
}
inline Tensor narrow(const Tensor& self, std::int64_t dim, std::int64_t start, std::int64_t length) {
  return self.narrow(dim, start, length);
}
/// libtorch's private name for reshape()'s view: as_strided() at the tensor's own offset.
inline Tensor _reshape_alias(const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  return self.as_strided(sizes, strides);
}
inline Tensor as_strided(const Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                         std::optional<std::int64_t> offset = std::nullopt) {
  return self.as_strided(sizes, strides, offset);
}
inline Tensor diagonal(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1) {
  return self.diagonal(offset, dim1, dim2);
}
inline Tensor movedim(const Tensor& self, std::int64_t a, std::int64_t b) { return self.movedim(a, b); }
inline std::vector<Tensor> unbind(const Tensor& self, std::int64_t dim = 0) { return self.unbind(dim); }
inline std::vector<Tensor> split(const Tensor& self, std::int64_t size, std::int64_t dim = 0) {
  return self.split(size, dim);
}
inline std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef sizes, std::int64_t dim = 0) {
  return self.split_with_sizes(sizes, dim);
}
inline std::vector<Tensor> chunk(const Tensor& self, std::int64_t chunks, std::int64_t dim = 0) {
  return self.chunk(chunks, dim);
}
inline Tensor flip(const Tensor& self, IntArrayRef dims) { return self.flip(dims); }
inline Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims = {}) { return self.roll(shifts, dims); }
inline Tensor tril(const Tensor& self, std::int64_t diagonal = 0) { return self.tril(diagonal); }
inline Tensor triu(const Tensor& self, std::int64_t diagonal = 0) { return self.triu(diagonal); }
inline Tensor diag(const Tensor& self, std::int64_t diagonal = 0) { return self.diag(diagonal); }
inline Tensor repeat_interleave(const Tensor& self, std::int64_t repeats,
                                std::optional<std::int64_t> dim = std::nullopt) {
  return self.repeat_interleave(repeats, dim);
}

TENON_API Tensor cat(TensorList tensors, std::int64_t dim = 0);
inline Tensor concat(TensorList tensors, std::int64_t dim = 0) { return cat(tensors, dim); }
TENON_API Tensor stack(TensorList tensors, std::int64_t dim = 0);
TENON_API Tensor hstack(TensorList tensors);
TENON_API Tensor vstack(TensorList tensors);
TENON_API std::vector<Tensor> broadcast_tensors(TensorList tensors);
TENON_API Tensor broadcast_to(const Tensor& self, IntArrayRef sizes);
TENON_API std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing = "ij");
TENON_API Tensor pad(const Tensor& self, IntArrayRef amounts, std::string_view mode = "constant",
                     std::optional<double> value = std::nullopt);
TENON_API Tensor constant_pad_nd(const Tensor& self, IntArrayRef amounts, const Scalar& value = 0);

}  // namespace tenon
