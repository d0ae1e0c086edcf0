// Tensors out of nothing: constants, sequences, random numbers, foreign memory, literals.
#pragma once

#include <tenon/tensor/tensor.h>

#include <functional>

namespace tenon {

/// A tensor whose elements are not set.
TENON_API Tensor empty(IntArrayRef sizes, const TensorOptions& options = {},
                       std::optional<MemoryFormat> format = std::nullopt);
/// empty() under given strides, in elements; the storage is as large as they reach.
TENON_API Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
/// A tensor of zeros.
TENON_API Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {});
/// A tensor of ones.
TENON_API Tensor ones(IntArrayRef sizes, const TensorOptions& options = {});
/// Without a dtype: the default one for floating values, kInt64 for integers, kBool for bools.
TENON_API Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {});
/// empty() with the sizes, dtype, device and memory format of another tensor, where the options say nothing else.
TENON_API Tensor empty_like(const Tensor& like, const TensorOptions& options = {},
                            std::optional<MemoryFormat> format = std::nullopt);
/// zeros() with the sizes, dtype, device and memory format of another tensor.
TENON_API Tensor zeros_like(const Tensor& like, const TensorOptions& options = {},
                            std::optional<MemoryFormat> format = std::nullopt);
/// ones() with the sizes, dtype, device and memory format of another tensor.
TENON_API Tensor ones_like(const Tensor& like, const TensorOptions& options = {},
                           std::optional<MemoryFormat> format = std::nullopt);
/// full() with the sizes, dtype and device of another tensor.
TENON_API Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options = {});
/// A tensor of no dimension that holds a number.
TENON_API Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

/// start, start + step … below end: of the integers' dtype int64, else the default one, unless the options say. Throws
/// Error for a step of 0 or of the wrong sign.
TENON_API Tensor arange(const Scalar& end, const TensorOptions& options = {});
TENON_API Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
TENON_API Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options = {});
/// start, start + step … up to and with end, in the default dtype unless the options say: use arange().
TENON_API Tensor range(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                       const TensorOptions& options = {});
/// `steps` values from start to end, both included.
TENON_API Tensor linspace(const Scalar& start, const Scalar& end, std::int64_t steps = 100,
                          const TensorOptions& options = {});
/// base to the power of linspace(start, end, steps).
TENON_API Tensor logspace(const Scalar& start, const Scalar& end, std::int64_t steps = 100, double base = 10,
                          const TensorOptions& options = {});
/// The identity, (n, n) or (n, m).
TENON_API Tensor eye(std::int64_t n, const TensorOptions& options = {});
TENON_API Tensor eye(std::int64_t n, std::int64_t m, const TensorOptions& options = {});

/// Values of U(0, 1), 1 left out.
TENON_API Tensor rand(IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor rand(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options = {});
/// Values of N(0, 1).
TENON_API Tensor randn(IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor randn(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options = {});
/// Integers from low (0 if none is given) up to high, which is left out. Throws Error for an empty range.
TENON_API Tensor randint(std::int64_t high, IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor randint(std::int64_t low, std::int64_t high, IntArrayRef sizes, const TensorOptions& options = {});
/// The numbers from 0 to n - 1 in random order; int64.
TENON_API Tensor randperm(std::int64_t n, const TensorOptions& options = {});
/// rand() with the sizes, dtype and device of another tensor.
TENON_API Tensor rand_like(const Tensor& like, const TensorOptions& options = {});
/// randn() with the sizes, dtype and device of another tensor.
TENON_API Tensor randn_like(const Tensor& like, const TensorOptions& options = {});
/// 1 with the probability that each element of `p` gives, else 0; `p`'s sizes and dtype. Throws Error for one outside
/// of 0 to 1.
TENON_API Tensor bernoulli(const Tensor& p, std::optional<Generator> generator = std::nullopt);
/// Values of N(mean, deviation^2): of given sizes, or with a mean, a deviation or both for each element.
TENON_API Tensor normal(double mean, double deviation, IntArrayRef sizes,
                        std::optional<Generator> generator = std::nullopt, const TensorOptions& options = {});
/// `samples` positions of each row of weights (n) or (N, n), drawn with probabilities in proportion; int64.
TENON_API Tensor multinomial(const Tensor& weights, std::int64_t samples, bool replacement = false,
                             std::optional<Generator> generator = std::nullopt);

/// Memory of the caller's, not copied. `deleter` runs when the last view is gone.
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter,
                           const TensorOptions& options = {});
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                           const TensorOptions& options = {});

}  // namespace tenon
