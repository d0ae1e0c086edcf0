// How an operator is recorded for backward: a formula, the tensors that it saves, and the node made of both.
#pragma once

#include <tenon/autograd/autocast_cast.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/tensor.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace tenon::ops {

/// What a backward formula sees.
class Backward {
 public:
  Backward(autograd::Node& node, autograd::GradList& gradients, autograd::SavedTensor* slots,
           autograd::GradList& results)
      : node_(node), gradients_(gradients), slots_(slots), results_(results) {}
  /// The gradient of the i-th output; undefined stands for zero.
  const Tensor& grad(std::size_t i = 0) const { return gradients_[i]; }
  /// A saved tensor. Throws Error where it has been written to since.
  Tensor saved(std::size_t i) const { return slots_[i].unpack(node_); }
  /// Whether the gradient of the i-th input is wanted.
  bool needs(std::size_t i) const { return node_.task_should_compute_output(i); }
  /// Gives the gradient of the i-th input.
  void set(std::size_t i, Tensor gradient) { results_[i] = std::move(gradient); }
  /// Gives up the incoming gradient, so that its memory may be reused.
  Tensor take_grad(std::size_t i = 0) { return std::move(gradients_[i]); }

 private:
  autograd::Node& node_;
  autograd::GradList& gradients_;
  autograd::SavedTensor* slots_;
  autograd::GradList& results_;
};

template <class Formula, std::size_t kSlots>
class FormulaNode final : public autograd::Node {
 public:
  FormulaNode(const char* name, Formula formula) : name_(name), formula_(std::move(formula)) {}
  std::string name() const override { return name_; }
  autograd::GradList apply(autograd::GradList&& gradients) override {
    const autocast::WithoutAutocast as_the_forward;
    autograd::GradList results;
    results.resize(num_outputs());
    for (const Tensor& gradient : gradients) {
      if (gradient.defined()) {
        Backward backward(*this, gradients, slots(), results);
        formula_(backward);
        break;
      }
    }
    return results;
  }
  void release_variables() override {
    if constexpr (kSlots > 0) {
      for (autograd::SavedTensor& slot : slots_) slot.reset();
    }
  }
  void each_saved(const std::function<void(const autograd::SavedTensor&)>& show) const override {
    if constexpr (kSlots > 0) {
      for (const autograd::SavedTensor& slot : slots_)
        if (slot.holds()) show(slot);
    }
  }
  /// The saved tensors, by position.
  autograd::SavedTensor* slots() {
    if constexpr (kSlots > 0) {
      return slots_;
    } else {
      return nullptr;
    }
  }

 private:
  const char* name_;
  Formula formula_;
  autograd::SavedTensor slots_[kSlots > 0 ? kSlots : 1];
};

/// A node in the making; false where nothing needs to be recorded.
class Recording {
 public:
  Recording() = default;
  Recording(IntrusivePtr<autograd::Node> node, autograd::SavedTensor* slots) : node_(std::move(node)), slots_(slots) {}
  explicit operator bool() const { return static_cast<bool>(node_); }
  /// Keeps a tensor for the backward formula.
  void save(std::size_t slot, const Tensor& tensor) { slots_[slot].save(tensor); }
  /// After output() or finish_inplace(): the saved output then knows its own node.
  void save_output(std::size_t slot, const Tensor& tensor) { slots_[slot].save(tensor, true); }
  /// Says that the tensor came out of the node.
  void output(const Tensor& tensor) {
    if (node_) autograd::set_history(tensor, node_);
  }
  /// The node; null where nothing is recorded.
  const IntrusivePtr<autograd::Node>& node() const { return node_; }

 private:
  IntrusivePtr<autograd::Node> node_;
  autograd::SavedTensor* slots_ = nullptr;
};

/// Operators on inference tensors alone are not recorded, whatever flags those carry.
inline bool must_record(std::initializer_list<const Tensor*> inputs) {
  if (!autograd::modes.grad_enabled) return false;
  bool wanted_by_inference = false;
  for (const Tensor* input : inputs) {
    if (!autograd::requires_grad(*input)) continue;
    if (!input->is_inference()) return true;
    wanted_by_inference = true;
  }
  if (!wanted_by_inference) [[likely]]
    return false;
  for (const Tensor* input : inputs) {
    if (input->defined() && !input->is_inference()) return true;
  }
  return false;
}

/// Makes the node of an operator whose inputs are given (undefined ones have no edge), unless nothing is to be
/// recorded. The formula gets a Backward&; input i's gradient is set(i, …). Saved tensors: save() before the kernel
/// runs.
template <std::size_t kSlots, class Formula>
Recording record(const char* name, std::initializer_list<const Tensor*> inputs, Formula formula) {
  if (!must_record(inputs)) return {};
  auto node = make_intrusive<FormulaNode<Formula, kSlots>>(name, std::move(formula));
  for (const Tensor* input : inputs) node->add_next_edge(autograd::gradient_edge(*input));
  autograd::SavedTensor* slots = node->slots();
  return {std::move(node), slots};
}

/// What an in-place form saves of the tensor that it writes to: the values before that, with their history for a second
/// derivative.
inline Tensor saved_self(const Tensor& self, bool inplace = true) { return inplace ? self.clone() : self; }

/// What it saves of another operand. Where that is self (y.mul_(y)) the node becomes its history, and they would hold
/// each other: it is another handle, which backward refuses as written to.
inline Tensor saved_operand(const Tensor& operand, const Tensor& self, bool inplace = true) {
  return inplace && operand.is_same(self) ? alias_of(operand) : operand;
}

/// The end of an in-place operator on `self`: new version, new history.
inline void finish_inplace(const Tensor& self, const Recording& recording) {
  autograd::impl_bump_version(self);
  if (recording) autograd::rebase_history(self, recording.node());
}

/// Whether a backward formula's result must be differentiable itself: then it is written with operators, not with a
/// kernel of its own.
inline bool differentiating_twice() { return autograd::modes.grad_enabled; }

}  // namespace tenon::ops
