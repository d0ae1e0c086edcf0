// The methods of Tensor that concern gradients. Declared in tensor.h.
#include <tenon/autograd/engine.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/node_hooks.h>
#include <tenon/autograd/retained_gradient.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/scope/wanted.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/libtorch/warning.h>
#include <tenon/tensor/live_tensors.h>

namespace tenon {

using namespace autograd;

bool Tensor::requires_grad() const {
  if (!defined()) return false;
  const AutogradMeta* meta = meta_of(*this);
  if (!meta) return false;
  if (meta->requires_grad || meta->grad_fn) return true;
  // A view requires what its base requires, even one made in no-grad mode, which has no edge to it.
  return meta->view && tenon::autograd::requires_grad(meta->view->base);
}

const Tensor& Tensor::set_requires_grad(bool value) const {
  if (!is_leaf() && !value) {
    throw Error(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  }
  if (value && !is_floating_point()) {
    throw Error("Only Tensors of floating point and complex dtype can require gradients");
  }
  if (value && is_inference() && !modes.inference) {
    throw Error("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  }
  if (!is_leaf()) return *this;
  if (!value && !meta_of(*this)) return *this;
  materialize_meta(*this).requires_grad = value;
  return *this;
}

bool Tensor::is_leaf() const {
  const AutogradMeta* meta = meta_of(*this);
  if (!meta) return true;
  // A view made in no-grad or inference mode takes on no history from its base: nothing to regenerate, and nothing to
  // refuse.
  if (meta->view && meta->view->creation != CreationMeta::DEFAULT) return !meta->grad_fn;
  return !grad_fn();
}

Tensor& Tensor::mutable_grad() const { return materialize_meta(*this).grad; }

const Tensor& Tensor::grad() const {
  static const Tensor none;
  const AutogradMeta* meta = meta_of(*this);
  if (!meta) return none;
  if (!meta->grad.defined() && !meta->retains_grad && grad_fn()) {
    TENON_WARN(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, "
        "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
        "the "
        "leaf Tensor instead.");
  }
  return meta->grad;
}

std::int64_t Tensor::output_nr() const {
  grad_fn();
  const AutogradMeta* meta = meta_of(*this);
  return meta ? meta->output_nr : 0;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      std::optional<TensorList> inputs) const {
  if (inputs && inputs->empty()) throw Error("'inputs' argument to backward cannot be empty");
  autograd::backward({*this}, {gradient}, retain_graph, create_graph, inputs ? inputs->vec() : variable_list{});
}

void Tensor::retain_grad() const {
  if (!requires_grad()) throw Error("can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf()) return;
  AutogradMeta& meta = materialize_meta(*this);
  if (meta.retains_grad) return;
  grad_fn();  // regenerated, where this is a view of something that was written to
  meta.retains_grad = true;
  list_retained(meta);
}

bool Tensor::retains_grad() const {
  const AutogradMeta* meta = meta_of(*this);
  return meta && meta->retains_grad;
}

bool Tensor::is_view() const {
  const AutogradMeta* meta = meta_of(*this);
  return meta && meta->view;
}

Tensor Tensor::_base() const {
  if (!is_view()) throw Error("Can't get base of non-backward view Tensor");
  return meta_of(*this)->view->base;
}

Tensor Tensor::tensor_data() const {
  Tensor result = alias_of(*this);
  result.impl().set_wrapped_number(false);
  return result;
}
Tensor Tensor::variable_data() const {
  Tensor result = tensor_data();
  result.impl().set_own_version(0);
  return result;
}

void Tensor::set_data(const Tensor& data) const {
  TensorImpl& self = impl();
  const TensorImpl& from = data.impl();
  if (requires_grad() && !tenon::is_floating_point(from.dtype())) {
    throw Error("data set to a tensor that requires gradients must be floating point or complex dtype");
  }
  if (AutogradMeta* meta = meta_of(*this)) {
    // The gradient accumulator described the old sizes.
    std::lock_guard lock(mutex_of(meta));
    meta->accumulator = nullptr;
  }
  self.set_own_version(self.version());
  self.set_storage(from.storage_ptr(), from.dtype());
  self.set_strided(from.sizes(), from.strides(), from.offset());
  if (!from.is_inference()) self.set_inference(false);
}

unsigned Tensor::register_hook_(TensorHook hook) const {
  if (!requires_grad()) throw Error("cannot register a hook on a variable that doesn't require gradient");
  AutogradMeta& meta = materialize_meta(*this);
  // Of a view it may be made now, under a lock that is taken before the list's; the hooks of its former one stay there.
  const IntrusivePtr<Node> function = grad_fn();
  const ListedChange change;
  if (!meta.hooks) {
    meta.hooks = make_intrusive<HookList>();
    if (function) function->mutable_hooks().tensor_hooks.emplace_back(meta.output_nr, meta.hooks);
  }
  if (scopes::are_lives_wanted()) [[unlikely]] {
    list_hooks(meta.hooks.get());
    list_older_tensor(&impl());
  }
  meta.hooks->hooks.push_back(hook ? std::make_shared<const TensorHook>(std::move(hook)) : nullptr);
  return static_cast<unsigned>(meta.hooks->hooks.size() - 1);
}

void Tensor::remove_hook(unsigned position) const {
  AutogradMeta* meta = meta_of(*this);
  if (!meta || !meta->hooks || position >= meta->hooks->hooks.size()) {
    throw Error("Invalid index, no hook at position " + std::to_string(position));
  }
  std::shared_ptr<const TensorHook> former;
  const ListedChange change;
  former.swap(meta->hooks->hooks[position]);
}

}  // namespace tenon
