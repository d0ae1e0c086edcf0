// Padding: F::pad(x, F::PadFuncOptions({1, 1}).mode(tenon::kReflect)).
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::nn::functional {

using PadMode = std::variant<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;

struct PadFuncOptions {
  using mode_t = PadMode;
  PadFuncOptions(std::vector<std::int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT: as in libtorch
  TENON_ARG(std::vector<std::int64_t>, pad);
  TENON_ARG(mode_t, mode) = enumtype::kConstant();
  TENON_ARG(double, value) = 0;
};

/// `pad` holds two numbers per dimension, the last dimension first. Negative numbers cut, in constant mode.
TENON_API Tensor pad(const Tensor& input, const PadFuncOptions& options);

}  // namespace tenon::nn::functional
