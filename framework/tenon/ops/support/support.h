// What operators are written with: running a kernel, recording its backward, promotion and broadcasting.
#pragma once

#include <tenon/autograd/modes.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/dispatch/call.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/tensor.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {
/// The dtype of an operation on both (numbers and rank-0 tensors weigh less).
TENON_API Dtype result_type(const Tensor& a, const Tensor& b);
TENON_API Dtype result_type(const Tensor& a, const Scalar& b);
TENON_API bool can_cast(Dtype from, Dtype to);
}  // namespace tenon

namespace tenon::ops {

inline TensorView view_of(const Tensor& tensor) { return tensor.defined() ? tensor.impl().view() : undefined_view(); }

/// The view of a tensor broadcast to `sizes`; `strides` is storage for its strides.
inline TensorView view_as(const Tensor& tensor, const Dims& sizes, Dims& strides) {
  const TensorImpl& impl = tensor.impl();
  if (impl.sizes() == sizes) return impl.view();
  strides = expanded_strides(impl.sizes(), impl.strides(), sizes);
  TensorView view = impl.view();
  view.sizes = sizes.data();
  view.strides = strides.data();
  view.rank = sizes.rank();
  return view;
}

inline void run(OperatorId op, DeviceState& state, std::initializer_list<TensorView> outputs,
                std::initializer_list<TensorView> inputs, const void* attributes = nullptr) {
  call_kernel(op, state, {outputs.begin(), outputs.size()}, {inputs.begin(), inputs.size()}, attributes);
}

inline DeviceState& state_of(const Tensor& tensor) { return tensor.impl().storage().state(); }

/// Throws unless all defined tensors are on one device.
void check_same_device(const char* op, std::initializer_list<const Tensor*> tensors);
/// Throws unless all defined tensors have one dtype.
void check_same_dtype(const char* op, std::initializer_list<const Tensor*> tensors);
/// Throws unless the tensor is of a floating dtype.
void check_floating(const char* op, const Tensor& tensor);

// --- recording ------------------------------------------------------------------------------------------------------

/// What a backward formula sees.
class Backward {
 public:
  Backward(autograd::Node& node, autograd::GradList& gradients, autograd::SavedTensor* slots,
           autograd::GradList& results)
      : node_(node), gradients_(gradients), slots_(slots), results_(results) {}
  /// The gradient of the i-th output; undefined stands for zero.
  const Tensor& grad(std::size_t i = 0) const { return gradients_[i]; }
  Tensor saved(std::size_t i) const { return slots_[i].unpack(node_); }
  /// Whether anybody wants the gradient of the i-th input.
  bool needs(std::size_t i) const { return node_.task_should_compute_output(i); }
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
  void save(std::size_t slot, const Tensor& tensor) { slots_[slot].save(tensor); }
  /// After outputs() or rebased().
  void save_output(std::size_t slot, const Tensor& tensor) { slots_[slot].save(tensor, true); }
  void output(const Tensor& tensor) {
    if (node_) autograd::set_history(tensor, node_);
  }
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

/// The end of an in-place operator on `self`: new version, new history.
inline void finish_inplace(const Tensor& self, const Recording& recording) {
  autograd::impl_bump_version(self);
  if (recording) autograd::rebase_history(self, recording.node());
}

/// Tensors for a backward formula's own use of a kernel: no graph wanted.
inline bool differentiating_twice() { return autograd::modes.grad_enabled; }

// --- shapes and dtypes ----------------------------------------------------------------------------------------------

/// Throws Error where an in-place write to `self` would reach one element through several places (an expanded tensor).
void check_written(const Tensor& self);
/// Whether `operand` reads memory of `self`'s storage other than element by element with a write to `self`.
bool reads_elsewhere_in(const Tensor& operand, const Tensor& self);
/// The dtype in which `op` computes integers: the default one. Throws Error where that was set to no floating dtype.
Dtype floating_default(std::string_view op);
/// Sums `gradient` to the sizes of the operand that was broadcast.
Tensor reduce_to(Tensor gradient, const Dims& sizes);
/// A rank-0 tensor from a number, on a device; counts as a number in promotion.
Tensor wrapped_scalar(const Scalar& value, DeviceState& state);
Tensor scalar_tensor_like(const Scalar& value, const Tensor& like);
/// Sizes of a result with dims reduced; `kept` keeps them as 1.
Dims reduced_sizes(const Dims& sizes, std::uint32_t mask, bool keep);
/// Bit i is set where dim i is named; no dims at all = every one.
std::uint32_t dim_mask(OptionalIntArrayRef dims, int rank);
/// Puts back dims of size 1 that a reduction dropped.
Tensor unsqueeze_mask(const Tensor& tensor, std::uint32_t mask, int rank);
/// A contiguous tensor of the same values (itself where it is).
inline Tensor dense(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }
/// Without history; for kernels on values.
inline Tensor value_of(const Tensor& tensor) { return tensor; }

}  // namespace tenon::ops
