// Adagrad, written with tensor operators.
#include <tenon/optim/adagrad.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/support/check.h>
#include <tenon/optim/support/inherited.h>
#include <tenon/tensor/captured_graph.h>

namespace tenon::optim {

bool operator==(const AdagradOptions& a, const AdagradOptions& b) {
  return a.lr() == b.lr() && a.lr_decay() == b.lr_decay() && a.weight_decay() == b.weight_decay() &&
         a.initial_accumulator_value() == b.initial_accumulator_value() && a.eps() == b.eps();
}
void AdagradOptions::inherit(const OptimizerOptions& defaults) {
  inherit_fields(*this, defaults, AdagradOptions(), [](auto& options) {
    return std::tie(options.lr(), options.lr_decay(), options.weight_decay(), options.initial_accumulator_value(),
                    options.eps());
  });
}
void AdagradOptions::serialize(OutputArchive& archive) const {
  archive.write("lr", lr());
  archive.write("lr_decay", lr_decay());
  archive.write("weight_decay", weight_decay());
  archive.write("initial_accumulator_value", initial_accumulator_value());
  archive.write("eps", eps());
}
void AdagradOptions::serialize(InputArchive& archive) {
  lr(archive.read_real("lr"));
  lr_decay(archive.read_real("lr_decay"));
  weight_decay(archive.read_real("weight_decay"));
  initial_accumulator_value(archive.read_real("initial_accumulator_value"));
  eps(archive.read_real("eps"));
}

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
