// Integers of 8 bits: functions and layers give what PyTorch's give, on the same scales.
#include <tenon/nn/quantization/qconfig.h>
#include <tenon/ops/all_ops.h>

#include "pytorch_values/recorded.h"

#include <cstdint>
#include <memory>

namespace tenon::test {
namespace {

using nlohmann::json;

Tensor floats_of(const json& values, const std::vector<std::int64_t>& sizes) {
  return tenon::tensor(numbers_of(values), TensorOptions(kFloat64)).to(kFloat32).view(sizes);
}
Tensor vector_of(const json& values) { return floats_of(values, {static_cast<std::int64_t>(values.size())}); }
Tensor bytes_of(const json& values, const std::vector<std::int64_t>& sizes, Dtype dtype) {
  return tenon::tensor(numbers_of(values), TensorOptions(kFloat64)).to(dtype).view(sizes);
}
std::vector<std::int64_t> sizes_of(const json& value) { return value.get<std::vector<std::int64_t>>(); }
Dtype dtype_of_word(const json& word) { return word.get<std::string>() == "int8" ? kInt8 : kUInt8; }

std::int64_t largest_difference(const Tensor& got, const json& want) {
  const Tensor other = tenon::tensor(numbers_of(want), TensorOptions(kFloat64)).view(got.sizes());
  return got.to(kFloat64).sub(other).abs().max().item<std::int64_t>();
}

TEST(PyTorchValues, OfQuantizedTensors) {
  const json file = recorded("quantization");
  const Tensor edges = vector_of(file["edges"]);
  for (const json& one : file["functions"]) {
    SCOPED_TRACE(one.dump());
    const double scale = one["scale"].get<double>();
    const auto zero_point = one["zero_point"].get<std::int64_t>();
    const Tensor q = quantized::quantize_per_tensor(edges, scale, zero_point, dtype_of_word(one["dtype"]));
    expect_recorded(q, one["values"]);
    expect_recorded(quantized::dequantize_per_tensor(q, scale, zero_point), one["back"], 1e-6);
  }
}

TEST(PyTorchValues, OfTensorsQuantizedByChannel) {
  const json file = recorded("quantization");
  const Tensor matrix = floats_of(file["matrix"], sizes_of(file["matrix_sizes"]));
  for (const json& one : file["channels"]) {
    SCOPED_TRACE(one["axis"].dump());
    const auto axis = one["axis"].get<std::int64_t>();
    const Tensor scales = vector_of(one["scales"]);
    const Tensor zero_points = vector_of(one["zero_points"]).to(kInt32);
    const Tensor q = quantized::quantize_per_channel(matrix, scales, zero_points, axis, kInt8);
    expect_recorded(q, one["values"]);
    expect_recorded(quantized::dequantize_per_channel(q, scales, zero_points, axis), one["back"], 1e-6);
  }
}

/// The recorded layer by our operators: integers at the recorded scale.
Tensor integers_of(const json& one) {
  const quantized::QuantizedTensor x{bytes_of(one["x"], sizes_of(one["x_sizes"]), kUInt8), one["x_scale"].get<double>(),
                                     one["x_zero_point"].get<std::int64_t>()};
  const quantized::QuantizedWeight w{bytes_of(one["w"], sizes_of(one["w_sizes"]), kInt8), vector_of(one["w_scales"])};
  const Tensor bias = vector_of(one["bias"]);
  const quantized::Requantized result{one["y_scale"].get<double>(), one["y_zero_point"].get<std::int64_t>(), kUInt8};
  const bool relu = one["relu"].get<bool>();
  if (one["layer"].get<std::string>() == "linear") return quantized::linear(x, w, bias, relu, result).values;
  const auto both = [&](const char* key, std::int64_t usual) {
    const std::int64_t value = one["window"].value(key, usual);
    return Dims{value, value};
  };
  const quantized::Window window{both("stride", 1), both("padding", 0), both("dilation", 1),
                                 one["window"].value("groups", std::int64_t{1})};
  return quantized::conv2d(x, w, bias, window, relu, result).values;
}

TEST(PyTorchValues, OfQuantizedLayersAreWithinOneStep) {
  const json file = recorded("quantization");
  ASSERT_GT(file["layers"].size(), 30U);
  std::int64_t elements = 0, others = 0;
  for (const json& one : file["layers"]) {
    SCOPED_TRACE(testing::Message() << one["engine"] << one["layer"] << one["x_sizes"] << one["w_sizes"]);
    const Tensor y = integers_of(one);
    EXPECT_LE(largest_difference(y, one["y"]), 1);
    const Tensor want = tenon::tensor(numbers_of(one["y"]), TensorOptions(kFloat64)).view(y.sizes());
    elements += y.numel();
    others += y.to(kFloat64).ne(want).sum().item<std::int64_t>();
  }
  // Nearly all are equal: a step apart are sums at half a step, which a scale in float32 or float64 rounds either way.
  EXPECT_LE(others * 200, elements) << others << " of " << elements << " integers are a step apart";
}

std::unique_ptr<nn::quantization::Observer> observer_of(const json& one) {
  namespace q = nn::quantization;
  const json& o = one["options"];
  const q::ObserverOptions options{.dtype = dtype_of_word(o["dtype"]),
                                   .symmetric = o["symmetric"].get<bool>(),
                                   .reduce_range = o["reduce_range"].get<bool>(),
                                   .averaging_constant = o["averaging_constant"].get<double>()};
  const auto name = one["observer"].get<std::string>();
  if (name == "MinMax") return std::make_unique<q::MinMaxObserver>(options);
  if (name == "MovingAverageMinMax") return std::make_unique<q::MovingAverageMinMaxObserver>(options);
  if (name == "Histogram") return std::make_unique<q::HistogramObserver>(options);
  return std::make_unique<q::PerChannelMinMaxObserver>(options);
}

TEST(PyTorchValues, OfObservers) {
  const json file = recorded("quantization");
  ASSERT_GT(file["observers"].size(), 25U);
  for (const json& one : file["observers"]) {
    SCOPED_TRACE(testing::Message() << one["observer"] << one["options"] << one["course"]);
    const auto observer = observer_of(one);
    for (const json& course : file["courses"]) {
      if (course["course"] != one["course"]) continue;
      for (std::size_t i = 0; i < course["batches"].size(); ++i) {
        observer->observe(floats_of(course["batches"][i], sizes_of(course["sizes"])));
        const auto found = observer->calculate();
        const std::vector<double> scales = numbers_of(one["scales"][i]);
        ASSERT_EQ(found.scales.size(), scales.size());
        for (std::size_t c = 0; c < scales.size(); ++c) {
          EXPECT_NEAR(found.scales[c], scales[c], 1e-5 * scales[c]) << "batch " << i;
          EXPECT_EQ(found.zero_points[c], one["zero_points"][i][c].get<std::int64_t>()) << "batch " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::test
