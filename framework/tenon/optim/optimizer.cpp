// Optimizer: groups, gradients to zero, state to and from archives.
#include <tenon/optim/optimizer.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/demangled.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/support/old_archive.h>
#include <tenon/optim/support/optimizer_scope.h>
#include <tenon/tensor/captured_graph.h>
#include <tenon/tensor/libtorch/warning.h>

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

namespace tenon::optim {

OptimizerParamState::~OptimizerParamState() = default;
std::vector<StateTensor> OptimizerParamState::tensors() { return {}; }
OptimizerOptions::~OptimizerOptions() = default;
Optimizer::Optimizer(Optimizer&& other) noexcept = default;
Optimizer::~Optimizer() = default;

OptimizerParamGroup::OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
OptimizerParamGroup::OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
    : params_(std::move(params)), options_(std::move(options)) {}
OptimizerParamGroup::OptimizerParamGroup(const OptimizerParamGroup& other)
    : params_(other.params_), options_(other.has_options() ? other.options_->clone() : nullptr) {}
OptimizerParamGroup& OptimizerParamGroup::operator=(const OptimizerParamGroup& other) {
  params_ = other.params_;
  options_ = other.has_options() ? other.options_->clone() : nullptr;
  return *this;
}
OptimizerParamGroup::~OptimizerParamGroup() = default;
void OptimizerParamGroup::set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }

std::unique_ptr<OptimizerParamState>& Optimizer::slot_of(const Tensor& parameter) {
  return state_[state_key(parameter)];
}

Optimizer::Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)
    : Optimizer({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}

namespace {

[[noreturn]] void not_overridden(const char* what) {
  throw Error(fmt::format("{} has not been implemented for this optimizer: override it to use it", what));
}

// libtorch's old interface: it warns there, too.
void warn_of_old_interface(const char* what) {
  TENON_WARN("Optimizer::", what, " is the old interface and will be removed: use param_groups() instead");
}

}  // namespace

void OptimizerParamState::serialize(InputArchive&) { not_overridden("OptimizerParamState::serialize(InputArchive)"); }
void OptimizerParamState::serialize(OutputArchive&) const {
  not_overridden("OptimizerParamState::serialize(OutputArchive)");
}
void OptimizerOptions::serialize(InputArchive&) { not_overridden("OptimizerOptions::serialize(InputArchive)"); }
void OptimizerOptions::serialize(OutputArchive&) const { not_overridden("OptimizerOptions::serialize(OutputArchive)"); }
double OptimizerOptions::get_lr() const { not_overridden("OptimizerOptions::get_lr()"); }
void OptimizerOptions::set_lr(double) { not_overridden("OptimizerOptions::set_lr()"); }
void OptimizerOptions::inherit(const OptimizerOptions&) {}
std::unique_ptr<OptimizerParamState> Optimizer::make_state() const { not_overridden("Optimizer::make_state()"); }

OptimizerOptions& OptimizerParamGroup::options() {
  TENON_ASSERT(options_ != nullptr, "a group in an optimiser has options");
  return *options_;
}
const OptimizerOptions& OptimizerParamGroup::options() const {
  return const_cast<OptimizerParamGroup*>(this)->options();
}

std::string state_key(const Tensor& parameter) {
  std::ostringstream text;
  text << static_cast<const void*>(parameter.unsafeGetTensorImpl());
  return text.str();
}

Tensor new_state(const Tensor& parameter) {
  if (CapturedGraph::current(parameter.device()) != nullptr)
    throw Error(
        "an optimiser makes its state at its first step, and a graph would make it anew in each run: take one "
        "step before capture_begin()");
  PurposeGuard purpose(Purpose::kOptimizerState);
  return tenon::zeros_like(parameter);
}

Optimizer::Optimizer(const std::vector<OptimizerParamGroup>& groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : groups) add_param_group(group);
}

void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  std::unordered_set<const void*> known;
  for (const auto& existing : groups_) {
    for (const Tensor& parameter : existing.params()) known.insert(parameter.unsafeGetTensorImpl());
  }
  for (const Tensor& parameter : group.params()) {
    if (!parameter.is_leaf()) throw Error("can't optimize a non-leaf Tensor");
    if (!known.insert(parameter.unsafeGetTensorImpl()).second) {
      throw Error("some parameters appear in more than one parameter group");
    }
  }
  OptimizerParamGroup copy = group;
  if (copy.has_options())
    copy.options().inherit(*defaults_);
  else
    copy.set_options(defaults_->clone());
  groups_.push_back(std::move(copy));
}

void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  warn_of_old_interface("add_parameters()");
  auto& first = groups_.at(0).params();
  first.insert(first.end(), parameters.begin(), parameters.end());
}

void Optimizer::zero_grad(bool set_to_none) {
  const OptimizerScope scope(*this, "zero_grad");
  const scopes::Scope phase(scopes::Phase::kOptimizer);
  for (auto& group : groups_) {
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      if (set_to_none) {
        parameter.mutable_grad() = Tensor();
      } else {
        parameter.mutable_grad() = parameter.grad().detach();
        parameter.mutable_grad().zero_();
      }
    }
  }
}

void Optimizer::step_parameter(const Tensor& parameter) {
  const auto group = std::ranges::find_if(groups_, [&](const OptimizerParamGroup& one) {
    return std::ranges::any_of(one.params(), [&](const Tensor& known) { return known.is_same(parameter); });
  });
  if (group == groups_.end()) throw Error("step_parameter: the tensor is in no parameter group of the optimizer");
  // Every optimiser steps through its groups: for this step there is one, of one parameter.
  std::vector<OptimizerParamGroup> alone;
  alone.emplace_back(std::vector<Tensor>{parameter}, group->options().clone());
  groups_.swap(alone);
  struct PutBack {
    std::vector<OptimizerParamGroup>&groups, &all;
    ~PutBack() { groups.swap(all); }
  } put_back{groups_, alone};
  step();
}

void Optimizer::store_states(const StateStorageOptions& options) {
  if (make_state()->tensors().empty())
    throw Error("store_states: the states of this optimizer name no tensors of a parameter's size that could be moved");
  storage_ = StateStorage(options);
  for (const auto& group : groups_) {
    for (const Tensor& parameter : group.params()) {
      const auto found = state_.find(state_key(parameter));
      if (found != state_.end() && found->second) storage_.settle(*found->second, parameter);
    }
  }
}

OptimizerScope::OptimizerScope(const Optimizer& optimizer, const char* what) noexcept {
  if (scopes::is_listening()) [[unlikely]]
    enter(optimizer, what);
}

[[gnu::cold]] void OptimizerScope::enter(const Optimizer& optimizer, const char* what) noexcept {
  try {
    const std::string type = demangled(typeid(optimizer).name());
    const auto colons = type.rfind(':');
    const std::string name =
        fmt::format("Optimizer.{}#{}.{}", what, colons == std::string::npos ? type : type.substr(colons + 1), what);
    label_.enter({.kind = scopes::Kind::kLabel, .name = name.c_str()}, "");
  } catch (...) {
    return;  // no memory for a name: the scope is not entered
  }
}

Tensor Optimizer::step_groups(const LossClosure& closure,
                              const std::function<void(const OptimizerParamGroup&)>& update) {
  const NoGradGuard no_grad;
  const OptimizerScope scope(*this, "step");
  Tensor loss = loss_of(closure);
  const scopes::Scope phase(scopes::Phase::kOptimizer);
  for (const auto& group : groups_) {
    if (storage_.is_plain()) {
      update(group);
      continue;
    }
    for (const Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      if (CapturedGraph::current(parameter.device()) != nullptr)
        throw Error(
            "states that are stored in 8 bits or in host memory are brought by each step, which a graph would "
            "not repeat: capture with states as they are");
      BroughtState brought(storage_, slot_of(parameter), parameter);
      update(OptimizerParamGroup({parameter}, group.options().clone()));
      brought.put_back();
    }
  }
  return loss;
}

Tensor Optimizer::loss_of(const LossClosure& closure) {
  if (!closure) return {};
  AutoGradMode with_gradients(true);
  return closure();
}

const std::vector<Tensor>& Optimizer::parameters() const {
  warn_of_old_interface("parameters()");
  return groups_.at(0).params();
}
std::vector<Tensor>& Optimizer::parameters() {
  warn_of_old_interface("parameters()");
  return groups_.at(0).params();
}
std::size_t Optimizer::size() const {
  warn_of_old_interface("size()");
  std::size_t count = 0;
  for (const auto& group : groups_) count += group.params().size();
  return count;
}

// The archive holds groups and states by position, so that it fits any process: addresses mean nothing there.
std::unique_ptr<OptimizerParamState> Optimizer::read_state(InputArchive& archive) const {
  PurposeGuard purpose(Purpose::kOptimizerState);
  auto state = make_state();
  state->serialize(archive);
  return state;
}

void Optimizer::save(OutputArchive& archive) const {
  if (storage_.options().on_host) {
    for (const auto& group : groups_) {
      for (const Tensor& parameter : group.params()) storage_.finish_copies(parameter.device());
    }
  }
  OutputArchive groups;
  OutputArchive states;
  std::size_t position = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    OutputArchive options;
    groups_[g].options().serialize(options);
    OutputArchive group;
    group.write("options", options);
    group.write("size", static_cast<std::int64_t>(groups_[g].params().size()));
    groups.write(std::to_string(g), group);
    for (const Tensor& parameter : groups_[g].params()) {
      const auto found = state_.find(state_key(parameter));
      if (found != state_.end() && found->second) {
        OutputArchive state;
        found->second->serialize(state);
        states.write(std::to_string(position), state);
      }
      ++position;
    }
  }
  archive.write("param_groups", groups);
  archive.write("state", states);
  archive.write("groups", static_cast<std::int64_t>(groups_.size()));
}

// All is read before anything is changed.
void Optimizer::load(InputArchive& archive) {
  std::vector<std::pair<Tensor, std::unique_ptr<OptimizerParamState>>> read;
  const auto read_state_of = [&](const Tensor& parameter, InputArchive& saved) {
    auto state = read_state(saved);
    fit_state(*state, parameter);
    storage_.settle(*state, parameter);
    read.emplace_back(parameter, std::move(state));
  };
  const auto take_all = [&] {
    state_.clear();
    for (auto& [parameter, state] : read) state_[state_key(parameter)] = std::move(state);
  };
  const PurposeGuard purpose(Purpose::kOptimizerState);
  const auto& first = groups_.at(0).params();
  if (const auto old = states_of_old_archive(archive, first.size()); !old.empty()) {
    TENON_WARN(
        "Your serialized optimizer is still using the old serialization format. You should re-save it to use the new "
        "serialization format.");
    for (std::size_t i = 0; i < old.size(); ++i) {
      InputArchive saved;
      saved.load_from(old[i].content());
      read_state_of(first[i], saved);
    }
    return take_all();
  }
  const std::int64_t count = archive.read_integer("groups");
  if (count != static_cast<std::int64_t>(groups_.size())) {
    throw Error(fmt::format("loaded state dict has a different number of parameter groups: {}, this optimizer has {}",
                            count, groups_.size()));
  }
  InputArchive groups, states;
  archive.read("param_groups", groups);
  archive.try_read("state", states);  // nothing is in it where no parameter has a state
  std::vector<std::unique_ptr<OptimizerOptions>> options;
  std::size_t position = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    InputArchive group, of_group;
    groups.read(std::to_string(g), group);
    if (group.read_integer("size") != static_cast<std::int64_t>(groups_[g].params().size())) {
      throw Error(
          fmt::format("loaded state dict contains a parameter group that doesn't match the size of optimizer's group "
                      "{}: {} parameters, this optimizer has {}",
                      g, group.read_integer("size"), groups_[g].params().size()));
    }
    group.read("options", of_group);
    options.push_back(groups_[g].options().clone());
    options.back()->serialize(of_group);
    for (const Tensor& parameter : groups_[g].params()) {
      InputArchive saved;
      if (states.try_read(std::to_string(position), saved)) read_state_of(parameter, saved);
      ++position;
    }
  }
  take_all();
  for (std::size_t g = 0; g < groups_.size(); ++g) groups_[g].set_options(std::move(options[g]));
}

}  // namespace tenon::optim
