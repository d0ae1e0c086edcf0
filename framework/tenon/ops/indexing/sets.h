// Tensors as sets: distinct elements or slices, and membership. The results of unique functions have no derivative.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Distinct elements ascending (k); with `return_inverse` their numbers for every element, of self's sizes; with
/// `return_counts` how often each occurs (k). What was not asked for is empty. No NaN equals another.
TENON_API std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted = true,
                                                      bool return_inverse = false, bool return_counts = false);
/// The distinct elements, sorted, and, if asked for, where each element of `self` is among them (int64, `self`'s
/// sizes).
TENON_API std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted = true, bool return_inverse = false);
/// Distinct slices along `dim` in lexicographic order, with the inverse (size of dim) and the counts.
TENON_API std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, std::int64_t dim, bool sorted = true,
                                                        bool return_inverse = false, bool return_counts = false);
/// One of each run of equal elements (of the flattened tensor), or of equal slices along `dim`, in the order given.
TENON_API std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse = false,
                                                                bool return_counts = false,
                                                                std::optional<std::int64_t> dim = std::nullopt);
/// As unique_dim(), of neighbours only: what comes again later stays.
TENON_API std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, std::int64_t dim,
                                                                    bool return_inverse = false,
                                                                    bool return_counts = false);

/// Whether each of `elements` is among `test_elements` (or is not, with `invert`): kBool of the sizes of `elements`.
TENON_API Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false,
                      bool invert = false);
TENON_API Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique = false,
                      bool invert = false);
TENON_API Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique = false,
                      bool invert = false);

}  // namespace tenon
