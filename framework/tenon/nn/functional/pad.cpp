// Padding: what the options say, checked, for the operator.
#include <tenon/nn/functional/pad.h>

#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <string_view>

namespace tenon::nn::functional {
namespace {

std::string_view name_of(const PadMode& mode) {
  if (mode.is<enumtype::kReflect>()) return "reflect";
  if (mode.is<enumtype::kReplicate>()) return "replicate";
  if (mode.is<enumtype::kCircular>()) return "circular";
  return "constant";
}

}  // namespace

Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  const auto& pads = options.pad();
  if (pads.size() % 2 != 0) throw Error("Padding length must be divisible by 2");
  if (static_cast<std::int64_t>(pads.size()) / 2 > input.dim()) throw Error("Padding length too large");
  const bool constant = options.mode().is<enumtype::kConstant>();
  if (!constant && options.value() != 0) {
    throw Error(
        fmt::format("Padding mode \"{}\" doesn't take in value argument", enumtype::get_enum_name(options.mode())));
  }
  const Tensor result = tenon::pad(input, pads, name_of(options.mode()), options.value());
  return result.is_same(input) ? input.clone() : result;
}

}  // namespace tenon::nn::functional
