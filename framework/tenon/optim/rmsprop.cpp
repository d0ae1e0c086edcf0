// RMSprop, written with tensor operators.
#include <tenon/optim/rmsprop.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/support/check.h>
#include <tenon/optim/support/fields.h>

namespace tenon::optim {

namespace {

constexpr auto rmsprop_fields = [](auto& options) {
  return std::tuple(Field{"lr", options.lr()}, Field{"alpha", options.alpha()}, Field{"eps", options.eps()},
                    Field{"weight_decay", options.weight_decay()}, Field{"momentum", options.momentum()},
                    Field{"centered", options.centered()});
};

}  // namespace

bool operator==(const RMSpropOptions& a, const RMSpropOptions& b) { return same_fields(a, b, rmsprop_fields); }
void RMSpropOptions::inherit(const OptimizerOptions& defaults) {
  inherit_fields(*this, defaults, RMSpropOptions(), rmsprop_fields);
}
void RMSpropOptions::serialize(OutputArchive& archive) const { write_fields(archive, *this, rmsprop_fields); }
void RMSpropOptions::serialize(InputArchive& archive) { read_fields(archive, *this, rmsprop_fields); }

bool operator==(const RMSpropParamState& a, const RMSpropParamState& b) {
  return a.step() == b.step() && same_tensor(a.square_avg(), b.square_avg()) &&
         same_tensor(a.momentum_buffer(), b.momentum_buffer()) && same_tensor(a.grad_avg(), b.grad_avg());
}
std::vector<StateTensor> RMSpropParamState::tensors() {
  return {{&square_avg(), /*is_signed=*/false}, {&momentum_buffer()}, {&grad_avg()}};
}
void RMSpropParamState::serialize(OutputArchive& archive) const {
  archive.write("step", step());
  archive.write("square_avg", square_avg());
  archive.write("momentum_buffer", momentum_buffer());
  archive.write("grad_avg", grad_avg());
}
void RMSpropParamState::serialize(InputArchive& archive) {
  step(archive.read_integer("step"));
  archive.read("square_avg", square_avg());
  archive.read("momentum_buffer", momentum_buffer());
  archive.read("grad_avg", grad_avg());
}

RMSprop::RMSprop(const std::vector<OptimizerParamGroup>& groups, RMSpropOptions defaults)
    : Optimizer(groups, std::make_unique<RMSpropOptions>(defaults)) {
  check_at_least("learning rate", defaults.lr(), 0);
  check_at_least("epsilon value", defaults.eps(), 0);
  check_at_least("momentum value", defaults.momentum(), 0);
  check_at_least("weight_decay value", defaults.weight_decay(), 0);
  check_at_least("alpha value", defaults.alpha(), 0);
}

Tensor RMSprop::step(LossClosure closure) {
  return step_groups(closure, [this](const OptimizerParamGroup& group) {
    const auto& options = static_cast<const RMSpropOptions&>(group.options());
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      Tensor gradient = parameter.grad();
      auto& state = state_of<RMSpropParamState>(parameter);
      if (!state.square_avg().defined()) state.square_avg(new_state(parameter));
      if (options.momentum() > 0 && !state.momentum_buffer().defined()) state.momentum_buffer(new_state(parameter));
      if (options.centered() && !state.grad_avg().defined()) state.grad_avg(new_state(parameter));
      state.step(state.step() + 1);

      if (options.weight_decay() != 0) gradient = gradient.add(parameter, options.weight_decay());
      state.square_avg().mul_(options.alpha()).addcmul_(gradient, gradient, 1 - options.alpha());
      Tensor average;
      if (options.centered()) {
        state.grad_avg().mul_(options.alpha()).add_(gradient, 1 - options.alpha());
        average = state.square_avg().addcmul(state.grad_avg(), state.grad_avg(), -1).sqrt_().add_(options.eps());
      } else {
        average = state.square_avg().sqrt().add_(options.eps());
      }
      if (options.momentum() > 0) {
        state.momentum_buffer().mul_(options.momentum()).addcdiv_(gradient, average);
        parameter.add_(state.momentum_buffer(), -options.lr());
      } else {
        parameter.addcdiv_(gradient, average, -options.lr());
      }
    }
  });
}

std::unique_ptr<OptimizerParamState> RMSprop::make_state() const { return std::make_unique<RMSpropParamState>(); }

template class OptimizerCloneableOptions<RMSpropOptions>;
template class OptimizerCloneableParamState<RMSpropParamState>;

}  // namespace tenon::optim
