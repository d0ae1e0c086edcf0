// Nodes: numbering, flat destruction, accumulation into leaves.
#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/variable.h>

#include <limits>

namespace tenon::autograd {
namespace {

// Counts per thread: within one thread later operators have larger numbers, which is all the engine needs.
constinit thread_local std::uint64_t next_sequence = 0;

constexpr std::uint64_t kAccumulateSequence = std::numeric_limits<std::uint64_t>::max();

/// The node that this thread is running, for ForwardTrace::parent.
constinit thread_local Node* running = nullptr;

constinit thread_local std::vector<Node*>* doomed = nullptr;

/// Whether dropping this handle would free the memory: no other tensor looks at it, but for the base of a view of its own.
bool is_sole_owner(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  if (tensor.use_count() != 1 || !impl.is_non_overlapping_and_dense()) return false;
  const std::uint32_t users = impl.storage_ptr()->use_count();
  if (users == 1) return true;
  const AutogradMeta* meta = meta_of(tensor);
  return users == 2 && meta && meta->view && meta->view->base.use_count() == 1 &&
         meta->view->base.numel() == tensor.numel();
}

}  // namespace

Node* running_node() { return running; }
Node* exchange_running_node(Node* node) { return std::exchange(running, node); }

ForwardTrace::ForwardTrace() = default;
ForwardTrace::~ForwardTrace() = default;

Node::Node() : sequence_(next_sequence++) {
  if (modes.anomaly) [[unlikely]] {
    trace_ = std::make_unique<ForwardTrace>();
    trace_->text = capture_stack();
    trace_->parent = IntrusivePtr<Node>(running);
  }
}
Node::~Node() = default;

NodeHooks& Node::mutable_hooks() {
  if (!hooks_) hooks_ = std::make_unique<NodeHooks>();
  return *hooks_;
}

void destroy_counted(Node* node) noexcept {
  if (doomed) {
    doomed->push_back(node);
    return;
  }
  std::vector<Node*> list;
  doomed = &list;
  delete node;
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    delete next;
  }
  doomed = nullptr;
}

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
    meta.grad = meta.grad.defined() ? meta.grad.add(incoming) : incoming.clone();
    return {};
  }
  std::lock_guard lock(mutex_of(&meta));  // several graphs may end in one leaf
  if (!meta.grad.defined()) {
    // Nobody else sees it: take it over instead of copying.
    if (is_sole_owner(incoming)) {
      meta.grad = incoming.detach();
    } else {
      meta.grad = incoming.clone();
    }
  } else {
    meta.grad.add_(incoming);
  }
  return {};
}

}  // namespace tenon::autograd
