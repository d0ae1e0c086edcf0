// Padding: F::pad(x, F::PadFuncOptions({1, 1}).mode(tenon::kReflect)).
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::nn::functional {

using PadMode = enumtype::OneOf<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;

struct PadFuncOptions {
  using mode_t = PadMode;
  PadFuncOptions(std::vector<std::int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT: as in libtorch
  TENON_ARG(std::vector<std::int64_t>, pad);        ///< amounts before and after, the last dim first
  TENON_ARG(mode_t, mode) = enumtype::kConstant();  ///< kConstant, kReflect, kReplicate or kCircular
  TENON_ARG(double, value) = 0;                     ///< what is put there by kConstant
};

/// `pad` holds two numbers per dimension, the last dimension first. Negative numbers cut, in constant mode. Throws
/// Error for an odd number, more pairs than dims, and a value that is not 0 in another mode than constant.
TENON_API Tensor pad(const Tensor& input, const PadFuncOptions& options);

}  // namespace tenon::nn::functional
