// New tensors: constants, sequences, random numbers, views of the caller's memory. Without options they have the
// default dtype, on the CPU. A negative size throws Error.
#pragma once

#include <tenon/tensor/tensor.h>

#include <functional>

namespace tenon {

/// A tensor of these sizes whose elements are not set, contiguous unless a format is given. Throws Error for a negative
/// size, more dims than 16, and a format that does not fit the rank.
TENON_API Tensor empty(IntArrayRef sizes, const TensorOptions& options = {},
                       std::optional<MemoryFormat> format = std::nullopt);
/// empty() with these strides, in elements; the storage is as large as they reach. Throws Error for a negative stride.
TENON_API Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
/// A tensor of zeros of these sizes. Throws Error for a negative size.
TENON_API Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {});
/// A tensor of ones of these sizes. Throws Error for a negative size.
TENON_API Tensor ones(IntArrayRef sizes, const TensorOptions& options = {});
/// A tensor of one value. Without a dtype: the default one for a floating value, int64 for an integer, bool for a bool.
/// Throws Error for a value that the dtype cannot hold.
TENON_API Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {});
/// empty() with the sizes, dtype, device and memory format of another tensor, where the options say nothing else.
/// Throws Error for a format that does not fit the rank.
TENON_API Tensor empty_like(const Tensor& like, const TensorOptions& options = {},
                            std::optional<MemoryFormat> format = std::nullopt);
/// zeros() with the sizes, dtype, device and memory format of another tensor. Throws Error for a format that does not
/// fit the rank.
TENON_API Tensor zeros_like(const Tensor& like, const TensorOptions& options = {},
                            std::optional<MemoryFormat> format = std::nullopt);
/// ones() with the sizes, dtype, device and memory format of another tensor. Throws Error for a format that does not
/// fit the rank.
TENON_API Tensor ones_like(const Tensor& like, const TensorOptions& options = {},
                           std::optional<MemoryFormat> format = std::nullopt);
/// full() with the sizes, dtype, device and memory format of another tensor. Throws Error as full().
TENON_API Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options = {});
/// A tensor of no dimension that holds a number, an integer too in the default dtype unless the options say otherwise.
/// Throws Error for one that the dtype cannot hold.
TENON_API Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

/// start (0 if none is given), start + step … up to end, which is left out: int64 where all are integers, else the
/// default dtype, unless the options say otherwise. Throws Error for a step of 0 or of the wrong sign, and bounds that
/// are not finite.
TENON_API Tensor arange(const Scalar& end, const TensorOptions& options = {});
TENON_API Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
TENON_API Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options = {});
/// start, start + step … up to and with end, in the default dtype unless the options say otherwise. Throws Error as
/// arange(), which is to be preferred: whether the last number is reached depends on rounding.
TENON_API Tensor range(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                       const TensorOptions& options = {});
/// `steps` values at equal distances from start to end, both included; of one step start alone. Throws Error for a
/// negative number of steps.
TENON_API Tensor linspace(const Scalar& start, const Scalar& end, std::int64_t steps = 100,
                          const TensorOptions& options = {});
/// base to the power of linspace(start, end, steps): (steps). Throws Error for a negative number of steps.
TENON_API Tensor logspace(const Scalar& start, const Scalar& end, std::int64_t steps = 100, double base = 10,
                          const TensorOptions& options = {});
/// hamming_window() with alpha = beta = 0.5.
TENON_API Tensor hann_window(std::int64_t length, const TensorOptions& options = {});
TENON_API Tensor hann_window(std::int64_t length, bool periodic, const TensorOptions& options = {});
/// alpha - beta * cos(2 pi i / n) for i from 0 to length - 1: (length). n is `length` in a periodic window, which goes
/// on with its beginning, and length - 1 in a symmetric one. Throws Error for a negative length, and a dtype that is
/// not floating.
TENON_API Tensor hamming_window(std::int64_t length, const TensorOptions& options = {});
TENON_API Tensor hamming_window(std::int64_t length, bool periodic, const TensorOptions& options = {});
TENON_API Tensor hamming_window(std::int64_t length, bool periodic, double alpha, const TensorOptions& options = {});
TENON_API Tensor hamming_window(std::int64_t length, bool periodic, double alpha, double beta,
                                const TensorOptions& options = {});
/// Powers of the elements of `x`, (n), a column each: (n, columns), n columns without a number. The first column holds
/// the highest power, or with `increasing` the 0th. Throws Error unless x is a vector, and for a negative number.
TENON_API Tensor vander(const Tensor& x, std::optional<std::int64_t> columns = std::nullopt, bool increasing = false);
/// Ones on the main diagonal and zeros elsewhere, (n, n) or (n, m). Throws Error for a negative size.
TENON_API Tensor eye(std::int64_t n, const TensorOptions& options = {});
TENON_API Tensor eye(std::int64_t n, std::int64_t m, const TensorOptions& options = {});

/// Draws from the uniform distribution on [0, 1). Throws Error for a dtype that is not floating.
TENON_API Tensor rand(IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor rand(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options = {});
/// Draws from the standard normal distribution. Throws Error for a dtype that is not floating.
TENON_API Tensor randn(IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor randn(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options = {});
/// Integers from low (0 if none is given) up to high, which is left out; int64 unless the options say otherwise. Throws
/// Error for an empty range, and one that an integer dtype does not hold.
TENON_API Tensor randint(std::int64_t high, IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor randint(std::int64_t low, std::int64_t high, IntArrayRef sizes, const TensorOptions& options = {});
/// The numbers from 0 to n - 1 in random order; int64 unless the options say otherwise. Throws Error for a negative n.
TENON_API Tensor randperm(std::int64_t n, const TensorOptions& options = {});
/// rand() with the sizes, dtype, device and memory format of another tensor.
TENON_API Tensor rand_like(const Tensor& like, const TensorOptions& options = {});
/// randn() with the sizes, dtype, device and memory format of another tensor.
TENON_API Tensor randn_like(const Tensor& like, const TensorOptions& options = {});
/// 1 with the probability that each element of `p` gives, else 0, in p's sizes and dtype; no gradient. Throws Error for
/// a probability outside of 0 to 1, and for NaN.
TENON_API Tensor bernoulli(const Tensor& p, std::optional<Generator> generator = std::nullopt);
/// Draws from the normal distribution of this mean and standard deviation. Throws Error for a negative deviation, and a
/// dtype that is not floating.
TENON_API Tensor normal(double mean, double deviation, IntArrayRef sizes,
                        std::optional<Generator> generator = std::nullopt, const TensorOptions& options = {});
/// Positions drawn with probabilities in proportion to the weights: of weights (n) or (N, n) the result is (samples) or
/// (N, samples), int64. Throws Error for a weight that is negative or not finite, weights that sum up to 0, and more
/// samples than weights without replacement.
TENON_API Tensor multinomial(const Tensor& weights, std::int64_t samples, bool replacement = false,
                             std::optional<Generator> generator = std::nullopt);

/// A tensor in the caller's memory, which is not copied and must live as long as the tensor and its views. `deleter`
/// gets `data` when the last of them is gone. Contiguous unless strides (in elements) are given; dtype and device are
/// those of the options. Throws Error for a negative size, and strides of another number than sizes.
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter,
                           const TensorOptions& options = {});
TENON_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                           const TensorOptions& options = {});

}  // namespace tenon
