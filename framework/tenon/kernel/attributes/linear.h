// Attributes of matrix products and convolutions.
#pragma once

#include <cstdint>

namespace tenon {

/// matmul: out = alpha * a @ b + beta * addend.
struct MatmulAttributes {
  double alpha = 1;
  double beta = 1;
};

/// conv, conv_backward_input, conv_backward_weight. Arrays are indexed by spatial dimension, outermost first.
struct ConvAttributes {
  std::int32_t spatial = 2;  ///< 1, 2 or 3: the ranks of x, w and y are spatial + 2
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t padding[3] = {0, 0, 0};  ///< zeros on both sides
  std::int64_t dilation[3] = {1, 1, 1};
  std::int64_t groups = 1;
};

/// max_pool, avg_pool and their backwards, im2col and col2im.
struct PoolAttributes {
  std::int32_t spatial = 2;
  std::int64_t kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t padding[3] = {0, 0, 0};
  std::int64_t dilation[3] = {1, 1, 1};  ///< max_pool, im2col and col2im only
  bool count_include_pad = true;         ///< avg_pool only
  std::int64_t divisor_override = 0;     ///< avg_pool only; 0 = none
};

}  // namespace tenon
