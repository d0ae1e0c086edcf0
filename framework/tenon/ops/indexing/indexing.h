// Indexing by numbers, slices and tensors.
#pragma once

#include <tenon/tensor/shape/indexing.h>
#include <tenon/tensor/tensor.h>

namespace tenon {

template <class T>
using List = std::vector<T>;

/// Elements picked by NumPy's rules, a copy: one tensor for each leading dim, of positions (int64 or int32, negative
/// ones count from the end), or undefined for the whole dim; a mask (bool or uint8) stands for as many dims as it has.
/// The tensors are broadcast to one another; their dims take the place of the dims indexed, or stand first where these
/// are not neighbours. Throws IndexError for a position out of range, too many indices, and a mask of other sizes.
TENON_API Tensor index(const Tensor& self, const std::vector<std::optional<Tensor>>& indices);
/// Writes `values`, broadcast, to the positions that index() reads. Where a position comes twice the last value counts,
/// or with `accumulate` all are added. Throws Error for values of another dtype than self's. Throws Error as index()
/// too.
TENON_API Tensor& index_put_(Tensor& self, const std::vector<std::optional<Tensor>>& indices, const Tensor& values,
                             bool accumulate = false);
/// The slices at the positions `index` (a vector of int64 or int32) along `dim`; a copy. Throws IndexError for a
/// position that is negative or out of range.
TENON_API Tensor index_select(const Tensor& self, std::int64_t dim, const Tensor& index);
/// result[i][j] = self[index[i][j]][j] for dim 0, and so on: `index`, int64 or int32, has self's rank, at most its
/// sizes in the other dims, and the result's sizes. `sparse_grad` has no effect. Throws Error for a position that is
/// negative or out of range.
inline Tensor gather(const Tensor& self, std::int64_t dim, const Tensor& index, bool sparse_grad = false) {
  return self.gather(dim, index, sparse_grad);
}
/// A copy of `self` with result[index[i][j]][j] = source[i][j] for dim 0, and so on: the positions that gather() would
/// read. Where one comes twice the last value counts. `source` has self's dtype and at least index's sizes. Throws
/// Error as gather().
inline Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.scatter(dim, index, source);
}
/// A copy of `self` with `source` added at the positions that gather() would read; one that comes twice gets both.
/// Sizes, dtypes and errors as of scatter().
inline Tensor scatter_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return self.scatter_add(dim, index, source);
}
/// A copy of `self` with alpha times source's slices added at the positions `index` (a vector of int64 or int32) along
/// `dim`; one that comes twice gets both. Throws Error for a position out of range, and another dtype than self's.
inline Tensor index_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                        const Scalar& alpha = 1) {
  return self.index_add(dim, index, source, alpha);
}
/// The elements where the mask (bool or uint8) is true, a vector and a copy; self and mask are broadcast to one
/// another. Throws Error for a mask of another dtype, for sizes that do not broadcast, and on a device without data.
inline Tensor masked_select(const Tensor& self, const Tensor& mask) { return self.masked_select(mask); }
/// The positions of the elements that are not zero: (count, rank), int64. Throws Error on a device without data, which
/// cannot tell how many there are.
inline Tensor nonzero(const Tensor& self) { return self.nonzero(); }
/// The elements at positions of the flattened tensor, negative ones counted from the end, in index's sizes. Throws
/// IndexError for a position out of range.
inline Tensor take(const Tensor& self, const Tensor& index) { return self.take(index); }
/// For classes (int64) of any sizes: int64 of these sizes and `classes` behind them, 1 at each class and 0 elsewhere.
/// -1 stands for one more than the largest class. Throws Error for a class that is negative or not below `classes`,
/// another dtype, and -1 for an empty tensor.
TENON_API Tensor one_hot(const Tensor& self, std::int64_t classes = -1);

}  // namespace tenon
