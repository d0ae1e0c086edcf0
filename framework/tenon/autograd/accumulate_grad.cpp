// AccumulateGrad: where a gradient reaches its leaf and is added to what is there. Declared in node.h.
#include <tenon/autograd/modes.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/node_hooks.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/scope/wanted.h>
#include <tenon/tensor/live_tensors.h>

#include <limits>
#include <mutex>
#include <utility>

namespace tenon::autograd {
namespace {

constexpr std::uint64_t kAccumulateSequence = std::numeric_limits<std::uint64_t>::max();

/// Whether dropping this handle would free the memory: no other tensor looks at it, but for the base of a view of its
/// own. `handles`: how many there are of it while its node runs.
bool is_sole_owner(const Tensor& tensor, std::size_t handles) {
  const TensorImpl& impl = tensor.impl();
  if (tensor.use_count() != handles || !impl.is_non_overlapping_and_dense()) return false;
  const std::uint32_t users = impl.storage_ptr()->use_count();
  if (users == 1) return true;
  const AutogradMeta* meta = meta_of(tensor);
  return users == 2 && meta && meta->view && meta->view->base.use_count() == 1 &&
         meta->view->base.numel() == tensor.numel();
}

// Note [Gradient layout]: the gradient of a leaf has the leaf's strides where that is dense, and is contiguous where
// not (as PyTorch documents in its accumulate_grad.h), so that an optimizer steps through both alike.
bool obeys_layout(const TensorImpl& gradient, const TensorImpl& leaf) {
  if (gradient.is_contiguous() && leaf.is_contiguous()) return true;
  if (!leaf.is_non_overlapping_and_dense()) return gradient.is_contiguous();
  for (int i = 0; i < leaf.rank(); ++i) {
    if (leaf.sizes()[i] != 1 && gradient.strides()[i] != leaf.strides()[i]) return false;
  }
  return true;
}

/// A copy of the gradient in the layout of Note [Gradient layout].
Tensor copied_for(const Tensor& leaf, const Tensor& gradient) {
  const TensorImpl& like = leaf.impl();
  if (like.is_contiguous() || !like.is_non_overlapping_and_dense()) return gradient.clone(MemoryFormat::Contiguous);
  if (obeys_layout(gradient.impl(), like)) return gradient.clone();
  return gradient.new_empty_strided(like.sizes(), like.strides()).copy_(gradient);
}

/// Adds a gradient whose history is recorded. Recording may take other metas' mutexes, so the sum is made without this
/// one, and made anew where another graph was quicker.
void accumulate_recorded(AutogradMeta& meta, const Tensor& leaf, const Tensor& incoming) {
  for (;;) {
    Tensor before;
    std::uint32_t version = 0;
    {
      std::lock_guard lock(mutex_of(&meta));
      before = meta.grad;
      if (before.defined()) version = before.impl().version();
    }
    Tensor sum = before.defined() ? before.add(incoming) : copied_for(leaf, incoming);
    std::lock_guard lock(mutex_of(&meta));
    if (!meta.grad.is_same(before) || (before.defined() && before.impl().version() != version)) continue;
    std::swap(meta.grad, sum);  // what it was goes after the lock
    return;
  }
}

}  // namespace

AccumulateGrad::AccumulateGrad(Tensor variable) : Node(kAccumulateSequence), variable_(std::move(variable)) {
  add_input_metadata(variable_);
}

AccumulateGrad::~AccumulateGrad() {
  AutogradMeta* meta = meta_of(variable_);
  if (!meta) return;
  std::lock_guard lock(mutex_of(meta));
  if (meta->accumulator == this) meta->accumulator = nullptr;
}

GradList AccumulateGrad::apply(GradList&& gradients) {
  Tensor& incoming = gradients[0];
  if (!incoming.defined() || !variable_.requires_grad()) return {};
  AutogradMeta& meta = materialize_meta(variable_);
  if (GradMode::is_enabled()) {
    accumulate_recorded(meta, variable_, incoming);
    return {};
  }
  std::lock_guard lock(mutex_of(&meta));  // several graphs may end in one leaf
  if (!meta.grad.defined()) {
    if (scopes::are_lives_wanted()) [[unlikely]]
      list_older_tensor(&variable_.impl());
    // Nothing else refers to it: take it over instead of copying.
    const bool is_shown = hooks() != nullptr && !hooks()->post.empty();  // to post hooks, after this
    if (is_sole_owner(incoming, is_shown ? 2 : 1) && obeys_layout(incoming.impl(), variable_.impl())) {
      meta.grad = incoming.detach();
    } else {
      meta.grad = copied_for(variable_, incoming);
    }
  } else {
    meta.grad.add_(incoming);
  }
  return {};
}

}  // namespace tenon::autograd
