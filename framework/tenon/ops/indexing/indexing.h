// Indexing by numbers, slices and tensors.
#pragma once

#include <tenon/tensor/shape/indexing.h>
#include <tenon/tensor/tensor.h>

namespace tenon {

template <class T>
using List = std::vector<T>;

/// Elements picked by tensors of positions (or masks), one for each leading dim, undefined for a whole dim; the tensors
/// are broadcast. NumPy's rules.
TENON_API Tensor index(const Tensor& self, const std::vector<std::optional<Tensor>>& indices);
/// Writes `values`, broadcast, to the places that index() reads; added where `accumulate`, else the last of equal
/// places counts.
TENON_API Tensor& index_put_(Tensor& self, const std::vector<std::optional<Tensor>>& indices, const Tensor& values,
                             bool accumulate = false);
/// The slices at the positions (a vector of int64 or int32) along `dim`; a copy.
TENON_API Tensor index_select(const Tensor& self, std::int64_t dim, const Tensor& index);
/// result[i][j] = self[index[i][j]][j] for dim 0, and so on; `index` is int64 or int32 of `self`'s rank. Throws Error
/// for a position out of range.
inline Tensor gather(const Tensor& self, std::int64_t dim, const Tensor& index, bool sparse_grad = false) {
  return self.gather(dim, index, sparse_grad);
}
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.scatter(dim, index, source);
}
/// A copy of `self` with `source` added at the places that gather() would read; places may come twice.
inline Tensor scatter_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.scatter_add(dim, index, source);
}
/// A copy of `self` with alpha * source's slices added at the positions along `dim`; positions may come twice.
inline Tensor index_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                        const Scalar& alpha = 1) {
  return self.index_add(dim, index, source, alpha);
}
/// The elements where the mask, broadcast with `self`, is true: a vector, a copy.
inline Tensor masked_select(const Tensor& self, const Tensor& mask) { return self.masked_select(mask); }
/// The positions of the elements that are not zero: (count, rank), int64.
inline Tensor nonzero(const Tensor& self) { return self.nonzero(); }
/// The elements at positions of the flattened tensor; `index`'s sizes. Throws Error for a position out of range.
inline Tensor take(const Tensor& self, const Tensor& index) { return self.take(index); }
/// int64 classes of any sizes -> those sizes and `classes` behind them (one more than the largest where it is -1).
/// Throws Error for a negative class.
TENON_API Tensor one_hot(const Tensor& self, std::int64_t classes = -1);

}  // namespace tenon
