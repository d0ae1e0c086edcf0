// `train.quantize`: what a run says of its model on integers.
#include "../support/message_of.h"
#include "experiment_fixture.h"

#include <tenon/dispatch/dispatch.h>

#include <gmock/gmock.h>

#include <map>

namespace tenon::test {
namespace {

class QuantizedInference : public Experiment {
 protected:
  std::map<std::string, double> figures_of(std::vector<std::string> overrides) {
    const ExperimentResult result = run(std::move(overrides));
    return {result.figures.begin(), result.figures.end()};
  }
};

TEST_F(QuantizedInference, ACalibratedNetworkIsAQuarterAndAsGood) {
  for (const std::string model : {"lenet", "resnet8"}) {
    SCOPED_TRACE(model);
    auto figures = figures_of({"model.name=" + model, "train.epochs=2", "train.quantize=static"});
    EXPECT_GT(figures["float_test_accuracy"], 0.5);
    EXPECT_NEAR(figures["quantized_test_accuracy"], figures["float_test_accuracy"], 0.03);
    EXPECT_LT(figures["quantized_parameter_bytes"], 0.28 * figures["float_parameter_bytes"]);
    EXPECT_GT(figures["quantized_layers"], 3);
    ASSERT_FALSE(sink.notes.empty());
    EXPECT_THAT(sink.notes.back(), ::testing::MatchesRegex("static: test accuracy .* to .* %, parameters .*iB to .*iB, "
                                                           "peak of inference .*iB to .*iB, .* to .* s"));
    EXPECT_GT(figures["quantized_inference_seconds"], 0);
    // Between layers there are floats, channels last, of which a pooling layer makes a copy.
    EXPECT_LT(figures["quantized_inference_peak_bytes"], 1.7 * figures["float_inference_peak_bytes"]);
  }
}

TEST_F(QuantizedInference, WeightsAloneMayBeIntegers) {
  for (const auto& [scheme, share] :
       std::map<std::string, double>{{"dynamic", 0.28}, {"weight_only_int8", 0.28}, {"weight_only_int4", 0.17}}) {
    SCOPED_TRACE(scheme);
    auto figures = figures_of({"model.name=mlp", "train.epochs=2", "train.quantize=" + scheme});
    EXPECT_NEAR(figures["quantized_test_accuracy"], figures["float_test_accuracy"], 0.05);
    EXPECT_LT(figures["quantized_parameter_bytes"], share * figures["float_parameter_bytes"]);
  }
}

// As on a GPU, whose backend has none.
TEST_F(QuantizedInference, OnADeviceWithoutKernelsForIntegersComputesTheSameWithFloatsAndSaysSo) {
  for (const auto& [scheme, op] : std::map<std::string, std::string>{
           {"static", "quantized_conv"}, {"dynamic", "quantized_conv"}, {"weight_only_int4", "weight_only_linear"}}) {
    SCOPED_TRACE(scheme);
    const std::vector<std::string> words = {"model.name=mlp", "train.epochs=1", "train.quantize=" + scheme};
    sink.notes.clear();
    auto with = figures_of(words);
    EXPECT_THAT(sink.notes, ::testing::Not(::testing::Contains(::testing::HasSubstr("no kernels"))));
    const OperatorId id = intern_operator(op);
    const Kernel kernel = find_kernel(kCPU, id);
    ASSERT_NE(kernel, nullptr);
    register_kernel(kCPU, op, nullptr);
    sink.notes.clear();
    auto without = figures_of(words);
    register_kernel(kCPU, op, kernel);
    EXPECT_THAT(sink.notes, ::testing::Contains(::testing::HasSubstr("cpu:0 has no kernels for products of integers")));
    EXPECT_NEAR(without["quantized_test_loss"], with["quantized_test_loss"], 1e-3 * with["quantized_test_loss"]);
    EXPECT_EQ(without["quantized_parameter_bytes"], with["quantized_parameter_bytes"]);
  }
}

TEST_F(QuantizedInference, IsRefusedForOtherPrecisions) {
  EXPECT_THAT(message_of([&] {
                run({"model.name=mlp", "train.precision=float64", "train.quantize=static"});
              }),
              ::testing::HasSubstr("set train.precision to float32"));
}

}  // namespace
}  // namespace tenon::test
