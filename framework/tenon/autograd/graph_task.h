// GraphTask: the state of one run of the engine. Private to autograd/.
#pragma once

#include <tenon/autograd/engine.h>
#include <tenon/autograd/node_map.h>

#include <functional>
#include <vector>

namespace tenon::autograd {

/// What a run that was asked for certain gradients does at a node.
struct ExecInfo {
  struct Capture {
    std::uint32_t input = 0;
    std::size_t output = 0;
  };
  bool needed = false;
  std::vector<Capture> captures;
  bool should_execute() const { return needed || !captures.empty(); }
};

class GraphTask {
 public:
  GraphTask(bool keep_graph, bool create_graph);

  /// Marks the nodes on a way to `outputs`; only those run.
  void restrict_to(const edge_list& roots, const edge_list& outputs, bool accumulate);
  void run(const edge_list& roots, variable_list gradients);
  bool wants(const Node* node);
  variable_list& captured() { return captured_; }
  /// Whether this thread is in a run that was asked for certain gradients, or in one that such a run has begun.
  static bool runs_for_some_gradients();

 private:
  struct Pending {
    std::uint32_t dependencies = 0;
    std::int32_t buffer = -1;  ///< index into buffers_, -1 = none yet
  };
  struct Ready {
    std::uint64_t sequence;
    std::uint64_t order;  ///< ties: first come, first served
    IntrusivePtr<Node> node;
    std::int32_t buffer;
    bool operator<(const Ready& other) const {
      return sequence != other.sequence ? sequence < other.sequence : order > other.order;
    }
  };

  void count_dependencies(const edge_list& roots);
  void deliver(const Edge& edge, Tensor&& gradient, Pending& pending);
  void evaluate(Ready&& ready);
  GradList call(Node& node, GradList&& gradients);
  void push_ready(IntrusivePtr<Node> node, std::int32_t buffer);

  bool keep_graph_;
  bool create_graph_;
  bool restricted_ = false;
  bool within_restricted_;
  NodeMap<Pending> pending_;
  NodeMap<ExecInfo> exec_info_;
  std::vector<GradList> buffers_;
  std::vector<std::int32_t> free_buffers_;
  std::vector<Ready> ready_;
  std::uint64_t arrivals_ = 0;
  variable_list captured_;
};

/// Makes every gradient match the edge it flows along: undefined is fine, expandable is summed, else Error.
void validate_gradients(const edge_list& edges, variable_list& gradients,
                        const std::function<std::string(std::string)>& format);

}  // namespace tenon::autograd
