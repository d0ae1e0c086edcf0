// Tensors as sets: distinct elements or slices, and membership. The results of unique functions have no derivative.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// The distinct elements, ascending whatever `sorted` says (k); with `return_inverse` the position of each element of
/// `self` among them (int64, self's sizes); with `return_counts` how often each occurs (int64, k). What was not asked
/// for is empty. No NaN equals another. Throws Error on a device without data, which cannot tell how many there are; so
/// do the others here.
TENON_API std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted = true,
                                                      bool return_inverse = false, bool return_counts = false);
/// _unique2() without the counts: the distinct elements (k), and their positions (int64, self's sizes, or empty).
/// Throws Error as _unique2().
TENON_API std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted = true, bool return_inverse = false);
/// The distinct slices along `dim` in lexicographic order; and, whether asked for or not, the position of each slice of
/// `self` among them (int64, as many as `dim` has) and how often each occurs. Throws Error where slices are empty.
TENON_API std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, std::int64_t dim, bool sorted = true,
                                                        bool return_inverse = false, bool return_counts = false);
/// One of each run of equal neighbours, in their order: elements of the flattened tensor, or slices along `dim`.
/// Inverse and counts are those of _unique2(), of runs. Throws Error as unique_dim().
TENON_API std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse = false,
                                                                bool return_counts = false,
                                                                std::optional<std::int64_t> dim = std::nullopt);
/// unique_consecutive() of slices along `dim`. Throws Error as unique_dim().
TENON_API std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, std::int64_t dim,
                                                                    bool return_inverse = false,
                                                                    bool return_counts = false);

/// Whether each of `elements` is among `test_elements` (or is not, with `invert`): bool, of the sizes of `elements`.
/// NaN is among none. `assume_unique` has no effect. Throws Error for tensors on different devices.
TENON_API Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false,
                      bool invert = false);
TENON_API Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique = false,
                      bool invert = false);
TENON_API Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique = false,
                      bool invert = false);

}  // namespace tenon
