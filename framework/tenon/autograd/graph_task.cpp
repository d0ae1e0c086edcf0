// One run: dependencies are counted first, then nodes run as they become ready, the last recorded first.
#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/graph_task.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/node_hooks.h>
#include <tenon/autograd/retained_gradient.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/scope/scope.h>
#include <tenon/device/no_data.h>
#include <tenon/tensor/libtorch/warning.h>

#include <algorithm>
#include <limits>

namespace tenon::autograd {

Node* exchange_running_node(Node* node);

namespace {

constinit thread_local GraphTask* running_task = nullptr;

class RunningNode {
 public:
  explicit RunningNode(Node* node) : previous_(exchange_running_node(node)) {}
  ~RunningNode() { exchange_running_node(previous_); }

 private:
  Node* previous_;
};

/// The scope of a node that is run, under PyTorch's two names: with all that the engine does for it, and alone.
[[gnu::cold, gnu::noinline]] void enter_node(scopes::Scope& scope, const Node& node, bool is_alone) {
  const std::string name = node.name();
  scope.enter({.kind = scopes::Kind::kBackward,
               .name = (is_alone ? name : "autograd::engine::evaluate_function: " + name).c_str(),
               .sequence = node.sequence_nr(),
               .forward = node.made_in(),
               .node = &node},
              "");
}

/// Brings one gradient to the form that `to` expects. `who` begins what an error says: "Function … returned an ".
void validate(const Edge& to, Tensor& gradient, std::size_t index, const std::string& who) {
  const InputMetadata& expected = to.function->input_metadata(to.input_nr);
  const TensorImpl& impl = gradient.impl();
  if (!expected.state) return;
  if (!(impl.sizes() == expected.sizes)) {
    if (!is_expandable_to(expected.sizes, impl.sizes())) {
      throw Error(who + "invalid gradient at index " + std::to_string(index) + " - got " + to_string(impl.sizes()) +
                  " but expected shape compatible with " + to_string(expected.sizes));
    }
    gradient = gradient.sum_to_size(expected.sizes);
  }
  if (gradient.scalar_type() != expected.dtype) gradient = gradient.to(expected.dtype);
  if (&gradient.impl().storage().state() != expected.state) {
    if (gradient.dim() == 0) {
      gradient = gradient.to(TensorOptions(expected.state->device()));
    } else {
      throw Error(who + "invalid gradient at index " + std::to_string(index) + " - expected device " +
                  expected.state->device().str() + " but got " + gradient.device().str());
    }
  }
}

Tensor accumulate(Tensor&& old, Tensor&& fresh) {
  // The sum goes into the first one's memory where nothing else refers to it.
  if (!GradMode::is_enabled() && old.use_count() == 1 && old.impl().storage_ptr()->use_count() == 1 &&
      old.impl().is_non_overlapping_and_dense() && old.sizes() == fresh.sizes() &&
      old.scalar_type() == fresh.scalar_type()) {
    old.add_(fresh);
    old.impl().storage().version() = 0;  // it was never visible: this is not a write to a gradient
    return std::move(old);
  }
  return old.add(fresh);
}

/// What a hook returns must be of the gradient's type, device and size. Throws Error.
void check_replacement(std::size_t hook, const Tensor& was, const Tensor& got) {
  const std::string who = "hook '" + std::to_string(hook) + "' has changed the ";
  if (was.scalar_type() != got.scalar_type() || !(was.device() == got.device())) {
    const auto type = [](const Tensor& tensor) {
      return tensor.toString() + (tensor.device().is_cpu() ? "" : " on " + tensor.device().str());
    };
    throw Error(who + "type of value (was " + type(was) + " got " + type(got) + ")");
  }
  if (was.sizes() != got.sizes()) {
    throw Error(who + "size of value: got " + to_string(got.sizes()) + ", expected " + to_string(was.sizes()));
  }
}

/// A hook of a node returns as many gradients as it was given. Throws Error.
void check_count(std::size_t hook, std::size_t given, std::size_t got) {
  if (got == given) return;
  throw Error("hook '" + std::to_string(hook) + "' has returned an incorrect number of values (got " +
              std::to_string(got) + ", but expected " + std::to_string(given) + ")");
}

void print_forward_trace(const Node& node) {
  if (!node.trace()) return;
  TENON_WARN("Error detected in ", node.name(), ". Traceback of forward call that caused the error:\n",
             node.trace()->text);
  for (const ForwardTrace* trace = node.trace(); trace && trace->parent; trace = trace->parent->trace()) {
    const ForwardTrace* outer = trace->parent->trace();
    TENON_WARN("Previous calculation was induced by ", trace->parent->name(),
               ". Traceback of forward call that induced the previous calculation:\n",
               outer ? outer->text : std::string());
  }
}

}  // namespace

bool Node::task_should_compute_output(std::size_t i) const {
  if (!edges_[i].is_valid()) return false;
  return !running_task || running_task->wants(edges_[i].function.get());
}

GraphTask::GraphTask(bool keep_graph, bool create_graph)
    : keep_graph_(keep_graph), create_graph_(create_graph), within_restricted_(runs_for_some_gradients()) {}

bool GraphTask::runs_for_some_gradients() {
  return running_task && (running_task->restricted_ || running_task->within_restricted_);
}

bool GraphTask::wants(const Node* node) {
  if (!restricted_) return true;
  const ExecInfo* info = exec_info_.find(node);
  return info && info->should_execute();
}

void GraphTask::restrict_to(const edge_list& roots, const edge_list& outputs, bool accumulate) {
  restricted_ = true;
  captured_.resize(accumulate ? 0 : outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].function) continue;
    ExecInfo& info = exec_info_[outputs[i].function.get()];
    if (accumulate) {
      info.needed = true;
    } else {
      info.captures.push_back({outputs[i].input_nr, i});
    }
  }
  // Depth first with a stack of our own; a node is needed if any of its successors is wanted.
  struct Frame {
    Node* node;
    std::size_t next = 0;
  };
  NodeMap<bool> seen;
  std::vector<Frame> stack;
  const auto enter = [&](Node* node) {
    if (seen[node]) return;
    seen[node] = true;
    stack.push_back({node});
  };
  for (const Edge& root : roots) {
    if (root.function) enter(root.function.get());
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.node->num_outputs()) {
        Node* next = frame.node->next_edge(frame.next++).function.get();
        if (next) enter(next);
        continue;
      }
      Node* node = frame.node;
      stack.pop_back();
      bool needed = false;
      for (const Edge& edge : node->edges()) needed = needed || (edge.function && wants(edge.function.get()));
      if (needed) exec_info_[node].needed = true;
    }
  }
}

void GraphTask::count_dependencies(const edge_list& roots) {
  NodeMap<bool> seen;
  std::vector<Node*> stack;
  for (const Edge& root : roots) {
    if (!root.function || seen[root.function.get()]) continue;
    seen[root.function.get()] = true;
    stack.push_back(root.function.get());
    pending_[root.function.get()];
  }
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->edges()) {
      Node* next = edge.function.get();
      if (!next) continue;
      // A first visit is what makes the entry.
      const std::size_t before = pending_.size();
      Pending& pending = pending_[next];
      ++pending.dependencies;
      if (pending_.size() != before) stack.push_back(next);
    }
  }
}

void GraphTask::push_ready(IntrusivePtr<Node> node, std::int32_t buffer) {
  const std::uint64_t sequence = node->sequence_nr();
  ready_.push_back({sequence, arrivals_++, std::move(node), buffer});
  std::push_heap(ready_.begin(), ready_.end());
}

void GraphTask::deliver(const Edge& edge, Tensor&& gradient, Pending& pending) {
  if (pending.buffer < 0) {
    if (free_buffers_.empty()) {
      pending.buffer = static_cast<std::int32_t>(buffers_.size());
      buffers_.emplace_back();
    } else {
      pending.buffer = free_buffers_.back();
      free_buffers_.pop_back();
    }
    buffers_[static_cast<std::size_t>(pending.buffer)].resize(edge.function->num_inputs());
  }
  if (!gradient.defined()) return;
  Tensor& slot = buffers_[static_cast<std::size_t>(pending.buffer)][edge.input_nr];
  slot = slot.defined() ? accumulate(std::move(slot), std::move(gradient)) : std::move(gradient);
}

GradList GraphTask::call(Node& node, GradList&& gradients) {
  NodeHooks* hooks = node.hooks();
  if (hooks) [[unlikely]] {
    for (std::size_t i = 0, count = hooks->pre.size(); i < count; ++i) {
      const std::shared_ptr<const NodePreHook> hook = hooks->pre[i];
      variable_list seen = (*hook)(variable_list(gradients.begin(), gradients.end()));
      check_count(i, gradients.size(), seen.size());
      gradients = GradList(seen.begin(), seen.end());
    }
  }
  variable_list inputs;
  const bool has_post_hooks = hooks && !hooks->post.empty();
  if (has_post_hooks) inputs.assign(gradients.begin(), gradients.end());
  GradList results;
  {
    RunningNode running(&node);
    scopes::Scope scope;
    if (scopes::is_listening()) [[unlikely]]
      enter_node(scope, node, /*is_alone=*/true);
    try {
      results = node.apply(std::move(gradients));
    } catch (...) {
      print_forward_trace(node);
      throw;
    }
  }
  if (!keep_graph_) node.release_variables();
  if (has_post_hooks) {
    variable_list outputs(results.begin(), results.end());
    for (std::size_t i = 0, count = hooks->post.size(); i < count; ++i) {
      const std::shared_ptr<const NodePostHook> hook = hooks->post[i];
      outputs = (*hook)(outputs, inputs);
    }
    results = GradList(outputs.begin(), outputs.end());
  }
  return results;
}

void GraphTask::evaluate(Ready&& ready) {
  Node& node = *ready.node;
  scopes::Scope scope;
  if (scopes::is_listening()) [[unlikely]]
    enter_node(scope, node, /*is_alone=*/false);
  GradList gradients = std::move(buffers_[static_cast<std::size_t>(ready.buffer)]);
  buffers_[static_cast<std::size_t>(ready.buffer)].clear();
  free_buffers_.push_back(ready.buffer);

  const auto apply_hooks = [&](const HookList& list, Tensor& gradient) {
    for (std::size_t i = 0, count = list.hooks.size(); i < count; ++i) {
      const std::shared_ptr<const TensorHook> hook = list.hooks[i];
      if (!hook || !gradient.defined()) continue;
      Tensor replaced = (*hook)(gradient);
      if (!replaced.defined()) continue;
      check_replacement(i, gradient, replaced);
      gradient = std::move(replaced);
    }
  };
  if (NodeHooks* hooks = node.hooks()) [[unlikely]] {
    for (std::size_t i = 0; i < hooks->tensor_hooks.size(); ++i) {
      const auto entry = hooks->tensor_hooks[i];
      if (entry.first < gradients.size()) apply_hooks(*entry.second, gradients[entry.first]);
    }
    keep_retained(node, gradients);  // whoever asks that list whether it is empty needs its mutex
  }
  if (node.sequence_nr() == std::numeric_limits<std::uint64_t>::max()) {
    if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(&node)) {
      const AutogradMeta* meta = meta_of(leaf->variable());
      if (meta && meta->hooks) [[unlikely]] {
        const IntrusivePtr<HookList> keep = meta->hooks;
        apply_hooks(*keep, gradients[0]);
      }
    }
  }
  if (restricted_) {
    const ExecInfo* info = exec_info_.find(&node);
    if (!info) return;
    for (const ExecInfo::Capture& capture : info->captures) captured_[capture.output] = gradients[capture.input];
    if (!info->needed) return;
  }

  GradList results = call(node, std::move(gradients));
  gradients.clear();  // NOLINT(bugprone-use-after-move): empty, whatever the node left of them
  const std::size_t count = node.num_outputs();
  if (results.size() < count) {
    throw Error("Function " + node.name() + " returned an invalid number of gradients - expected " +
                std::to_string(count) + ", but got " + std::to_string(results.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Edge& edge = node.next_edge(i);
    if (!edge.function) continue;
    Tensor& result = results[i];
    if (result.defined()) {
      const TensorImpl& impl = result.impl();
      const InputMetadata& expected = edge.function->input_metadata(edge.input_nr);
      if (!(impl.sizes() == expected.sizes) || impl.dtype() != expected.dtype ||
          &impl.storage().state() != expected.state) [[unlikely]] {
        validate(edge, result, i, "Function " + node.name() + " returned an ");
      }
      if (modes.anomaly && modes.anomaly_check_nan && holds_data(result.impl().storage().state().driver()))
          [[unlikely]] {
        NoGradGuard no_grad;
        if (result.ne(result).any().item<bool>()) {
          print_forward_trace(node);
          throw Error("Function '" + node.name() + "' returned nan values in its " + std::to_string(i) + "th output." +
                      (node.trace() ? " Forward call:\n" + node.trace()->text : ""));
        }
      }
    }
    Pending* pending = pending_.find(edge.function.get());
    if (restricted_ && !wants(edge.function.get())) continue;
    deliver(edge, std::move(result), *pending);
    if (--pending->dependencies == 0) push_ready(edge.function, pending->buffer);
  }
}

void GraphTask::run(const edge_list& roots, variable_list gradients) {
  count_dependencies(roots);
  GraphTask* const outer = std::exchange(running_task, this);
  struct Restore {
    GraphTask* outer;
    ~Restore() { running_task = outer; }
  } restore{outer};
  AutoGradMode mode(create_graph_);

  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (roots[i].function) deliver(roots[i], std::move(gradients[i]), pending_[roots[i].function.get()]);
  }
  gradients.clear();
  NodeMap<bool> pushed;
  for (const Edge& root : roots) {
    if (!root.function || pushed[root.function.get()]) continue;
    pushed[root.function.get()] = true;
    const Pending& pending = pending_[root.function.get()];
    if (pending.dependencies == 0) push_ready(root.function, pending.buffer);
  }
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    Ready next = std::move(ready_.back());
    ready_.pop_back();
    evaluate(std::move(next));
  }
}

void validate_gradients(const edge_list& edges, variable_list& gradients,
                        const std::function<std::string(std::string)>& format) {
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i].function || !gradients[i].defined()) continue;
    try {
      validate(edges[i], gradients[i], i, "");
    } catch (const OutOfMemory&) {  // for what it is brought to
      throw;
    } catch (const Error& error) {
      throw Error(format(error.what()));
    }
  }
}

}  // namespace tenon::autograd
