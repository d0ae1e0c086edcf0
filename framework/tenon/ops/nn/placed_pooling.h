// Pooling at places that the caller gives: max_unpool by indices, fractional_max_pool by samples of chance. Names,
// shapes and errors are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// Each value at the place that its index names among the elements of output_size, zeros elsewhere: input and indices
/// (int64, as max_pool gives them) of the same sizes (N, C, L) or (C, L), output_size (L). Throws Error for other sizes
/// and ranks, and an index out of range.
TENON_API Tensor max_unpool1d(const Tensor& input, const Tensor& indices, IntArrayRef output_size);
/// As max_unpool1d(), of (N, C, H, W) or (C, H, W).
TENON_API Tensor max_unpool2d(const Tensor& input, const Tensor& indices, IntArrayRef output_size);
/// As max_unpool1d(), of (N, C, D, H, W) or (C, D, H, W). Stride and padding decide nothing, as in PyTorch; each has
/// three numbers. Throws Error for other lengths, and a stride below 1.
TENON_API Tensor max_unpool3d(const Tensor& input, const Tensor& indices, IntArrayRef output_size,
                              IntArrayRef stride = {1, 1, 1}, IntArrayRef padding = {0, 0, 0});

/// Maxima over kernels at pseudo-random places, and the place of each in the H * W elements of its channel (int64): (N,
/// C, H, W) or (C, H, W) to output_size. The steps between kernels are floor or ceil of (H - kernel) / (output - 1), in
/// an order that `random_samples` decide: (N, C, 2) of numbers in [0, 1), that of W first. Graham, "Fractional
/// max-pooling", 2014. Throws Error for other ranks, and where the kernels or the samples do not fit.
TENON_API std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& input, IntArrayRef kernel_size,
                                                           IntArrayRef output_size, const Tensor& random_samples);
/// As fractional_max_pool2d(), of (N, C, D, H, W) or (C, D, H, W) with samples (N, C, 3), that of D first.
TENON_API std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& input, IntArrayRef kernel_size,
                                                           IntArrayRef output_size, const Tensor& random_samples);

}  // namespace tenon
