// Optimisers with every option over twenty steps, as PyTorch makes them.
#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/sgd.h>

#include "pytorch_values/recorded.h"

namespace tenon::test {
namespace {

using nlohmann::json;

template <class Options>
Options adam_options(const json& o) {
  Options options(o["lr"].get<double>());
  return options.betas(std::make_tuple(o["betas"][0].get<double>(), o["betas"][1].get<double>()))
      .eps(o["eps"].get<double>())
      .weight_decay(o["weight_decay"].get<double>())
      .amsgrad(o["amsgrad"].get<bool>());
}

std::unique_ptr<optim::Optimizer> make(const std::string& name, const json& o, const Tensor& x) {
  const std::vector<Tensor> parameters{x};
  const auto number = [&](const char* key) { return o[key].get<double>(); };
  if (name == "SGD")
    return std::make_unique<optim::SGD>(parameters, optim::SGDOptions(number("lr"))
                                                        .momentum(number("momentum"))
                                                        .dampening(number("dampening"))
                                                        .weight_decay(number("weight_decay"))
                                                        .nesterov(o["nesterov"].get<bool>()));
  if (name == "Adam") return std::make_unique<optim::Adam>(parameters, adam_options<optim::AdamOptions>(o));
  if (name == "AdamW") return std::make_unique<optim::AdamW>(parameters, adam_options<optim::AdamWOptions>(o));
  if (name == "Adagrad")
    return std::make_unique<optim::Adagrad>(parameters,
                                            optim::AdagradOptions(number("lr"))
                                                .lr_decay(number("lr_decay"))
                                                .weight_decay(number("weight_decay"))
                                                .initial_accumulator_value(number("initial_accumulator_value"))
                                                .eps(number("eps")));
  return std::make_unique<optim::RMSprop>(parameters, optim::RMSpropOptions(number("lr"))
                                                          .alpha(number("alpha"))
                                                          .eps(number("eps"))
                                                          .weight_decay(number("weight_decay"))
                                                          .momentum(number("momentum"))
                                                          .centered(o["centered"].get<bool>()));
}

TEST(PyTorchValues, OfOptimizersOverTwentySteps) {
  const json file = recorded("optimizers");
  ASSERT_GT(file["cases"].size(), 50u);
  for (const json& recorded_case : file["cases"]) {
    SCOPED_TRACE(recorded_case["optimizer"].get<std::string>() + " " + recorded_case["options"].dump());
    Tensor x = tenon::tensor(numbers_of(file["start"]), TensorOptions(kFloat64)).set_requires_grad(true);
    const auto optimizer = make(recorded_case["optimizer"], recorded_case["options"], x);
    std::size_t next = 0;
    for (std::size_t step = 0; step < file["gradients"].size(); ++step) {
      x.mutable_grad() = tenon::tensor(numbers_of(file["gradients"][step]), TensorOptions(kFloat64));
      optimizer->step();
      if (file["steps"][next] == step + 1) expect_recorded(x, recorded_case["values"][next++]);
    }
    EXPECT_EQ(next, file["steps"].size());
  }
}

TEST(PyTorchValues, OfLbfgsInAValley) {
  const json file = recorded("optimizers");
  for (const json& recorded_case : file["lbfgs"]) {
    const json& o = recorded_case["options"];
    SCOPED_TRACE(o.dump());
    const Tensor x = tenon::tensor({-1.2, 1.0, 0.4}, TensorOptions(kFloat64)).set_requires_grad(true);
    optim::LBFGSOptions options(o["lr"].get<double>());
    options.max_iter(o["max_iter"].get<std::int64_t>())
        .max_eval(500)
        .history_size(o["history_size"].get<std::int64_t>());
    if (!o["line_search_fn"].is_null()) options.line_search_fn(o["line_search_fn"].get<std::string>());
    optim::LBFGS lbfgs({x}, options);
    const auto closure = [&] {
      lbfgs.zero_grad();
      const Tensor front = x.slice(0, 0, 2), back = x.slice(0, 1, 3);
      const Tensor loss = ((1 - front).square() + 10 * (back - front.square()).square()).sum();
      loss.backward();
      return loss;
    };
    for (const json& values : recorded_case["values"]) {
      lbfgs.step(closure);
      expect_recorded(x, values, 1e-5);
    }
  }
}

}  // namespace
}  // namespace tenon::test
