// Saved tensors: kept as they are, packed by hooks, checked on use.
#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/autograd/version_check.h>
#include <tenon/autograd/view_nodes.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/live_tensors.h>

namespace tenon::autograd {
namespace {
thread_local std::shared_ptr<SavedTensorHooks> hooks_in_service;
// Read on every save: a plain flag spares the look at a thread-local object with a destructor.
constinit thread_local bool have_hooks = false;
}  // namespace

SavedTensorHooksGuard::SavedTensorHooksGuard(SavedTensorHooks hooks)
    : previous_(std::exchange(hooks_in_service, std::make_shared<SavedTensorHooks>(std::move(hooks)))) {
  have_hooks = true;
}
SavedTensorHooksGuard::~SavedTensorHooksGuard() {
  hooks_in_service = std::move(previous_);
  have_hooks = hooks_in_service != nullptr;
}

struct SavedTensor::Packed {
  std::shared_ptr<SavedTensorHooks> hooks;
  std::any value;
  bool requires_grad = false;
  IntrusivePtr<Node> grad_fn;  ///< of a non-output: the history to give back to what unpack returns
  Tensor leaf;                 ///< a leaf gives back itself as history
};

SavedTensor::SavedTensor() noexcept = default;
SavedTensor::~SavedTensor() = default;
const std::any* SavedTensor::packed() const { return packed_ ? &packed_->value : nullptr; }
void SavedTensor::reset() {
  if (!holds()) return;
  released_ = true;
  Tensor former;
  Owned<Packed> former_packed;
  const ListedChange change;
  former = std::move(data_);
  former_packed = std::move(packed_);
}

void throw_backward_twice() {
  throw Error(
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
      "been "
      "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
      "retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
      "tensors "
      "after calling backward.");
}

void throw_modified(const Tensor& tensor, std::uint32_t expected, const Edge& origin, const std::string& saved_by,
                    const ForwardTrace* trace) {
  const TensorImpl& impl = tensor.impl();
  std::string message =
      "one of the variables needed for gradient computation has been modified by an inplace operation: [" +
      tensor.toString() + " " + to_string(impl.sizes()) + "]";
  if (origin.function) {
    message += ", which is output " + std::to_string(origin.input_nr) + " of " + origin.function->name() + ",";
  }
  message += " is at version " + std::to_string(impl.version()) + "; expected version " + std::to_string(expected) +
             " instead. It was saved by " + saved_by + ".";
  if (trace != nullptr) {
    message +=
        " Hint: the backtrace further below shows the operation that failed to compute its gradient. The variable "
        "in question was changed in there or anywhere later. Good luck!\nForward call:\n" +
        trace->text;
  } else {
    message +=
        " Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True) (a DetectAnomalyGuard in C++).";
  }
  throw Error(message);
}

void SavedTensor::save(const Tensor& tensor, bool is_output) {
  if (!tensor.defined()) return;
  if (tensor.is_inference() && !InferenceMode::is_enabled()) {
    throw Error(
        "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor "
        "and use it in autograd.");
  }
  version_ = tensor.impl().version();
  const AutogradMeta* meta = meta_of(tensor);
  is_output_ = is_output && meta && meta->grad_fn;
  if (meta) output_nr_ = meta->output_nr;
  {
    Tensor kept = is_output_ ? alias_of(tensor) : tensor;  // without its history, which would be the node itself
    const ListedChange change;
    data_ = std::move(kept);
  }
  if (have_hooks) [[unlikely]]
    pack_with(hooks_in_service);
}

void SavedTensor::pack_with(const std::shared_ptr<SavedTensorHooks>& hooks) {
  auto packed = std::make_unique<Packed>();
  packed->hooks = hooks;
  const Tensor original = data_;
  if (!is_output_) {
    packed->requires_grad = original.requires_grad();
    if (original.is_leaf()) {
      if (packed->requires_grad) packed->leaf = original;
    } else {
      packed->grad_fn = original.grad_fn();
    }
  }
  {
    NoGradGuard no_grad;
    packed->value = hooks->pack(is_output_ ? original : original.detach());
  }
  const ListedChange change;
  data_.reset();  // `original` keeps it
  packed_ = std::move(packed);
}

Tensor SavedTensor::unpack(Node& saved_for) const {
  if (released_) throw_backward_twice();
  if (packed_) {
    Tensor value;
    {
      NoGradGuard no_grad;
      value = packed_->hooks->unpack(packed_->value);
    }
    if (!value.defined()) throw Error("a saved-tensor unpack hook returned an undefined tensor");
    Tensor result = alias_of(value);
    if (is_output_) {
      set_gradient_edge(result, edge_of_result(saved_for, output_nr_));
    } else if (packed_->leaf.defined()) {
      set_gradient_edge(result, gradient_edge(packed_->leaf));
    } else if (packed_->grad_fn) {
      set_gradient_edge(result, {packed_->grad_fn, output_nr_});
    }
    return result;
  }
  if (!data_.defined()) return {};
  if (data_.impl().version() != version_) {
    const IntrusivePtr<Node> origin = is_output_ ? IntrusivePtr<Node>(&saved_for) : data_.grad_fn();
    throw_modified(data_, version_, {origin, output_nr_}, saved_for.name(), saved_for.trace());
  }
  if (!is_output_) return data_;
  Tensor result = alias_of(data_);
  set_gradient_edge(result, edge_of_result(saved_for, output_nr_));
  return result;
}

}  // namespace tenon::autograd
