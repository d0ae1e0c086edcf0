// SGD through the fused kernel sgd_step.
#include <tenon/optim/sgd.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/kernel/attributes/optimizer.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/support/check.h>
#include <tenon/optim/support/fields.h>
#include <tenon/optim/support/fused.h>

#include <array>

namespace tenon::optim {

namespace {

constexpr auto sgd_fields = [](auto& options) {
  return std::tuple(Field{"lr", options.lr()}, Field{"momentum", options.momentum()},
                    Field{"dampening", options.dampening()}, Field{"weight_decay", options.weight_decay()},
                    Field{"nesterov", options.nesterov()});
};

}  // namespace

bool operator==(const SGDOptions& a, const SGDOptions& b) { return same_fields(a, b, sgd_fields); }
void SGDOptions::inherit(const OptimizerOptions& defaults) {
  inherit_fields(*this, defaults, SGDOptions(1e-3), sgd_fields);
}
void SGDOptions::serialize(OutputArchive& archive) const { write_fields(archive, *this, sgd_fields); }
void SGDOptions::serialize(InputArchive& archive) { read_fields(archive, *this, sgd_fields); }

bool operator==(const SGDParamState& a, const SGDParamState& b) {
  return same_tensor(a.momentum_buffer(), b.momentum_buffer());
}
std::vector<StateTensor> SGDParamState::tensors() { return {{&momentum_buffer()}}; }
void SGDParamState::serialize(OutputArchive& archive) const { archive.write("momentum_buffer", momentum_buffer()); }
void SGDParamState::serialize(InputArchive& archive) { archive.read("momentum_buffer", momentum_buffer()); }

SGD::SGD(const std::vector<OptimizerParamGroup>& groups, SGDOptions defaults)
    : Optimizer(groups, std::make_unique<SGDOptions>(defaults)) {
  check_at_least("learning rate", defaults.lr(), 0);
  check_at_least("momentum value", defaults.momentum(), 0);
  check_at_least("weight_decay value", defaults.weight_decay(), 0);
  if (defaults.nesterov() && (defaults.momentum() <= 0 || defaults.dampening() != 0)) {
    throw Error("Nesterov momentum requires a momentum and zero dampening");
  }
}

Tensor SGD::step(LossClosure closure) {
  return step_groups(closure, [this](const OptimizerParamGroup& group) {
    const auto& options = static_cast<const SGDOptions&>(group.options());
    SgdAttributes attributes{.learning_rate = options.lr(),
                             .momentum = options.momentum(),
                             .dampening = options.dampening(),
                             .weight_decay = options.weight_decay(),
                             .nesterov = options.nesterov()};
    // A first step fills its buffer instead of blending it: two calls at most, nearly always one.
    struct Lists {
      std::vector<Tensor> parameters, buffers, gradients;
    };
    std::array<Lists, 2> lists;
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      bool first = false;
      Tensor buffer;
      if (options.momentum() != 0) {
        auto& state = state_of<SGDParamState>(parameter);
        first = !state.momentum_buffer().defined();
        if (first) state.momentum_buffer(new_state(parameter));
        buffer = state.momentum_buffer();
      }
      Lists& to = lists[first ? 1 : 0];
      to.parameters.push_back(parameter);
      to.buffers.push_back(buffer);
      to.gradients.push_back(matching_gradient(parameter));
    }
    for (int first = 0; first < 2; ++first) {
      attributes.first_step = first != 0;
      const Lists& list = lists[static_cast<std::size_t>(first)];
      call_fused("sgd_step", {list.parameters, list.buffers}, list.gradients, &attributes);
    }
  });
}

std::unique_ptr<OptimizerParamState> SGD::make_state() const { return std::make_unique<SGDParamState>(); }

template class OptimizerCloneableOptions<SGDOptions>;
template class OptimizerCloneableParamState<SGDParamState>;

}  // namespace tenon::optim
