// A dim cut into parts, each a view.
#pragma once

#include <tenon/tensor/tensor.h>

#include <vector>

namespace tenon {

/// A view of each position of `dim`, without that dim.
inline std::vector<Tensor> unbind(const Tensor& self, std::int64_t dim = 0) { return self.unbind(dim); }
/// Views of `size` positions each along `dim`, the last one of what is left. Throws Error for a tensor of no dimension,
/// a negative size, and 0 for a dim that is not empty.
inline std::vector<Tensor> split(const Tensor& self, std::int64_t size, std::int64_t dim = 0) {
  return self.split(size, dim);
}
/// Views of the given sizes along `dim`. Throws Error unless they add up to the dim.
inline std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef sizes, std::int64_t dim = 0) {
  return self.split_with_sizes(sizes, dim);
}
/// split() into views of ceil(size / chunks) positions of `dim`, the last one of what is left: `chunks` views, or
/// fewer. Throws Error for chunks below 1.
inline std::vector<Tensor> chunk(const Tensor& self, std::int64_t chunks, std::int64_t dim = 0) {
  return self.chunk(chunks, dim);
}
/// Parts of `dim` as views: `sections` of them, the first size % sections one longer; or parts that begin at 0 and at
/// each of `indices`. Throws Error for a tensor of no dimension, and sections < 1.
inline std::vector<Tensor> tensor_split(const Tensor& self, std::int64_t sections, std::int64_t dim = 0) {
  return self.tensor_split(sections, dim);
}
inline std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, std::int64_t dim = 0) {
  return self.tensor_split(indices, dim);
}
/// A 0-dim tensor is a number of sections, a 1-dim one holds indices. Throws Error unless it is int64 and on the CPU.
inline std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& indices_or_sections, std::int64_t dim = 0) {
  return self.tensor_split(indices_or_sections, dim);
}
/// tensor_split() along the second dim, of a vector along the first. Throws Error where the sections do not divide it.
inline std::vector<Tensor> hsplit(const Tensor& self, std::int64_t sections) { return self.hsplit(sections); }
inline std::vector<Tensor> hsplit(const Tensor& self, IntArrayRef indices) { return self.hsplit(indices); }
/// tensor_split() along the first of at least 2 dims. Throws Error where the sections do not divide it.
inline std::vector<Tensor> vsplit(const Tensor& self, std::int64_t sections) { return self.vsplit(sections); }
inline std::vector<Tensor> vsplit(const Tensor& self, IntArrayRef indices) { return self.vsplit(indices); }
/// tensor_split() along the third dim. Throws Error where the sections do not divide it.
inline std::vector<Tensor> dsplit(const Tensor& self, std::int64_t sections) { return self.dsplit(sections); }
inline std::vector<Tensor> dsplit(const Tensor& self, IntArrayRef indices) { return self.dsplit(indices); }

}  // namespace tenon
