// Padding: what the options say, checked, for the operator.
#include <tenon/nn/functional/pad.h>

#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <string_view>
#include <variant>

namespace tenon::nn::functional {
namespace {

std::string_view name_of(const PadMode& mode) {
  if (std::holds_alternative<enumtype::kReflect>(mode)) return "reflect";
  if (std::holds_alternative<enumtype::kReplicate>(mode)) return "replicate";
  if (std::holds_alternative<enumtype::kCircular>(mode)) return "circular";
  return "constant";
}

}  // namespace

Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  const auto& pads = options.pad();
  if (pads.size() % 2 != 0) throw Error("Padding length must be divisible by 2");
  if (static_cast<std::int64_t>(pads.size()) / 2 > input.dim()) throw Error("Padding length too large");
  const bool constant = std::holds_alternative<enumtype::kConstant>(options.mode());
  if (!constant && options.value() != 0) {
    throw Error(
        fmt::format("Padding mode \"{}\" doesn't take in value argument", enumtype::get_enum_name(options.mode())));
  }
  const Tensor result = tenon::pad(input, pads, name_of(options.mode()), options.value());
  return result.is_same(input) ? input.clone() : result;
}

}  // namespace tenon::nn::functional
