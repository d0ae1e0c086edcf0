// The list of tensors: one map under one lock, in service on request.
#include <tenon/core/scope/scope.h>
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/history/stack_table.h>
#include <tenon/tensor/live_tensors.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace tenon {

namespace {

struct TensorList {
  std::mutex mutex;
  int users = 0;
  std::uint64_t count = 0;
  std::unordered_map<const TensorImpl*, ListedTensor> live;
  std::unordered_map<const void*, StackId> nodes;
  StackTable stacks;
};

TensorList& list() {
  static auto* all = new TensorList;  // never destroyed: static tensors end late
  return *all;
}

}  // namespace

void list_tensors() {
  std::lock_guard lock(list().mutex);
  if (list().users++ == 0) scopes::want_lives(true);
}

void stop_listing_tensors() noexcept {
  std::lock_guard lock(list().mutex);
  if (list().users == 0 || --list().users > 0) return;
  scopes::want_lives(false);
  list().live.clear();
  list().nodes.clear();
  list().stacks.clear();
}

void list_tensor(const TensorImpl* tensor) noexcept {
  try {
    std::lock_guard lock(list().mutex);
    if (list().users == 0) return;
    const auto [listed, is_new] = list().live.try_emplace(tensor);
    if (is_new) listed->second = {.tensor = tensor, .made_at = list().stacks.take(), .number = ++list().count};
  } catch (...) {  // no memory for the list: this tensor is not on it, the program goes on
  }
}

void forget_tensor(const TensorImpl* tensor) noexcept {
  std::lock_guard lock(list().mutex);
  list().live.erase(tensor);
}

void list_node(const void* node) noexcept {
  try {
    std::lock_guard lock(list().mutex);
    if (list().users != 0) list().nodes[node] = list().stacks.take();
  } catch (...) {  // as above
  }
}

void forget_node(const void* node) noexcept {
  std::lock_guard lock(list().mutex);
  list().nodes.erase(node);
}

StackId listed_node(const void* node) {
  std::lock_guard lock(list().mutex);
  const auto found = list().nodes.find(node);
  return found == list().nodes.end() ? 0 : found->second;
}

std::size_t listed_node_count() {
  std::lock_guard lock(list().mutex);
  return list().nodes.size();
}

std::vector<ListedTensor> listed_tensors() {
  std::vector<ListedTensor> tensors;
  {
    std::lock_guard lock(list().mutex);
    tensors.reserve(list().live.size());
    for (const auto& [address, tensor] : list().live) tensors.push_back(tensor);
  }
  std::ranges::sort(tensors, {}, &ListedTensor::number);
  return tensors;
}

std::vector<StackFrame> listed_frames(StackId stack) {
  std::vector<void*> addresses;
  {
    std::lock_guard lock(list().mutex);
    addresses = list().stacks.addresses(stack);
  }
  return symbolize(addresses);
}

}  // namespace tenon
