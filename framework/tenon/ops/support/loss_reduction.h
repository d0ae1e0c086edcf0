// What losses share: how their terms become the result.
#pragma once

#include <tenon/kernel/attributes/normalization.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon::ops {

/// at::Reduction's numbers: 0 is none, 1 the mean and 2 the sum. Throws Error for others.
LossReduction loss_reduction(const char* op, std::int64_t reduction);

/// The terms of a loss, their mean or their sum. Throws Error as loss_reduction().
Tensor reduced(const char* op, const Tensor& terms, std::int64_t reduction);

}  // namespace tenon::ops
