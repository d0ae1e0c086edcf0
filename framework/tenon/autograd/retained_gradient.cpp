// The lists of nodes, and writing to what is on them: see Note [Retained gradients].
#include <tenon/autograd/node_hooks.h>
#include <tenon/autograd/retained_gradient.h>
#include <tenon/autograd/variable.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

namespace tenon::autograd {
namespace {

std::mutex& mutex_of_list(const Node& node) {
  static std::array<std::mutex, 64> mutexes;
  return mutexes[(reinterpret_cast<std::uintptr_t>(&node) >> 6) % mutexes.size()];
}

using Retained = std::pair<std::uint32_t, AutogradMeta*>;

bool is_listed_locked(const Node& node, const Retained& entry) {
  const auto& list = node.hooks()->retain_grad;
  return std::find(list.begin(), list.end(), entry) != list.end();
}

}  // namespace

void list_retained(AutogradMeta& meta) {
  if (!meta.grad_fn) return;
  std::lock_guard lock(mutex_of_list(*meta.grad_fn));
  meta.grad_fn->mutable_hooks().retain_grad.emplace_back(meta.output_nr, &meta);
}

void forget_retained(AutogradMeta& meta) {
  if (!meta.grad_fn || !meta.grad_fn->hooks()) return;
  std::lock_guard lock(mutex_of_list(*meta.grad_fn));
  std::erase_if(meta.grad_fn->hooks()->retain_grad, [&](const Retained& entry) { return entry.second == &meta; });
}

void keep_retained(const Node& node, const GradList& gradients) {
  std::vector<Retained> entries;
  {
    std::lock_guard lock(mutex_of_list(node));
    entries = node.hooks()->retain_grad;
  }
  for (const Retained& entry : entries) {
    if (entry.first >= gradients.size() || !gradients[entry.first].defined()) continue;
    const Tensor& gradient = gradients[entry.first];
    // The sum is made without the mutex, and made anew where another graph was quicker.
    for (bool done = false; !done;) {
      Tensor before;
      {
        std::lock_guard lock(mutex_of_list(node));
        if (!is_listed_locked(node, entry)) break;  // the tensor is gone
        before = entry.second->grad;
      }
      Tensor sum = before.defined() ? before.add(gradient) : gradient.clone();
      std::lock_guard lock(mutex_of_list(node));
      if (!is_listed_locked(node, entry)) break;
      done = entry.second->grad.is_same(before);
      if (done) std::swap(entry.second->grad, sum);  // what it was goes after the lock
    }
  }
}

}  // namespace tenon::autograd
