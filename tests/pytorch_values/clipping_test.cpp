// Gradients of twenty steps, clipped by every order of norm and by value, as PyTorch clips them.
#include <tenon/nn/clip_grad.h>

#include "pytorch_values/recorded.h"

namespace tenon::test {
namespace {

using nlohmann::json;

class Clipping : public ::testing::Test {
 protected:
  /// Clips the gradients of each step by `clip`, which is given the parameters and the step's number.
  template <class Clip>
  void expect_gradients(const json& want, const Clip& clip) const {
    ASSERT_EQ(want.size(), file_["steps"].size());
    for (std::size_t step = 0; step < want.size(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const std::vector<Tensor> parameters = with_gradients(file_["steps"][step]["gradients"]);
      clip(parameters, step);
      std::vector<Tensor> gradients;
      for (const Tensor& parameter : parameters)
        if (parameter.grad().defined()) gradients.push_back(parameter.grad().flatten());
      expect_recorded(tenon::cat(gradients), want[step]);
    }
  }

  const json file_ = recorded("clipping");

 private:
  /// One for each of the recorded sizes, and a last one that has no gradient.
  std::vector<Tensor> with_gradients(const json& gradients) const {
    std::vector<Tensor> parameters;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto sizes = file_["sizes"][i].get<std::vector<std::int64_t>>();
      parameters.push_back(tenon::zeros(sizes, kFloat64).requires_grad_());
      parameters.back().mutable_grad() =
          tenon::tensor(numbers_of(gradients[i]), TensorOptions(kFloat64)).reshape(sizes);
    }
    parameters.push_back(tenon::zeros({2}, kFloat64).requires_grad_());
    return parameters;
  }
};

TEST_F(Clipping, ByTheNormOfAllGivesPyTorchsNormsAndGradients) {
  ASSERT_GE(file_["norms"].size(), 21u);
  for (const json& recorded_case : file_["norms"]) {
    const double order = number_of(recorded_case["norm_type"]), most = number_of(recorded_case["max_norm"]);
    SCOPED_TRACE(::testing::Message() << "a norm of order " << order << ", at most " << most);
    expect_gradients(recorded_case["gradients"], [&](const std::vector<Tensor>& parameters, std::size_t step) {
      const double norm = number_of(recorded_case["norms"][step]);
      EXPECT_NEAR(nn::utils::clip_grad_norm_(parameters, most, order), norm, 1e-9 * std::max(1., norm));
    });
  }
}

TEST_F(Clipping, ByValueGivesPyTorchsGradients) {
  for (const json& recorded_case : file_["values"]) {
    const double most = number_of(recorded_case["clip_value"]);
    SCOPED_TRACE(::testing::Message() << "at most " << most);
    expect_gradients(recorded_case["gradients"], [&](const std::vector<Tensor>& parameters, std::size_t) {
      nn::utils::clip_grad_value_(parameters, most);
    });
  }
}

}  // namespace
}  // namespace tenon::test
