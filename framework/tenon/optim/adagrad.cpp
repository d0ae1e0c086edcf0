// Adagrad, written with tensor operators.
#include <tenon/optim/adagrad.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/support/check.h>
#include <tenon/optim/support/fields.h>
#include <tenon/tensor/captured_graph.h>

namespace tenon::optim {

namespace {

constexpr auto adagrad_fields = [](auto& options) {
  return std::tuple(
      Field{"lr", options.lr()}, Field{"lr_decay", options.lr_decay()}, Field{"weight_decay", options.weight_decay()},
      Field{"initial_accumulator_value", options.initial_accumulator_value()}, Field{"eps", options.eps()});
};

}  // namespace

bool operator==(const AdagradOptions& a, const AdagradOptions& b) { return same_fields(a, b, adagrad_fields); }
void AdagradOptions::inherit(const OptimizerOptions& defaults) {
  inherit_fields(*this, defaults, AdagradOptions(), adagrad_fields);
}
void AdagradOptions::serialize(OutputArchive& archive) const { write_fields(archive, *this, adagrad_fields); }
void AdagradOptions::serialize(InputArchive& archive) { read_fields(archive, *this, adagrad_fields); }

bool operator==(const AdagradParamState& a, const AdagradParamState& b) {
  return a.step() == b.step() && same_tensor(a.sum(), b.sum());
}
std::vector<StateTensor> AdagradParamState::tensors() { return {{&sum(), /*is_signed=*/false}}; }
void AdagradParamState::serialize(OutputArchive& archive) const {
  archive.write("step", step());
  archive.write("sum", sum());
}
void AdagradParamState::serialize(InputArchive& archive) {
  step(archive.read_integer("step"));
  archive.read("sum", sum());
}

Adagrad::Adagrad(const std::vector<OptimizerParamGroup>& groups, AdagradOptions defaults)
    : Optimizer(groups, std::make_unique<AdagradOptions>(defaults)) {
  check_at_least("learning rate", defaults.lr(), 0);
  check_at_least("lr_decay value", defaults.lr_decay(), 0);
  check_at_least("weight_decay value", defaults.weight_decay(), 0);
  check_at_least("initial_accumulator_value value", defaults.initial_accumulator_value(), 0);
  check_at_least("epsilon value", defaults.eps(), 0);
  NoGradGuard no_grad;
  for (auto& group : groups_) {
    const auto& options = static_cast<const AdagradOptions&>(group.options());
    for (const Tensor& parameter : group.params()) {
      state_of<AdagradParamState>(parameter).sum(new_state(parameter).fill_(options.initial_accumulator_value()));
    }
  }
}

Tensor Adagrad::step(LossClosure closure) {
  return step_groups(closure, [this](const OptimizerParamGroup& group) {
    const auto& options = static_cast<const AdagradOptions&>(group.options());
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& state = state_of<AdagradParamState>(parameter);
      if (!state.sum().defined()) state.sum(new_state(parameter).fill_(options.initial_accumulator_value()));
      if (options.lr_decay() != 0 && CapturedGraph::current(parameter.device()) != nullptr)
        throw Error("Adagrad with lr_decay cannot be captured: a graph would take every step at the same rate");
      state.step(state.step() + 1);
      Tensor gradient = parameter.grad();
      if (options.weight_decay() != 0) gradient = gradient.add(parameter, options.weight_decay());
      const double rate = options.lr() / (1 + static_cast<double>(state.step() - 1) * options.lr_decay());
      state.sum().addcmul_(gradient, gradient, 1.0);
      parameter.addcdiv_(gradient, state.sum().sqrt().add_(options.eps()), -rate);
    }
  });
}

std::unique_ptr<OptimizerParamState> Adagrad::make_state() const { return std::make_unique<AdagradParamState>(); }

template class OptimizerCloneableOptions<AdagradOptions>;
template class OptimizerCloneableParamState<AdagradParamState>;

}  // namespace tenon::optim
