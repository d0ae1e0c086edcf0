// Programs that leak nothing: none gives an alarm.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace program {

using tenon::Tensor;
using tenon::memory::LeakReport;
using tenon::memory::LeakWatch;
namespace nn = tenon::nn;
namespace optim = tenon::optim;

constexpr int kSteps = 16;

/// A loop whose body is given; `watch` outlives what the body made.
LeakReport loop(const std::function<void(int step)>& body) {
  LeakWatch watch;
  for (int step = 0; step < kSteps; ++step) {
    body(step);
    watch.step();
  }
  return watch.report();
}

nn::Sequential small_net() { return nn::Sequential(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 4)); }

template <class Optimizer, class Options>
LeakReport train_with(Options options) {
  nn::Sequential net = small_net();
  Optimizer optimizer(net->parameters(), options);
  double total_loss = 0;
  return loop([&](int) {
    optimizer.zero_grad();
    const Tensor loss = net->forward(tenon::randn({8, 16})).pow(2).mean();
    loss.backward();
    optimizer.step();
    total_loss += loss.item<double>();
  });
}

LeakReport sgd() { return train_with<optim::SGD>(optim::SGDOptions(0.1)); }
LeakReport sgd_with_momentum() { return train_with<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9)); }
LeakReport adam() { return train_with<optim::Adam>(optim::AdamOptions(1e-3)); }
LeakReport adamw() { return train_with<optim::AdamW>(optim::AdamWOptions(1e-3)); }
LeakReport rmsprop() { return train_with<optim::RMSprop>(optim::RMSpropOptions(1e-3)); }

LeakReport gradients_zeroed_in_place() {
  nn::Sequential net = small_net();
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
  return loop([&](int) {
    optimizer.zero_grad(/*set_to_none=*/false);
    net->forward(tenon::randn({8, 16})).mean().backward();
    optimizer.step();
  });
}

LeakReport gradients_accumulated_over_four_steps() {
  nn::Sequential net = small_net();
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
  return loop([&](int step) {
    net->forward(tenon::randn({8, 16})).mean().backward();
    if (step % 4 != 3) return;
    optimizer.step();
    optimizer.zero_grad();
  });
}

LeakReport a_loss_summed_without_its_history() {
  nn::Sequential net = small_net();
  Tensor total = tenon::zeros({});
  return loop([&](int) {
    net->zero_grad();
    const Tensor loss = net->forward(tenon::randn({8, 16})).mean();
    loss.backward();
    total += loss.detach();
  });
}

LeakReport a_moving_window_of_losses() {
  nn::Sequential net = small_net();
  std::deque<Tensor> window;
  return loop([&](int) {
    net->zero_grad();
    const Tensor loss = net->forward(tenon::randn({8, 16})).mean();
    loss.backward();
    window.push_back(loss.detach().clone());
    if (window.size() > 3) window.pop_front();
  });
}

LeakReport evaluation_without_gradients() {
  nn::Sequential net = small_net();
  Tensor last;
  return loop([&](int) {
    const tenon::NoGradGuard no_grad;
    last = net->forward(tenon::randn({8, 16}));
  });
}

LeakReport batches_of_many_lengths() {
  nn::Sequential net = small_net();
  return loop([&](int step) {
    net->zero_grad();
    net->forward(tenon::randn({4 + (step * 7) % 13, 16})).mean().backward();
  });
}

LeakReport a_hidden_state_that_is_detached() {
  nn::Linear cell(24, 8);
  Tensor hidden = tenon::zeros({4, 8});
  return loop([&](int) {
    cell->zero_grad();
    hidden = tenon::tanh(cell->forward(tenon::cat({tenon::randn({4, 16}), hidden.detach()}, 1)));
    hidden.mean().backward();
  });
}

LeakReport a_generator_and_a_discriminator() {
  nn::Sequential generator(nn::Linear(4, 32), nn::ReLU(), nn::Linear(32, 16));
  nn::Sequential judge(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 1));
  return loop([&](int) {
    judge->zero_grad();
    const Tensor fake = generator->forward(tenon::randn({8, 4}));
    (judge->forward(fake.detach()).mean() - judge->forward(tenon::randn({8, 16})).mean()).backward();
    generator->zero_grad();
    (-judge->forward(fake).mean()).backward();
  });
}

LeakReport a_hook_on_a_parameter() {
  nn::Linear layer(16, 4);
  double norm = 0;
  layer->weight.register_hook([&norm](const Tensor& gradient) { norm += gradient.norm().item<double>(); });
  return loop([&](int) {
    layer->zero_grad();
    layer->forward(tenon::randn({8, 16})).mean().backward();
  });
}

LeakReport a_hook_that_captures_a_copy() {
  nn::Linear layer(16, 4);
  return loop([&](int) {
    layer->zero_grad();
    const Tensor out = layer->forward(tenon::randn({8, 16}));
    const Tensor scale = out.detach().abs().max();
    out.register_hook([scale](const Tensor& gradient) { return gradient * scale; });
    out.mean().backward();
  });
}

/// The program owns the state too, and lets it go.
LeakReport a_hook_that_shares_what_the_program_looks_at() {
  struct State {
    std::vector<Tensor> looked_at;
  };
  nn::Linear layer(16, 4);
  return loop([&](int) {
    layer->zero_grad();
    const auto state = std::make_shared<State>();
    const Tensor out = layer->forward(tenon::randn({8, 16}));
    out.register_hook([state](const Tensor& gradient) {
      state->looked_at.push_back(gradient.detach());
      return gradient;
    });
    out.mean().backward();
  });
}

LeakReport backward_twice_and_then_released() {
  nn::Sequential net = small_net();
  return loop([&](int) {
    net->zero_grad();
    const Tensor loss = net->forward(tenon::randn({8, 16})).mean();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
  });
}

LeakReport a_gradient_penalty() {
  nn::Sequential net = small_net();
  return loop([&](int) {
    net->zero_grad();
    const Tensor x = tenon::randn({8, 16}).requires_grad_();
    const Tensor slope = tenon::autograd::grad({net->forward(x).sum()}, {x}, {}, /*retain_graph=*/true,
                                               /*create_graph=*/true)[0];
    slope.pow(2).mean().backward();
  });
}

LeakReport a_cache_with_a_bound() {
  std::map<std::int64_t, Tensor> masks;
  return loop([&](int step) {
    const std::int64_t length = 8 + step % 3;
    if (!masks.contains(length)) masks[length] = tenon::ones({length, length});
    (tenon::randn({length, length}) * masks[length]).sum();
  });
}

LeakReport the_best_state_is_kept() {
  nn::Sequential net = small_net();
  optim::Adam optimizer(net->parameters(), optim::AdamOptions(1e-2));
  std::vector<Tensor> best;
  double least = 1e9;
  return loop([&](int) {
    optimizer.zero_grad();
    const Tensor loss = net->forward(tenon::ones({8, 16})).pow(2).mean();
    loss.backward();
    optimizer.step();
    if (loss.item<double>() >= least) return;
    least = loss.item<double>();
    best.clear();
    for (const Tensor& parameter : net->parameters()) best.push_back(parameter.detach().clone());
  });
}

LeakReport a_convolutional_net_with_normalisation() {
  nn::Conv2d convolution(nn::Conv2dOptions(3, 8, 3));
  nn::BatchNorm2d norm(8);
  optim::SGD optimizer(convolution->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  return loop([&](int) {
    optimizer.zero_grad();
    tenon::relu(norm->forward(convolution->forward(tenon::randn({2, 3, 12, 12})))).mean().backward();
    optimizer.step();
  });
}

LeakReport a_buffer_that_fills_and_is_full() {
  std::vector<Tensor> buffer;
  LeakWatch watch;
  for (int step = 0; step < 60; ++step) {
    if (buffer.size() < 12) {
      buffer.push_back(tenon::randn({64}));
    } else {
      buffer[static_cast<std::size_t>(step % 12)] = tenon::randn({64});
    }
    watch.step();
  }
  return watch.report();
}

}  // namespace program

namespace tenon::test {
namespace {

struct Clean {
  const char* name;
  memory::LeakReport (*run)();
};
void PrintTo(const Clean& program, std::ostream* out) { *out << program.name; }
#define TENON_CLEAN(program_name) \
  Clean { #program_name, &program::program_name }

constexpr Clean kPrograms[] = {TENON_CLEAN(sgd),
                               TENON_CLEAN(sgd_with_momentum),
                               TENON_CLEAN(adam),
                               TENON_CLEAN(adamw),
                               TENON_CLEAN(rmsprop),
                               TENON_CLEAN(gradients_zeroed_in_place),
                               TENON_CLEAN(gradients_accumulated_over_four_steps),
                               TENON_CLEAN(a_loss_summed_without_its_history),
                               TENON_CLEAN(a_moving_window_of_losses),
                               TENON_CLEAN(evaluation_without_gradients),
                               TENON_CLEAN(batches_of_many_lengths),
                               TENON_CLEAN(a_hidden_state_that_is_detached),
                               TENON_CLEAN(a_generator_and_a_discriminator),
                               TENON_CLEAN(a_hook_on_a_parameter),
                               TENON_CLEAN(a_hook_that_captures_a_copy),
                               TENON_CLEAN(a_hook_that_shares_what_the_program_looks_at),
                               TENON_CLEAN(backward_twice_and_then_released),
                               TENON_CLEAN(a_gradient_penalty),
                               TENON_CLEAN(a_cache_with_a_bound),
                               TENON_CLEAN(the_best_state_is_kept),
                               TENON_CLEAN(a_convolutional_net_with_normalisation),
                               TENON_CLEAN(a_buffer_that_fills_and_is_full)};
static_assert(std::size(kPrograms) == 22);

class CleanPrograms : public testing::TestWithParam<Clean> {};

TEST_P(CleanPrograms, GiveNoAlarm) {
  const memory::LeakReport report = GetParam().run();
  EXPECT_GE(report.steps, 14U);
  EXPECT_TRUE(report.leaks.empty()) << report.text();
}

INSTANTIATE_TEST_SUITE_P(All, CleanPrograms, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon::test
