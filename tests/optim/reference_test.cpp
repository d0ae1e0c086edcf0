// Optimisers with every option against plain loops in double, over twenty steps of drawn gradients.
#include <tenon/ops/ops.h>
#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/sgd.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

constexpr int kSteps = 20;

/// One element's update: the state lives in the function, `step` counts from 1.
using Update = std::function<double(double value, double gradient, int step)>;
using MakeUpdate = std::function<Update()>;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

/// Sizes with and without the rest of a vector, of both widths; some gradients are 0, one step in four has none.
void expect_same_steps(const std::string& what, const MakeOptimizer& make, const MakeUpdate& make_update) {
  SCOPED_TRACE(what);
  for (const Dtype dtype : {kFloat64, kFloat32}) {
    for (const std::int64_t size : {1, 7, 67}) {
      std::mt19937 engine(static_cast<unsigned>(73 + size));
      std::uniform_real_distribution<double> draw(-2, 2);
      std::vector<double> values(static_cast<std::size_t>(size));
      for (double& value : values) value = draw(engine);
      Tensor x = tenon::tensor(values, TensorOptions(kFloat64)).to(dtype).set_requires_grad(true);
      const auto optimizer = make({x});
      std::vector<Update> updates;
      for (std::int64_t i = 0; i < size; ++i) updates.push_back(make_update());
      int made = 0;
      for (int step = 0; step < kSteps; ++step) {
        optimizer->zero_grad(/*set_to_none=*/true);
        if (step % 4 != 2) {
          ++made;
          std::vector<double> gradients(values.size());
          for (double& gradient : gradients) gradient = engine() % 5 == 0 ? 0 : draw(engine);
          const Tensor gradient = tenon::tensor(gradients, TensorOptions(kFloat64)).to(dtype);
          x.mutable_grad() = gradient;
          const Tensor seen = gradient.to(kFloat64);
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = updates[i](values[i], seen.data_ptr<double>()[i], made);
        }
        optimizer->step();
        const Tensor now = x.detach().to(kFloat64);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double tolerance = (dtype == kFloat64 ? 1e-11 : 1e-4) * std::max(1., std::abs(values[i]));
          ASSERT_NEAR(now.data_ptr<double>()[i], values[i], tolerance)
              << "element " << i << " of " << size << ", step " << step;
        }
      }
    }
  }
}

TEST(OptimizerReference, SgdWithEveryOption) {
  for (const double momentum : {0., 0.9})
    for (const double dampening : {0., 0.3})
      for (const double decay : {0., 0.05})
        for (const bool nesterov : {false, true}) {
          if (nesterov && (momentum == 0 || dampening != 0)) continue;  // it refuses them
          expect_same_steps(
              "momentum " + std::to_string(momentum) + ", dampening " + std::to_string(dampening) + ", decay " +
                  std::to_string(decay) + (nesterov ? ", nesterov" : ""),
              [=](auto x) {
                return std::make_unique<optim::SGD>(
                    x, optim::SGDOptions(0.1).momentum(momentum).dampening(dampening).weight_decay(decay).nesterov(
                           nesterov));
              },
              [=]() -> Update {
                return [=, buffer = 0.](double p, double g, int step) mutable {
                  g += decay * p;
                  if (momentum == 0) return p - 0.1 * g;
                  buffer = step == 1 ? g : momentum * buffer + (1 - dampening) * g;
                  return p - 0.1 * (nesterov ? g + momentum * buffer : buffer);
                };
              });
        }
}

TEST(OptimizerReference, AdamAndAdamWWithEveryOption) {
  for (const bool decoupled : {false, true})
    for (const double decay : {0., 0.05})
      for (const bool amsgrad : {false, true})
        for (const auto& [beta1, beta2] : {std::pair(0.9, 0.999), std::pair(0.5, 0.8)}) {
          const double eps = beta1 == 0.5 ? 1e-3 : 1e-8;
          const auto set = [=](auto options) {
            options.betas(std::make_tuple(beta1, beta2)).eps(eps).weight_decay(decay).amsgrad(amsgrad);
            return options;
          };
          expect_same_steps(
              std::string(decoupled ? "AdamW" : "Adam") + ", decay " + std::to_string(decay) +
                  (amsgrad ? ", amsgrad" : "") + ", beta " + std::to_string(beta1),
              [=](auto x) -> std::unique_ptr<optim::Optimizer> {
                if (decoupled) return std::make_unique<optim::AdamW>(x, set(optim::AdamWOptions(0.1)));
                return std::make_unique<optim::Adam>(x, set(optim::AdamOptions(0.1)));
              },
              [=, b1 = beta1, b2 = beta2]() -> Update {
                return [=, m = 0., v = 0., most = 0.](double p, double g, int step) mutable {
                  if (decoupled) p *= 1 - 0.1 * decay;
                  if (!decoupled) g += decay * p;
                  m = b1 * m + (1 - b1) * g;
                  v = b2 * v + (1 - b2) * g * g;
                  most = std::max(most, v);
                  const double root = std::sqrt((amsgrad ? most : v) / (1 - std::pow(b2, step)));
                  return p - 0.1 * (m / (1 - std::pow(b1, step))) / (root + eps);
                };
              });
        }
}

TEST(OptimizerReference, AdagradWithEveryOption) {
  for (const double lr_decay : {0., 0.1})
    for (const double decay : {0., 0.05})
      for (const double first : {0., 0.5})
        expect_same_steps(
            "lr_decay " + std::to_string(lr_decay) + ", decay " + std::to_string(decay) + ", first " +
                std::to_string(first),
            [=](auto x) {
              return std::make_unique<optim::Adagrad>(
                  x,
                  optim::AdagradOptions(0.1).lr_decay(lr_decay).weight_decay(decay).initial_accumulator_value(first));
            },
            [=]() -> Update {
              return [=, sum = first](double p, double g, int step) mutable {
                g += decay * p;
                sum += g * g;
                return p - 0.1 / (1 + (step - 1) * lr_decay) * g / (std::sqrt(sum) + 1e-10);
              };
            });
}

TEST(OptimizerReference, RmspropWithEveryOption) {
  for (const double momentum : {0., 0.7})
    for (const double decay : {0., 0.05})
      for (const bool centered : {false, true})
        expect_same_steps(
            "momentum " + std::to_string(momentum) + ", decay " + std::to_string(decay) +
                (centered ? ", centered" : ""),
            [=](auto x) {
              return std::make_unique<optim::RMSprop>(
                  x, optim::RMSpropOptions(0.05).alpha(0.8).eps(1e-3).momentum(momentum).weight_decay(decay).centered(
                         centered));
            },
            [=]() -> Update {
              return [=, square = 0., mean = 0., buffer = 0.](double p, double g, int) mutable {
                g += decay * p;
                square = 0.8 * square + 0.2 * g * g;
                mean = 0.8 * mean + 0.2 * g;
                const double divisor = std::sqrt(centered ? square - mean * mean : square) + 1e-3;
                buffer = momentum * buffer + g / divisor;
                return p - 0.05 * buffer;
              };
            });
}

TEST(OptimizerReference, OptionsOfAGroupAreItsOwn) {
  const Tensor a = tenon::ones({2}).requires_grad_(), b = tenon::ones({2}).requires_grad_();
  std::vector<optim::OptimizerParamGroup> groups{
      optim::OptimizerParamGroup({a}), optim::OptimizerParamGroup({b}, std::make_unique<optim::SGDOptions>(0.5))};
  optim::SGD sgd(groups, optim::SGDOptions(0.1));
  (a.sum() + b.sum()).backward();
  sgd.step();
  EXPECT_NEAR(a[0].item<double>(), 0.9, 1e-6);
  EXPECT_NEAR(b[0].item<double>(), 0.5, 1e-6);
}

}  // namespace
}  // namespace tenon::test
