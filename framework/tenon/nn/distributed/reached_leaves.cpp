// The recorded graph from outputs to leaves, each node once.
#include <tenon/nn/distributed/reached_leaves.h>

#include <tenon/autograd/node.h>
#include <tenon/autograd/variable.h>

namespace tenon::distributed {

std::unordered_set<const TensorImpl*> leaves_reached_from(const std::vector<Tensor>& outputs) {
  std::unordered_set<const autograd::Node*> seen;
  std::vector<autograd::Node*> next;
  std::unordered_set<const TensorImpl*> leaves;
  const auto visit = [&](autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) next.push_back(node);
  };
  std::vector<IntrusivePtr<autograd::Node>> roots;
  for (const Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    roots.push_back(autograd::gradient_edge(output).function);
    visit(roots.back().get());
  }
  while (!next.empty()) {
    autograd::Node* const node = next.back();
    next.pop_back();
    if (const auto* leaf = dynamic_cast<const autograd::AccumulateGrad*>(node)) leaves.insert(&leaf->variable().impl());
    for (std::size_t i = 0; i < node->num_outputs(); ++i) visit(node->next_edge(i).function.get());
  }
  return leaves;
}

}  // namespace tenon::distributed
