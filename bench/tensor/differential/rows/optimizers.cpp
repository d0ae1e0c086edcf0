// Optimisers with random options: some steps of one problem, and what became of the parameter.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

namespace optim = torch::optim;
using Int = std::int64_t;

/// What `steps` steps make of the parameter x where the loss is a weighted sum of its sines and squares.
template <class Optimizer, class Options>
Tensor after(Tensor x, Int steps, const Options& options) {
  auto parameter = x.detach().clone().requires_grad_(true);
  Optimizer optimizer({parameter}, options);
  for (Int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const torch::AutoGradMode with_gradients(true);
    ((parameter.sin() + parameter * parameter) * weights(parameter, 7)).sum().backward();
    optimizer.step();
  }
  return parameter.detach();
}

}  // namespace

void add_optimizers() {
  add("optim.SGD", "x int(1..3) real(0.1|1.0) real(0.0|0.9) real(0.0|0.5) real(0.0|0.1) b",
      [](Tensor x, Int steps, double lr, double momentum, double dampening, double decay, bool nesterov) {
        return after<optim::SGD>(x, steps, optim::SGDOptions(lr).momentum(momentum).dampening(dampening).weight_decay(decay).nesterov(nesterov));
      });
  add("optim.Adam", "x int(1..4) real(0.1|1.0) real(0.9|0.5) real(0.999|0.9) real(1e-8|0.1) real(0.0|0.1) b",
      [](Tensor x, Int steps, double lr, double b1, double b2, double eps, double decay, bool amsgrad) {
        return after<optim::Adam>(x, steps, optim::AdamOptions(lr).betas({b1, b2}).eps(eps).weight_decay(decay).amsgrad(amsgrad));
      });
  add("optim.AdamW", "x int(1..4) real(0.1|1.0) real(0.9|0.5) real(0.999|0.9) real(1e-8|0.1) real(0.0|0.1) b",
      [](Tensor x, Int steps, double lr, double b1, double b2, double eps, double decay, bool amsgrad) {
        return after<optim::AdamW>(x, steps, optim::AdamWOptions(lr).betas({b1, b2}).eps(eps).weight_decay(decay).amsgrad(amsgrad));
      });
  add("optim.RMSprop", "x int(1..4) real(0.1|0.01) real(0.99|0.5) real(1e-8|0.1) real(0.0|0.1) real(0.0|0.9) b",
      [](Tensor x, Int steps, double lr, double alpha, double eps, double decay, double momentum, bool centered) {
        return after<optim::RMSprop>(x, steps, optim::RMSpropOptions(lr).alpha(alpha).eps(eps).weight_decay(decay).momentum(momentum).centered(centered));
      });
  add("optim.Adagrad", "x int(1..4) real(0.1|1.0) real(0.0|0.1) real(0.0|0.1) real(0.0|1.0)",
      [](Tensor x, Int steps, double lr, double lr_decay, double decay, double first) {
        return after<optim::Adagrad>(x, steps, optim::AdagradOptions(lr).lr_decay(lr_decay).weight_decay(decay).initial_accumulator_value(first));
      });
  add("optim.LBFGS", "unit int(1..3) int(1..5) b", [](Tensor x, Int steps, Int iterations, bool search) {
    auto parameter = x.detach().clone().requires_grad_(true);
    auto options = optim::LBFGSOptions(0.5).max_iter(iterations).history_size(3);
    if (search) options.line_search_fn("strong_wolfe");
    optim::LBFGS optimizer({parameter}, options);
    for (Int step = 0; step < steps; ++step) {
      optimizer.step([&] {
        const torch::AutoGradMode with_gradients(true);
        optimizer.zero_grad();
        auto loss = ((parameter - 0.3) * (parameter - 0.3) * 2 + parameter.pow(4)).sum();
        loss.backward();
        return loss;
      });
    }
    return parameter.detach();
  });
  add("optim.StepLR", "x int(1..4) int(1..3) real(0.5|0.1)", [](Tensor x, Int steps, Int every, double gamma) {
    auto parameter = x.detach().clone().requires_grad_(true);
    optim::SGD optimizer({parameter}, optim::SGDOptions(0.5));
    optim::StepLR schedule(optimizer, static_cast<unsigned>(every), gamma);
    for (Int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      const torch::AutoGradMode with_gradients(true);
      (parameter * parameter).sum().backward();
      optimizer.step();
      schedule.step();
    }
    return std::tuple<Tensor, double>(parameter.detach(), optimizer.param_groups()[0].options().get_lr());
  });
}

}  // namespace differential
// clang-format on
