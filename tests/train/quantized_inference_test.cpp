// `train.quantize`: what a run says of its model on integers.
#include "../support/message_of.h"
#include "experiment_fixture.h"

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

TEST_F(QuantizedInference, IsRefusedForOtherPrecisions) {
  EXPECT_THAT(message_of([&] {
                run({"model.name=mlp", "train.precision=float64", "train.quantize=static"});
              }),
              ::testing::HasSubstr("set train.precision to float32"));
}

}  // namespace
}  // namespace tenon::test
