// Tests a model before and after it is made integers of.
#include <tenon/train/quantized_inference.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/seconds_since.h>
#include <tenon/core/units.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/quantization/quantize.h>
#include <tenon/ops/ops.h>
#include <tenon/train/step/training_step.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace tenon::train {
namespace {

namespace q = nn::quantization;

struct Tested {
  double loss = 0, accuracy = 0, seconds = 0;
  std::int64_t peak_bytes = 0;
};

Tested tested(const QuantizedInference& r) {
  Batches& data = *r.data.test;
  data.begin(0, /*shuffle=*/false);
  const std::int64_t size = data.size();
  r.model.forward(data.get(0, std::min(r.test_batch_size, size)).input);  // what is made once is not timed
  double right = 0, answers = 0;
  Tested result;
  for (std::int64_t first = 0; first < size; first += r.test_batch_size) {
    const Batch batch = data.get(first, std::min(r.test_batch_size, size - first));
    r.device.allocator().reset_peak_stats();
    const auto start = std::chrono::steady_clock::now();
    const Tensor logits = r.model.forward(batch.input);
    result.seconds += seconds_since(start);
    const MemoryStats stats = r.device.allocator().stats();
    result.peak_bytes =
        std::max(result.peak_bytes, stats.requested_bytes.peak -
                                        stats.requested_by_purpose[static_cast<std::size_t>(Purpose::kData)].current);
    result.loss += loss_of(r.model, logits, batch.target).item<double>() *
                   static_cast<double>(std::min(r.test_batch_size, size - first)) / static_cast<double>(size);
    if (r.model.has_answers) right += right_answers(logits, batch.target).item<double>();
    answers += static_cast<double>(batch.answers);
  }
  result.accuracy = r.model.has_answers ? right / answers : std::numeric_limits<double>::quiet_NaN();
  return result;
}

void make_integers(const QuantizedInference& r) {
  nn::Module& module = *r.model.module;
  if (r.scheme == "dynamic") return q::quantize_dynamic(module);
  if (r.scheme == "weight_only_int8") return q::quantize_weights(module, 8);
  if (r.scheme == "weight_only_int4") return q::quantize_weights(module, 4);
  q::fuse_modules(module, r.model.fusions.empty() ? q::groups_of_sequentials(module) : r.model.fusions);
  q::prepare(module, q::get_default_qconfig("onednn"));
  Batches& data = *r.data.train;
  data.begin(0, /*shuffle=*/true);
  for (std::int64_t i = 0; i < r.batches && (i + 1) * r.batch_size <= data.size(); ++i)
    r.model.forward(data.get(i * r.batch_size, r.batch_size).input);
  q::release_unobserved(module);
  q::convert(module);
}

}  // namespace

std::vector<std::string> quantizations() {
  return {"none", "static", "dynamic", "weight_only_int8", "weight_only_int4"};
}

void check_quantizable(const nn::Module& module, std::string_view scheme) {
  const bool linear_alone = scheme != "static";
  if (scheme == "none" || q::quantizable_layers(module, linear_alone) > 0) return;
  throw Error(fmt::format("'{}' makes integers of {}, and the model has no such layer", scheme,
                          linear_alone ? "linear layers" : "linear layers and convolutions"));
}

std::vector<std::pair<std::string, double>> compare_quantized(const QuantizedInference& request) {
  NoGradGuard no_grad;
  request.model.module->eval();
  request.model.module->zero_grad(/*set_to_none=*/true);
  std::vector<std::pair<std::string, double>> figures;
  const auto note = [&](const std::string& kind) {
    const Tested found = tested(request);
    figures.emplace_back(kind + "_test_loss", found.loss);
    figures.emplace_back(kind + "_test_accuracy", found.accuracy);
    figures.emplace_back(kind + "_parameter_bytes", static_cast<double>(q::bytes_of(*request.model.module)));
    figures.emplace_back(kind + "_inference_peak_bytes", static_cast<double>(found.peak_bytes));
    figures.emplace_back(kind + "_inference_seconds", found.seconds);
  };
  note("float");
  make_integers(request);
  note("quantized");
  figures.emplace_back("quantized_layers", static_cast<double>(q::quantized_layers(*request.model.module)));
  return figures;
}

std::string without_kernels(const DeviceState& device, std::string_view scheme) {
  const bool weights_alone = scheme.starts_with("weight_only");
  const OperatorId op = weights_alone ? intern_operator("weight_only_linear") : intern_operator("quantized_conv");
  if (find_kernel(device.device().type(), op) != nullptr) return {};
  return fmt::format(
      "; {} has no kernels for products of integers, so that floats are made of them for each: results are those of "
      "integers and parameters take less, but nothing is faster",
      device.device().str());
}

std::string sentence_on(std::string_view scheme, std::span<const std::pair<std::string, double>> figures) {
  const auto of = [&](const std::string& name) {
    const auto found = std::ranges::find(figures, name, &std::pair<std::string, double>::first);
    return found == figures.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
  const auto both = [&](const std::string& name, const auto& shown) {
    return fmt::format("{} to {}", shown(of("float_" + name)), shown(of("quantized_" + name)));
  };
  const auto bytes = [](double value) { return format_bytes(static_cast<std::size_t>(value)); };
  const std::string quality =
      std::isnan(of("float_test_accuracy"))
          ? "test loss " + both("test_loss", [](double value) { return fmt::format("{:.4f}", value); })
          : "test accuracy " + both("test_accuracy", [](double value) { return fmt::format("{:.2f}", 100 * value); }) +
                " %";
  return fmt::format("{}: {}, parameters {}, peak of inference {}, {} s", scheme, quality,
                     both("parameter_bytes", bytes), both("inference_peak_bytes", bytes),
                     both("inference_seconds", [](double value) { return fmt::format("{:.3f}", value); }));
}

}  // namespace tenon::train
