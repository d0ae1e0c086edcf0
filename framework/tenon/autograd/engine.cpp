// backward() and grad(): from tensors to edges, a run of a GraphTask, and back.
#include <tenon/autograd/engine.h>
#include <tenon/autograd/graph_task.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/variable.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/history/thread_start.h>
#include <tenon/memory/purpose.h>
#include <tenon/tensor/libtorch/warning.h>

#include <exception>
#include <thread>

namespace tenon::autograd {
namespace {

/// Backward calls nested in nodes of backward calls; each takes stack, so that beyond this many a fresh thread goes on.
constexpr int kMaxReentrantDepth = 60;
constinit thread_local int depth = 0;

void run_on_this_thread(GraphTask& task, const edge_list& roots, variable_list&& gradients) {
  ++depth;
  struct Leave {
    ~Leave() { --depth; }
  } leave;
  PurposeGuard purpose(Purpose::kGradient);
  task.run(roots, std::move(gradients));
}

/// The node of an input that has none: its gradient is never computed.
class Identity final : public Node {
 public:
  std::string name() const override { return "IdentityBackward0"; }
  GradList apply(GradList&& gradients) override { return std::move(gradients); }
};

variable_list make_gradients(const variable_list& outputs, const variable_list& gradients) {
  if (!gradients.empty() && gradients.size() != outputs.size()) {
    throw Error("got " + std::to_string(outputs.size()) + " tensors and " + std::to_string(gradients.size()) +
                " gradients");
  }
  variable_list result;
  result.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i < gradients.size() && gradients[i].defined()) {
      result.push_back(gradients[i]);
      continue;
    }
    const Tensor& output = outputs[i];
    if (!output.requires_grad()) {
      result.emplace_back();
      continue;
    }
    if (output.numel() != 1) {
      throw Error("grad can be implicitly created only for scalar outputs (got a tensor of shape " +
                  to_string(output.sizes()) + ")");
    }
    PurposeGuard purpose(Purpose::kGradient);
    NoGradGuard no_grad;
    result.push_back(output.new_ones(output.sizes()));
  }
  return result;
}

edge_list root_edges(const variable_list& tensors) {
  edge_list roots;
  roots.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Edge edge = gradient_edge(tensors[i]);
    if (!edge.function) {
      throw Error("element " + std::to_string(i) + " of tensors does not require grad and does not have a grad_fn");
    }
    roots.push_back(std::move(edge));
  }
  return roots;
}

}  // namespace

variable_list run_backward(const edge_list& roots, variable_list gradients, bool keep_graph, bool create_graph,
                           bool accumulate, const edge_list& outputs) {
  const scopes::Scope phase(scopes::Phase::kBackward);
  validate_gradients(roots, gradients, [](std::string text) { return text; });
  GraphTask task(keep_graph, create_graph);
  if (!outputs.empty()) task.restrict_to(roots, outputs, accumulate);
  if (depth < kMaxReentrantDepth) {
    run_on_this_thread(task, roots, std::move(gradients));
  } else {
    std::exception_ptr failure;
    const ThreadState state = thread_state();
    const scopes::ContextId context = scopes::current_context();
    const ThreadStart start;
    std::thread helper([&] {
      const ThreadStart::Scope stacks(start);
      const scopes::ContextGuard there(context);
      set_thread_state(state);
      try {
        run_on_this_thread(task, roots, std::move(gradients));
      } catch (...) {
        failure = std::current_exception();
      }
    });
    helper.join();
    if (failure) std::rethrow_exception(failure);
  }
  return std::move(task.captured());
}

void backward(const variable_list& tensors, const variable_list& grad_tensors, std::optional<bool> retain_graph,
              bool create_graph, const variable_list& inputs) {
  if (create_graph) {
    TENON_WARN_ONCE(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. It is recommended to use autograd.grad when creating the graph to avoid this. "
        "If "
        "you have to use this function, make sure to reset the .grad fields of your parameters to None after use to "
        "break the cycle and avoid the leak.");
  }
  const variable_list gradients = make_gradients(tensors, grad_tensors);
  const edge_list roots = root_edges(tensors);
  edge_list outputs;
  for (const Tensor& input : inputs) {
    if (!input.requires_grad()) throw Error("One of the differentiated Tensors does not require grad");
    input.retain_grad();
    outputs.push_back(gradient_edge(input));
  }
  run_backward(roots, gradients, retain_graph.value_or(create_graph), create_graph, true, outputs);
}

variable_list grad(const variable_list& outputs, const variable_list& inputs, const variable_list& grad_outputs,
                   std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  if (inputs.empty()) throw ValueError("grad requires non-empty inputs.");
  const variable_list gradients = make_gradients(outputs, grad_outputs);
  const edge_list roots = root_edges(outputs);
  edge_list targets;
  for (const Tensor& input : inputs) {
    if (!input.requires_grad()) throw Error("One of the differentiated Tensors does not require grad");
    // A leaf that took part in nothing has no accumulator yet; a fresh one is reached by no path, which is the same.
    Edge edge = gradient_edge(input);
    if (!edge.function) edge = {IntrusivePtr<Node>(new Identity), 0};
    targets.push_back(std::move(edge));
  }
  variable_list result =
      run_backward(roots, gradients, retain_graph.value_or(create_graph), create_graph, false, targets);
  if (!allow_unused) {
    for (const Tensor& gradient : result) {
      if (!gradient.defined()) {
        throw Error(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired behavior.");
      }
    }
  }
  return result;
}

}  // namespace tenon::autograd
