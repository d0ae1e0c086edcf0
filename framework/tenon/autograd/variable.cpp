// Histories: edges of tensors, views and what in-place writes do to them.
#include <tenon/autograd/modes.h>
#include <tenon/autograd/node_hooks.h>
#include <tenon/autograd/retained_gradient.h>
#include <tenon/autograd/variable.h>
#include <tenon/autograd/view_nodes.h>
#include <tenon/core/scope/wanted.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/live_tensors.h>

#include <array>
#include <utility>

namespace tenon::autograd {
namespace {

/// Refuses a write to a view that autograd could not follow: through the view itself, or (`indirect`) through its base
/// or another view, found when the view's history is asked for.
void check_creation(const AutogradMeta& meta, bool indirect = false) {
  const CreationMeta creation = meta.view->creation;
  if (creation == CreationMeta::DEFAULT) return;
  const std::string what =
      indirect ? "its base or another view of its base has been modified inplace" : "is being modified inplace";
  if (creation == CreationMeta::NO_GRAD_MODE || creation == CreationMeta::INFERENCE_MODE) {
    const bool no_grad = creation == CreationMeta::NO_GRAD_MODE;
    throw Error(
        std::string("A view was created in ") + (no_grad ? "no_grad" : "inference") + " mode and " + what + " " +
        (no_grad ? "with grad mode enabled" : "in normal mode") +
        ". Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        "both the view and the inplace either both inside the " +
        (no_grad ? "no_grad" : "inference_mode") +
        " block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
        "tracked).");
  }
  std::string message;
  if (meta.grad_fn) {
    message =
        "Output " + std::to_string(meta.output_nr) + " of " + meta.grad_fn->name() + " is a view and " + what + ". ";
  }
  if (creation == CreationMeta::MULTI_OUTPUT_NODE) {
    throw Error(
        message +
        "This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one.");
  }
  throw Error(
      message +
      "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic "
      "to handle view+inplace would override the custom backward associated with the custom Function, leading to "
      "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
      "Function.");
}

}  // namespace

AutogradMeta::~AutogradMeta() {
  if (retains_grad) forget_retained(*this);
}

std::recursive_mutex& mutex_of(const AutogradMeta* meta) {
  static std::array<std::recursive_mutex, 64> mutexes;
  return mutexes[(reinterpret_cast<std::uintptr_t>(meta) >> 6) % mutexes.size()];
}

AutogradMeta& materialize_meta(const Tensor& tensor) {
  TensorImpl& impl = tensor.impl();
  if (!impl.autograd_meta()) impl.set_autograd_meta(std::make_unique<AutogradMeta>());
  return *meta_of(tensor);
}

Edge gradient_edge(const Tensor& tensor) {
  AutogradMeta* meta = tensor.defined() ? meta_of(tensor) : nullptr;
  if (!meta) return {};
  if (meta->view) {
    if (const IntrusivePtr<Node>& function = tensor.grad_fn()) return {function, meta->output_nr};
  } else if (meta->grad_fn) {
    return {meta->grad_fn, meta->output_nr};
  }
  if (!meta->requires_grad) return {};
  std::lock_guard lock(mutex_of(meta));
  if (meta->accumulator && meta->accumulator->try_retain()) return {IntrusivePtr<Node>::adopt(meta->accumulator), 0};
  IntrusivePtr<Node> fresh(new AccumulateGrad(tensor));
  meta->accumulator = fresh.get();
  return {std::move(fresh), 0};
}

void set_gradient_edge(const Tensor& tensor, Edge edge) {
  // A sum that was there before the list began is on it once its history is of interest.
  if (scopes::are_lives_wanted()) [[unlikely]]
    list_tensor(&tensor.impl());
  AutogradMeta& meta = materialize_meta(tensor);
  if (meta.retains_grad) forget_retained(meta);
  IntrusivePtr<HookList> former_hooks;
  {
    const ListedChange change;
    meta.grad_fn.swap(edge.function);
    meta.hooks.swap(former_hooks);
  }
  meta.output_nr = edge.input_nr;
  if (meta.retains_grad) list_retained(meta);  // what keeps the gradient follows the tensor to its new history
  if (meta.view) meta.view->attr_version = tensor.impl().version();
}

void set_history(const Tensor& tensor, const IntrusivePtr<Node>& node) {
  if (!tensor.defined()) {
    node->add_undefined_input();
    return;
  }
  const std::uint32_t number = node->add_input_metadata(tensor);
  TensorImpl& impl = tensor.impl();
  if (!tenon::is_floating_point(impl.dtype())) return;
  if (!impl.autograd_meta()) {
    auto meta = std::make_unique<AutogradMeta>();
    meta->grad_fn = node;
    meta->output_nr = number;
    impl.set_autograd_meta(std::move(meta));
  } else {
    set_gradient_edge(tensor, {node, number});
  }
}

void rebase_history(const Tensor& tensor, IntrusivePtr<Node> node) {
  AutogradMeta& meta = materialize_meta(tensor);
  if (meta.view) {
    check_creation(meta);
    const std::uint32_t number = node->add_input_metadata(tensor);
    TENON_ASSERT(number == 0, "an in-place function has one output");
    const Tensor& base = meta.view->base;
    set_gradient_edge(base, {write_through_view(base, tensor, std::move(node)), 0});
    meta.view->attr_version = tensor.impl().version() - 1;  // whoever asked since the write got the former base's
    tensor.grad_fn();                                       // regenerated from the base
    return;
  }
  const std::uint32_t number = node->add_input_metadata(tensor);
  set_gradient_edge(tensor, {std::move(node), number});
}

void check_inplace(const Tensor& tensor, bool operands_require_grad) {
  if (tensor.is_inference() && !modes.inference) {
    throw Error(
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
  }
  if (!modes.grad_enabled) return;
  const AutogradMeta* meta = meta_of(tensor);
  if (!meta) return;
  if (meta->view && (operands_require_grad || tensor.requires_grad())) {
    check_creation(*meta);
    if (tensor.requires_grad() && meta->view->base.is_leaf()) {
      throw Error("a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
  }
  if (tensor.requires_grad() && tensor.is_leaf()) {
    throw Error("a leaf Variable that requires grad is being used in an in-place operation.");
  }
}

void make_view(const Tensor& base, const Tensor& view, CreationMeta creation) {
  if (base.is_inference()) {
    view.impl().set_inference(true);
    return;
  }
  if (!tenon::is_floating_point(view.scalar_type())) return;
  auto info = std::make_unique<ViewInfo>();
  const AutogradMeta* base_meta = meta_of(base);
  if (base_meta && base_meta->view) {
    info->base = base_meta->view->base;
    // A view of a view made in inference mode stays one of that kind.
    const CreationMeta inherited = base_meta->view->creation;
    if (creation == CreationMeta::DEFAULT || inherited == CreationMeta::INFERENCE_MODE) creation = inherited;
  } else {
    info->base = base;
  }
  info->attr_version = view.impl().version();
  info->creation = creation;
  if (AutogradMeta* meta = meta_of(view)) {
    const ListedChange change;
    meta->view = std::move(info);
  } else {  // the usual: nobody sees it before it is whole
    auto fresh = std::make_unique<AutogradMeta>();
    fresh->view = std::move(info);
    view.impl().set_autograd_meta(std::move(fresh));
  }
}

void impl_bump_version(const Tensor& tensor) {
  if (!tensor.is_inference()) tensor.impl().bump_version();
}

Variable make_variable(const Tensor& data, bool requires_grad, bool /*allow_tensor_metadata_change*/) {
  if (!data.defined()) return {};
  Tensor result = alias_of(data);
  result.impl().set_own_version(0);
  if (requires_grad) result.set_requires_grad(true);
  return result;
}

}  // namespace tenon::autograd

namespace tenon {

using namespace autograd;

const IntrusivePtr<Node>& Tensor::grad_fn() const {
  static const IntrusivePtr<Node> none;
  AutogradMeta* meta = meta_of(*this);
  if (!meta) return none;
  if (!meta->view) return meta->grad_fn;
  IntrusivePtr<Node> replaced;          // its end may take other metas' mutexes: after this one is given back
  IntrusivePtr<HookList> former_hooks;  // the replaced node's, as in set_gradient_edge()
  std::unique_lock lock(mutex_of(meta));
  ViewInfo& view = *meta->view;
  const auto is_outdated = [&] {
    return view.attr_version != impl_->version() && tenon::autograd::requires_grad(view.base);
  };
  if (!is_outdated()) return meta->grad_fn;
  check_creation(*meta, true);
  const AutogradMeta* const base = meta_of(view.base);
  Edge of_base;
  if (base->grad_fn) {
    of_base = gradient_edge(view.base);
  } else if (!meta->grad_fn) {
    // A leaf, written to without gradients: it requires one only since the view was made, which came out of nothing. (A
    // view that came out of it stays what it is.) The accumulator's mutex may be this one.
    lock.unlock();
    of_base = gradient_edge(view.base);
    lock.lock();
    if (!is_outdated()) return meta->grad_fn;
  }
  const std::uint32_t version = impl_->version();
  if (of_base.function) {
    IntrusivePtr<Node> fresh = view_of_base(std::move(of_base), view.base, *this);
    if (meta->retains_grad) forget_retained(*meta);
    {
      const ListedChange change;
      meta->grad_fn.swap(fresh);
      meta->hooks.swap(former_hooks);
    }
    replaced = std::move(fresh);
    meta->output_nr = 0;
    if (meta->retains_grad) list_retained(*meta);
  }
  view.attr_version = version;
  return meta->grad_fn;
}

}  // namespace tenon
