// Tensors out of nothing: constants, sequences, random numbers, foreign memory, literals.
#pragma once

#include <tenon/tensor/tensor.h>

#include <functional>

namespace tenon {

TENON_API Tensor empty(IntArrayRef sizes, const TensorOptions& options = {},
                       std::optional<MemoryFormat> format = std::nullopt);
TENON_API Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
TENON_API Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor ones(IntArrayRef sizes, const TensorOptions& options = {});
/// Without a dtype: the default one for floating values, kInt64 for integers, kBool for bools.
TENON_API Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {});
TENON_API Tensor empty_like(const Tensor& like, const TensorOptions& options = {},
                            std::optional<MemoryFormat> format = std::nullopt);
TENON_API Tensor zeros_like(const Tensor& like, const TensorOptions& options = {},
                            std::optional<MemoryFormat> format = std::nullopt);
TENON_API Tensor ones_like(const Tensor& like, const TensorOptions& options = {},
                           std::optional<MemoryFormat> format = std::nullopt);
TENON_API Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options = {});
TENON_API Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

TENON_API Tensor arange(const Scalar& end, const TensorOptions& options = {});
TENON_API Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
TENON_API Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options = {});
TENON_API Tensor range(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                       const TensorOptions& options = {});
TENON_API Tensor linspace(const Scalar& start, const Scalar& end, std::int64_t steps = 100,
                          const TensorOptions& options = {});
TENON_API Tensor logspace(const Scalar& start, const Scalar& end, std::int64_t steps = 100, double base = 10,
                          const TensorOptions& options = {});
TENON_API Tensor eye(std::int64_t n, const TensorOptions& options = {});
TENON_API Tensor eye(std::int64_t n, std::int64_t m, const TensorOptions& options = {});

TENON_API Tensor rand(IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor rand(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options = {});
TENON_API Tensor randn(IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor randn(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options = {});
TENON_API Tensor randint(std::int64_t high, IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor randint(std::int64_t low, std::int64_t high, IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor randperm(std::int64_t n, const TensorOptions& options = {});
TENON_API Tensor rand_like(const Tensor& like, const TensorOptions& options = {});
TENON_API Tensor randn_like(const Tensor& like, const TensorOptions& options = {});
TENON_API Tensor bernoulli(const Tensor& p, std::optional<Generator> generator = std::nullopt);
TENON_API Tensor normal(double mean, double deviation, IntArrayRef sizes,
                        std::optional<Generator> generator = std::nullopt, const TensorOptions& options = {});
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
