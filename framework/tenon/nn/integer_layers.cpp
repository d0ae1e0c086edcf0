// Layers on integers among those of floats.
#include <tenon/nn/integer_layers.h>

#include <tenon/nn/module.h>
#include <tenon/nn/serialize/archive.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tenon::nn {

namespace {

/// What a layer on integers has beside its weight, in its buffers and in archives; the other says that a row of 4 bits
/// ends within a byte.
constexpr const char *kScaleOfIntegers = "weight_scale", *kOddRow = "odd_row";

constexpr const char* kMakesIt = "load it with nn::quantization::load(), which makes of the model what was saved";

std::string sizes_text(const Tensor& weight, const Tensor& scale) {
  return fmt::format("{} ({}) with scales ({})", name_of(weight.scalar_type()), fmt::join(weight.sizes(), ", "),
                     fmt::join(scale.sizes(), ", "));
}

}  // namespace

void check_conversion(const Module& model, Dtype wanted) {
  if (wanted == kFloat32) return;
  for (const auto& item : model.named_modules())
    if (item.value()->named_buffers(/*recurse=*/false).contains(kScaleOfIntegers))
      throw Error(
          fmt::format("to({}): the layer '{}' computes on integers, whose scales are float32: convert the model "
                      "before it is quantized, or leave it in float32",
                      name_of(wanted), item.key()));
}

void check_archive(const Module& model, InputArchive& archive) {
  for (const auto& item : model.named_modules()) {
    const auto key = [&](const char* name) { return item.key().empty() ? name : item.key() + "." + name; };
    const Module& module = *item.value();
    const auto buffers = module.named_buffers(/*recurse=*/false);
    for (const char* mark : {kScaleOfIntegers, "fused", "fused_relu"}) {
      Tensor found;
      if (buffers.contains(mark) || !archive.try_read(key(mark), found)) continue;
      throw Error(fmt::format(
          "the archive has '{}', of a layer {}, and this {} is one of floats: {}", archive.full_name(key(mark)),
          mark == kScaleOfIntegers ? "on integers" : "that was fused for quantization", module.name(), kMakesIt));
    }
    const auto parameters = module.named_parameters(/*recurse=*/false);
    Tensor weight, scale;
    if (!buffers.contains(kScaleOfIntegers) || !parameters.contains("weight")) continue;
    if (!archive.try_read(key("weight"), weight)) continue;  // reading it says so
    const Tensor &own = parameters["weight"], &own_scale = buffers[kScaleOfIntegers];
    if (!archive.try_read(key(kScaleOfIntegers), scale))
      throw Error(
          fmt::format("the archive's '{}' is {} ({}), and this layer is on integers, {}: make a model of floats and {}",
                      archive.full_name(key("weight")), name_of(weight.scalar_type()), fmt::join(weight.sizes(), ", "),
                      sizes_text(own, own_scale), kMakesIt));
    Tensor input, odd;
    const bool is_static = archive.try_read(key("input_scale"), input), is_odd = archive.try_read(key(kOddRow), odd);
    if (own.numel() == 0) continue;  // it has been made for what is read
    if (weight.dtype() == own.dtype() && weight.sizes() == own.sizes() && scale.sizes() == own_scale.sizes() &&
        is_static == buffers.contains("input_scale") && is_odd == buffers.contains(kOddRow))
      continue;
    const auto more = [](bool calibrated, bool odd_rows) {
      return fmt::format("{}{}", calibrated ? ", calibrated" : "",
                         odd_rows ? ", half of a row's last byte unused" : "");
    };
    throw Error(fmt::format("the archive's '{}' is {}{}, and this layer's {}{}: make a model of floats and {}",
                            archive.full_name(key("weight")), sizes_text(weight, scale), more(is_static, is_odd),
                            sizes_text(own, own_scale),
                            more(buffers.contains("input_scale"), buffers.contains(kOddRow)), kMakesIt));
  }
}

}  // namespace tenon::nn
