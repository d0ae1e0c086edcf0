// Adam and AdamW through the fused kernel adam_step; its formula stands in kernel/attributes/optimizer.h.
#include <tenon/optim/adam.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/kernel/attributes/optimizer.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/support/check.h>
#include <tenon/optim/support/fields.h>
#include <tenon/optim/support/fused.h>
#include <tenon/tensor/captured_graph.h>

#include <map>

namespace tenon::optim {

namespace {

constexpr auto adam_fields = [](auto& options) {
  return std::tuple(Field{"lr", options.lr()}, Field{"beta", options.betas()}, Field{"eps", options.eps()},
                    Field{"weight_decay", options.weight_decay()}, Field{"amsgrad", options.amsgrad()});
};

}  // namespace

#define TENON_ADAM(Options, State)                                                                                     \
  bool operator==(const Options& a, const Options& b) { return same_fields(a, b, adam_fields); }                       \
  void Options::inherit(const OptimizerOptions& defaults) { inherit_fields(*this, defaults, Options(), adam_fields); } \
  void Options::serialize(OutputArchive& archive) const { write_fields(archive, *this, adam_fields); }                 \
  void Options::serialize(InputArchive& archive) { read_fields(archive, *this, adam_fields); }                         \
  bool operator==(const State& a, const State& b) {                                                                    \
    return a.step() == b.step() && same_tensor(a.exp_avg(), b.exp_avg()) &&                                            \
           same_tensor(a.exp_avg_sq(), b.exp_avg_sq()) && same_tensor(a.max_exp_avg_sq(), b.max_exp_avg_sq());         \
  }                                                                                                                    \
  std::vector<StateTensor> State::tensors() {                                                                          \
    return {{&exp_avg()}, {&exp_avg_sq(), /*is_signed=*/false}, {&max_exp_avg_sq(), /*is_signed=*/false}};             \
  }                                                                                                                    \
  void State::serialize(OutputArchive& archive) const {                                                                \
    archive.write("step", step());                                                                                     \
    archive.write("exp_avg", exp_avg());                                                                               \
    archive.write("exp_avg_sq", exp_avg_sq());                                                                         \
    archive.write("max_exp_avg_sq", max_exp_avg_sq());                                                                 \
  }                                                                                                                    \
  void State::serialize(InputArchive& archive) {                                                                       \
    step(archive.read_integer("step"));                                                                                \
    archive.read("exp_avg", exp_avg());                                                                                \
    archive.read("exp_avg_sq", exp_avg_sq());                                                                          \
    archive.read("max_exp_avg_sq", max_exp_avg_sq());                                                                  \
  }
TENON_ADAM(AdamOptions, AdamParamState)
TENON_ADAM(AdamWOptions, AdamWParamState)
#undef TENON_ADAM

namespace {

template <class Options>
void check(const Options& options) {
  check_at_least("learning rate", options.lr(), 0);
  check_at_least("epsilon value", options.eps(), 0);
  check_betas(options.betas());
  check_at_least("weight_decay value", options.weight_decay(), 0);
}

/// One group's step. `state_of` finds or makes a parameter's state.
template <class Options, class State, class StateOf>
void adam_step(const OptimizerParamGroup& group, bool decoupled, StateOf state_of) {
  const auto& options = static_cast<const Options&>(group.options());
  AdamAttributes attributes{.learning_rate = options.lr(),
                            .beta1 = std::get<0>(options.betas()),
                            .beta2 = std::get<1>(options.betas()),
                            .eps = options.eps(),
                            .weight_decay = options.weight_decay(),
                            .decoupled = decoupled,
                            .amsgrad = options.amsgrad()};
  struct Lists {
    std::vector<Tensor> parameters, averages, squares, maxima, gradients;
    std::vector<State*> states;
  };
  // Parameters that got their first gradient later have counted fewer steps: a call for each count.
  std::map<std::int64_t, Lists> by_step;
  for (const Tensor& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    auto& state = state_of(parameter);
    if (!state.exp_avg().defined()) {
      state.exp_avg(new_state(parameter));
      state.exp_avg_sq(new_state(parameter));
    }
    if (options.amsgrad() && !state.max_exp_avg_sq().defined()) state.max_exp_avg_sq(new_state(parameter));
    state.step(state.step() + 1);
    Lists& to = by_step[state.step()];
    to.parameters.push_back(parameter);
    to.averages.push_back(state.exp_avg());
    to.squares.push_back(state.exp_avg_sq());
    to.maxima.push_back(options.amsgrad() ? state.max_exp_avg_sq() : Tensor());
    to.gradients.push_back(matching_gradient(parameter));
    to.states.push_back(&state);
  }
  for (const auto& [step, lists] : by_step) {
    attributes.step = step;
    attributes.replay = nullptr;
    if (CapturedGraph* graph = CapturedGraph::current(lists.parameters[0].device())) {
      attributes.replay = graph->counters([states = lists.states, first = step] {
        for (State* state : states) state->step(state->step() + 1);
        return ReplayCounters{.step = states[0]->step() - first};
      });
    }
    call_fused("adam_step", {lists.parameters, lists.averages, lists.squares, lists.maxima}, lists.gradients,
               &attributes);
  }
}

}  // namespace

Adam::Adam(const std::vector<OptimizerParamGroup>& groups, AdamOptions defaults)
    : Optimizer(groups, std::make_unique<AdamOptions>(defaults)) {
  check(defaults);
}

Tensor Adam::step(LossClosure closure) {
  return step_groups(closure, [this](const OptimizerParamGroup& group) {
    adam_step<AdamOptions, AdamParamState>(
        group, /*decoupled=*/false, [&](const Tensor& p) -> AdamParamState& { return state_of<AdamParamState>(p); });
  });
}

AdamW::AdamW(const std::vector<OptimizerParamGroup>& groups, AdamWOptions defaults)
    : Optimizer(groups, std::make_unique<AdamWOptions>(defaults)) {
  check(defaults);
}

Tensor AdamW::step(LossClosure closure) {
  return step_groups(closure, [this](const OptimizerParamGroup& group) {
    adam_step<AdamWOptions, AdamWParamState>(
        group, /*decoupled=*/true, [&](const Tensor& p) -> AdamWParamState& { return state_of<AdamWParamState>(p); });
  });
}

std::unique_ptr<OptimizerParamState> Adam::make_state() const { return std::make_unique<AdamParamState>(); }
std::unique_ptr<OptimizerParamState> AdamW::make_state() const { return std::make_unique<AdamWParamState>(); }

template class OptimizerCloneableOptions<AdamOptions>;
template class OptimizerCloneableParamState<AdamParamState>;
template class OptimizerCloneableOptions<AdamWOptions>;
template class OptimizerCloneableParamState<AdamWParamState>;

}  // namespace tenon::optim
