// Indexing by numbers, slices and tensors.
#pragma once

#include <tenon/tensor/shape/indexing.h>
#include <tenon/tensor/tensor.h>

namespace tenon {

template <class T>
using List = std::vector<T>;

TENON_API Tensor index(const Tensor& self, const std::vector<std::optional<Tensor>>& indices);
TENON_API Tensor& index_put_(Tensor& self, const std::vector<std::optional<Tensor>>& indices, const Tensor& values,
                             bool accumulate = false);
TENON_API Tensor index_select(const Tensor& self, std::int64_t dim, const Tensor& index);
inline Tensor gather(const Tensor& self, std::int64_t dim, const Tensor& index, bool sparse_grad = false) {
  return self.gather(dim, index, sparse_grad);
}
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.scatter(dim, index, source);
}
inline Tensor scatter_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.scatter_add(dim, index, source);
}
inline Tensor index_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                        const Scalar& alpha = 1) {
  return self.index_add(dim, index, source, alpha);
}
inline Tensor masked_select(const Tensor& self, const Tensor& mask) { return self.masked_select(mask); }
inline Tensor nonzero(const Tensor& self) { return self.nonzero(); }
inline Tensor take(const Tensor& self, const Tensor& index) { return self.take(index); }
TENON_API Tensor one_hot(const Tensor& self, std::int64_t classes = -1);

}  // namespace tenon
