// Nodes: numbering, flat destruction.
#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/node_hooks.h>
#include <tenon/core/scope/scope.h>
#include <tenon/tensor/live_tensors.h>

#include <utility>

namespace tenon::autograd {
namespace {

// Counts per thread: within one thread later operators have larger numbers, which is all the engine needs.
constinit thread_local std::uint64_t next_sequence = 0;

/// The node that this thread is running, for ForwardTrace::parent.
constinit thread_local Node* running = nullptr;

constinit thread_local std::vector<Node*>* doomed = nullptr;

}  // namespace

Node* exchange_running_node(Node* node) { return std::exchange(running, node); }

ForwardTrace::ForwardTrace() = default;
ForwardTrace::~ForwardTrace() = default;

namespace {

/// What is kept of a node's making where somebody wants to know. Apart from the constructor, which every recorded
/// operator runs.
[[gnu::cold, gnu::noinline]] void keep_origin(Node* node, std::uint64_t sequence, scopes::ContextId& made_in,
                                              Owned<ForwardTrace>& trace) {
  if (scopes::are_lives_wanted()) list_node(node);
  if (scopes::is_listening()) {
    made_in = scopes::current_context();
    scopes::tell_node_made(node, sequence);
  }
  if (!modes.anomaly) return;
  trace = std::make_unique<ForwardTrace>();
  trace->text = capture_stack();
  trace->parent = IntrusivePtr<Node>(running);
}

}  // namespace

Node::Node() : sequence_(next_sequence++) {
  if (modes.anomaly || scopes::wanted() != 0) [[unlikely]]
    keep_origin(this, sequence_, made_in_, trace_);
}
Node::Node(std::uint64_t sequence) : sequence_(sequence) {}
Node::~Node() {
  if (scopes::are_lives_wanted()) [[unlikely]]
    forget_node(this);
}

edge_list Node::next_edges() const { return edge_list(edges_.begin(), edges_.end()); }

NodeHooks& Node::mutable_hooks() {
  if (!hooks_) {
    const ListedChange change;
    hooks_ = std::make_unique<NodeHooks>();
  }
  return *hooks_;
}
std::uintptr_t Node::add_pre_hook(NodePreHook hook) {
  mutable_hooks().pre.push_back(std::make_shared<const NodePreHook>(std::move(hook)));
  return mutable_hooks().pre.size() - 1;
}
std::uintptr_t Node::add_post_hook(NodePostHook hook) {
  mutable_hooks().post.push_back(std::make_shared<const NodePostHook>(std::move(hook)));
  return mutable_hooks().post.size() - 1;
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

}  // namespace tenon::autograd
