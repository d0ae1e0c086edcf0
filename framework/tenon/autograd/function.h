// Custom functions: a struct with forward and backward becomes an operator.
//
//   struct Scale : autograd::Function<Scale> {
//     static Tensor forward(AutogradContext* ctx, Tensor x, double a) { ctx->saved_data["a"] = a; return x * a; }
//     static variable_list backward(AutogradContext* ctx, variable_list grad) {
//       return {grad[0] * ctx->saved_data["a"].toDouble(), Tensor()};
//     }
//   };
//   y = Scale::apply(x, 2.0);
#pragma once

#include <tenon/autograd/ivalue.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/owned.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::autograd {

/// A half-open range of inputs.
using IndexRange = std::pair<std::size_t, std::size_t>;

class TENON_API AutogradContext {
 public:
  AutogradContext();
  ~AutogradContext();
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  /// Anything that is not a tensor, by name.
  std::unordered_map<std::string, IValue> saved_data;

  /// Inputs or outputs of forward; kept with their versions and freed after backward.
  void save_for_backward(variable_list to_save);
  variable_list get_saved_variables() const;
  /// Inputs that forward modified in place.
  void mark_dirty(const variable_list& inputs);
  /// Outputs that no gradient flows through.
  void mark_non_differentiable(const variable_list& outputs);
  /// Whether undefined gradients become zeros before backward sees them. Default: yes.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  bool needs_input_grad(std::size_t edge) const;
  bool needs_input_grad(std::initializer_list<IndexRange> ranges) const;
  /// Shows what is kept for backward.
  void each_saved(const std::function<void(const SavedTensor&)>& show) const;

 private:
  template <class T>
  friend class CppNode;
  template <class T>
  friend struct Function;
  friend TENON_API variable_list wrap_outputs(const variable_list& inputs, const variable_list& outputs,
                                              AutogradContext& context, const IntrusivePtr<Node>& node);
  TENON_API void save_variables();
  /// Forgets what was saved: a second backward is told so.
  TENON_API void release();

  variable_list to_save_;
  std::vector<Owned<SavedTensor>> saved_;
  std::vector<TensorImpl*> dirty_;
  std::vector<TensorImpl*> non_differentiable_;
  bool materialize_grads_ = true;
  bool has_freed_buffers_ = false;
  Node* node_ = nullptr;  ///< owns this context
};

/// Gives the outputs of forward their history, minding inputs returned as they are, dirty ones and views.
TENON_API variable_list wrap_outputs(const variable_list& inputs, const variable_list& outputs,
                                     AutogradContext& context, const IntrusivePtr<Node>& node);

namespace detail {
/// What backward returned for the arguments that are variables. Throws Error for a wrong number, and for a gradient of
/// another argument.
TENON_API GradList gradients_of_variables(variable_list outputs, const std::vector<char>& is_variable,
                                          const std::string& name);
}  // namespace detail

/// The node of a custom function.
template <class T>
class CppNode final : public Node {
 public:
  CppNode() { context.node_ = this; }
  std::string name() const override { return name_of_type(typeid(T)); }
  void release_variables() override { context.release(); }
  void each_saved(const std::function<void(const SavedTensor&)>& show) const override { context.each_saved(show); }
  GradList apply(GradList&& gradients) override {
    variable_list incoming;
    incoming.reserve(gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined() || !context.materialize_grads_ || !input_metadata(i).state) {
        incoming.push_back(std::move(gradients[i]));
      } else {
        incoming.push_back(zeros_for(input_metadata(i)));
      }
    }
    variable_list outputs = T::backward(&context, std::move(incoming));
    return detail::gradients_of_variables(std::move(outputs), is_variable_input, name());
  }

  AutogradContext context;
  std::vector<char> is_variable_input;  ///< of each argument's tensors

 private:
  TENON_API static std::string name_of_type(const std::type_info& type);
  static Tensor zeros_for(const InputMetadata& metadata);
};

TENON_API std::string readable_type_name(const std::type_info& type);
TENON_API Tensor zeros_of(const InputMetadata& metadata);
template <class T>
std::string CppNode<T>::name_of_type(const std::type_info& type) {
  return readable_type_name(type);
}
template <class T>
Tensor CppNode<T>::zeros_for(const InputMetadata& metadata) {
  return zeros_of(metadata);
}

namespace detail {

TENON_API void collect(variable_list& tensors, std::vector<char>& flags, const Tensor& tensor);
TENON_API void collect(variable_list& tensors, std::vector<char>& flags, const std::optional<Tensor>& tensor);
TENON_API void collect(variable_list& tensors, std::vector<char>& flags, const variable_list& list);
TENON_API void collect(variable_list& tensors, std::vector<char>& flags, TensorList list);
template <class T>
void collect(variable_list&, std::vector<char>& flags, const T&) {
  flags.push_back(0);
}

TENON_API variable_list to_list(const Tensor& tensor);
TENON_API variable_list to_list(const variable_list& list);

}  // namespace detail

template <class T>
struct Function {
  template <class X = T, class... Arguments>
  static auto apply(Arguments&&... arguments)
      -> std::decay_t<decltype(X::forward(static_cast<AutogradContext*>(nullptr), arguments...))> {
    using Result = std::decay_t<decltype(X::forward(static_cast<AutogradContext*>(nullptr), arguments...))>;
    auto* node = new CppNode<T>();
    const IntrusivePtr<Node> owner(node);
    variable_list inputs;
    (detail::collect(inputs, node->is_variable_input, arguments), ...);
    bool wanted = false;
    for (const Tensor& input : inputs) wanted = wanted || requires_grad(input);
    wanted = wanted && GradMode::is_enabled();
    // Edges first: forward may modify inputs in place.
    for (const Tensor& input : inputs) node->add_next_edge(wanted ? gradient_edge(input) : Edge{});
    Result outputs = [&] {
      AutoGradMode no_grad(false);
      return T::forward(&node->context, std::forward<Arguments>(arguments)...);
    }();
    variable_list wrapped =
        wrap_outputs(inputs, detail::to_list(outputs), node->context, wanted ? owner : IntrusivePtr<Node>());
    if (wanted) node->context.save_variables();
    if constexpr (std::is_same_v<Result, Tensor>) {
      return wrapped[0];
    } else {
      return wrapped;
    }
  }
};

}  // namespace tenon::autograd
