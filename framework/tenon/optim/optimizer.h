// Optimizer: parameter groups with options, a state per parameter, a step. Names and semantics are libtorch's.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/module.h>
#include <tenon/nn/options/arg.h>
#include <tenon/optim/state_storage.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon {
class InputArchive;
class OutputArchive;
}  // namespace tenon

namespace tenon::optim {

/// What an optimiser remembers of one parameter.
class TENON_EXPORT OptimizerParamState {
 public:
  OptimizerParamState() = default;
  OptimizerParamState(const OptimizerParamState&) = default;
  OptimizerParamState& operator=(const OptimizerParamState&) = default;
  TENON_API virtual ~OptimizerParamState();
  /// A copy of the same type.
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;
  /// Its tensors of the parameter's size, always as many, undefined ones too: what Optimizer::store_states() moves.
  /// None unless overridden.
  TENON_API virtual std::vector<StateTensor> tensors();
  /// Throw Error unless overridden: only optimisers that are saved need them.
  TENON_API virtual void serialize(InputArchive& archive);
  TENON_API virtual void serialize(OutputArchive& archive) const;
};

/// Learning rate, momentum … of a group.
class TENON_EXPORT OptimizerOptions {
 public:
  OptimizerOptions() = default;
  OptimizerOptions(const OptimizerOptions&) = default;
  OptimizerOptions& operator=(const OptimizerOptions&) = default;
  TENON_API virtual ~OptimizerOptions();
  /// A copy of the same type.
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  /// Throw Error unless overridden: only what is saved, or has a schedule, needs them.
  TENON_API virtual void serialize(InputArchive& archive);
  TENON_API virtual void serialize(OutputArchive& archive) const;
  /// The learning rate. Throws Error unless overridden: only what has a schedule needs it.
  TENON_API virtual double get_lr() const;
  /// Sets the learning rate. Throws Error unless overridden.
  TENON_API virtual void set_lr(double lr);
  /// Takes from an optimiser's options each that was not set here, that is, which is as the constructor leaves it (of
  /// SGDOptions a learning rate of 1e-3, as in libtorch 2.15). Does nothing unless overridden, or for another type.
  TENON_API virtual void inherit(const OptimizerOptions& defaults);
};

template <class Derived>
class TENON_EXPORT OptimizerCloneableParamState : public OptimizerParamState {
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::unique_ptr<OptimizerParamState>(new Derived(static_cast<const Derived&>(*this)));
  }
};
template <class Derived>
class TENON_EXPORT OptimizerCloneableOptions : public OptimizerOptions {
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::unique_ptr<OptimizerOptions>(new Derived(static_cast<const Derived&>(*this)));
  }
};

/// Parameters that share options. What of these a group has not set, or all of them, it takes from the optimiser's.
class TENON_API OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params);  // NOLINT: as in libtorch
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options);
  OptimizerParamGroup(const OptimizerParamGroup& other);
  OptimizerParamGroup& operator=(const OptimizerParamGroup& other);
  ~OptimizerParamGroup();

  /// Whether the group has options of its own.
  bool has_options() const { return options_ != nullptr; }
  /// The group's options, of which it has some once an optimiser holds it. Ends the program where there are none: ask
  /// has_options().
  OptimizerOptions& options();
  const OptimizerOptions& options() const;
  /// Gives the group options of its own.
  void set_options(std::unique_ptr<OptimizerOptions> options);
  /// The parameters.
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

/// The key of a parameter's state: its address as text.
TENON_API std::string state_key(const Tensor& parameter);

class TENON_EXPORT Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  using StateMap = std::unordered_map<std::string, std::unique_ptr<OptimizerParamState>>;

  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  /// The other one has no groups afterwards. A scheduler of it does not follow.
  TENON_API Optimizer(Optimizer&& other) noexcept;
  TENON_API Optimizer(const std::vector<OptimizerParamGroup>& groups, std::unique_ptr<OptimizerOptions> defaults);
  TENON_API Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults);
  TENON_API virtual ~Optimizer();

  /// Adds a copy of the group, which inherits what it has not set from defaults(). Throws Error when a
  /// parameter is in a group already, or twice in this one, or is not a leaf; nothing is added then.
  TENON_API void add_param_group(const OptimizerParamGroup& group);
  /// Adds parameters to the first group, unchecked. Warns, as do parameters() and size(): libtorch's old interface.
  TENON_API void add_parameters(const std::vector<Tensor>& parameters);

  /// Updates every parameter that has a gradient. With a closure, computes the loss first and returns it.
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  /// step() of this parameter alone, with the options of its group. Throws Error where no group has it, and as step().
  TENON_API void step_parameter(const Tensor& parameter);
  /// Gives the memory of the gradients back, or zeroes them. PyTorch's default, from 2.0 on.
  TENON_API void zero_grad(bool set_to_none = true);

  /// The parameters of the first group. Warns: libtorch's old interface; param_groups() has them all.
  TENON_API const std::vector<Tensor>& parameters() const;
  TENON_API std::vector<Tensor>& parameters();
  /// The number of parameters of all groups.
  TENON_API std::size_t size() const;
  /// The options that a group inherits when it is added.
  OptimizerOptions& defaults() { return *defaults_; }
  const OptimizerOptions& defaults() const { return *defaults_; }
  /// The groups, for reading or for changing their options.
  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }
  /// From now on states live where and as the options say, beginning with those that are there; step() brings those of
  /// one parameter at a time to its device and takes them back. state() shows what is kept: bytes of pack_blocks(), or
  /// tensors in host memory, of which a device may still write until it is synchronized. Throws Error where the
  /// optimiser's states name no tensors() (L-BFGS).
  TENON_API void store_states(const StateStorageOptions& options);
  /// Where and as what they live.
  const StateStorageOptions& state_storage() const { return storage_.options(); }
  /// What is remembered of each parameter that was stepped, by state_key().
  StateMap& state() { return state_; }
  const StateMap& state() const { return state_; }

  /// A state as its serialize() wrote it, of this optimiser's type and where the archive has it: for who keeps states
  /// of its own. Throws Error where something of it is missing.
  TENON_API std::unique_ptr<OptimizerParamState> read_state(InputArchive& archive) const;

  /// Writes the groups' options and every state.
  TENON_API virtual void save(OutputArchive& archive) const;
  /// Reads what save() wrote, or libtorch's older form, which has states only and which it warns of. States come on
  /// their parameters' devices, or as store_states() said, however they were kept when they were saved. Throws Error
  /// where groups or parameters differ in number.
  TENON_API virtual void load(InputArchive& archive);

 protected:
  /// step() of an optimiser that updates each parameter by itself: the closure, then update(group) for every group,
  /// with gradients off; where states are stored elsewhere, for groups of one parameter whose state is there. Throws
  /// Error for those while a graph is captured.
  TENON_API Tensor step_groups(const LossClosure& closure,
                               const std::function<void(const OptimizerParamGroup&)>& update);
  /// Runs the closure with gradients on; undefined without one.
  TENON_API static Tensor loss_of(const LossClosure& closure);
  /// A state of the optimiser's own type, for load().
  TENON_API virtual std::unique_ptr<OptimizerParamState> make_state() const;

  /// The state of a parameter, made on first use.
  template <class State>
  State& state_of(const Tensor& parameter) {
    auto& slot = slot_of(parameter);
    if (!slot) slot.reset(new State());
    return static_cast<State&>(*slot);
  }

  /// Where the state of a parameter stands; null until it is made.
  TENON_API std::unique_ptr<OptimizerParamState>& slot_of(const Tensor& parameter);

  std::vector<OptimizerParamGroup> groups_;
  StateMap state_;
  std::unique_ptr<OptimizerOptions> defaults_;

 private:
  StateStorage storage_;
};

/// Zeros like a parameter, with the purpose "optimizer_state". Throws Error while a graph is captured.
TENON_API Tensor new_state(const Tensor& parameter);

}  // namespace tenon::optim
