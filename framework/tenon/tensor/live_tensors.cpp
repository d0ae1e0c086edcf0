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
  std::recursive_mutex mutex;  ///< again by who is under a Standstill
  int users = 0;
  int users_of_nodes = 0;  ///< of nodes alone
  std::uint64_t count = 0;
  std::unordered_map<const TensorImpl*, ListedTensor> live;
  std::unordered_map<const void*, StackId> nodes, hooks;
  StackTable stacks;
};

TensorList& list() {
  static auto* all = new TensorList;  // never destroyed: static tensors end late
  return *all;
}

/// Where nobody wants any list any more.
void end_nodes_locked() noexcept {
  if (list().users != 0 || list().users_of_nodes != 0) return;
  scopes::want_lives(false);
  list().nodes.clear();
}

}  // namespace

void lock_lists() { list().mutex.lock(); }
void unlock_lists() { list().mutex.unlock(); }

void list_tensors() {
  const std::lock_guard lock(list().mutex);
  if (list().users++ == 0) scopes::want_lives(true);
}

void stop_listing_tensors() noexcept {
  const std::lock_guard lock(list().mutex);
  if (list().users == 0 || --list().users > 0) return;
  list().live.clear();
  list().hooks.clear();
  list().stacks.clear();
  for (auto& [node, stack] : list().nodes) stack = 0;
  end_nodes_locked();
}

void list_nodes() {
  const std::lock_guard lock(list().mutex);
  if (list().users_of_nodes++ == 0) scopes::want_lives(true);
}

void stop_listing_nodes() noexcept {
  const std::lock_guard lock(list().mutex);
  if (list().users_of_nodes == 0 || --list().users_of_nodes > 0) return;
  end_nodes_locked();
}

namespace {

void list_one(const TensorImpl* tensor, bool is_older) noexcept {
  try {
    const std::lock_guard lock(list().mutex);
    if (list().users == 0) return;
    const auto [listed, is_new] = list().live.try_emplace(tensor);
    if (is_new)
      listed->second = {.tensor = tensor,
                        .made_at = is_older ? 0 : list().stacks.take(),
                        .number = ++list().count,
                        .thread = scopes::thread_number(),
                        .is_older = is_older};
  } catch (...) {  // no memory for the list: this tensor is not on it, the program goes on
  }
}

}  // namespace

void list_tensor(const TensorImpl* tensor) noexcept { list_one(tensor, /*is_older=*/false); }
void list_older_tensor(const TensorImpl* tensor) noexcept { list_one(tensor, /*is_older=*/true); }

void forget_tensor(const TensorImpl* tensor) noexcept {
  const std::lock_guard lock(list().mutex);
  list().live.erase(tensor);
}

void list_node(const void* node) noexcept {
  try {
    const std::lock_guard lock(list().mutex);
    if (list().users != 0 || list().users_of_nodes != 0)
      list().nodes[node] = list().users != 0 ? list().stacks.take() : 0;
  } catch (...) {  // as above
  }
}

void list_hooks(const void* hooks) noexcept {
  try {
    const std::lock_guard lock(list().mutex);
    if (list().users != 0) list().hooks[hooks] = list().stacks.take();
  } catch (...) {  // as above
  }
}

StackId listed_hooks(const void* hooks) {
  const std::lock_guard lock(list().mutex);
  const auto found = list().hooks.find(hooks);
  return found == list().hooks.end() ? 0 : found->second;
}

void each_listed_node(const std::function<void(const void* node)>& show) {
  const std::lock_guard lock(list().mutex);
  for (const auto& [node, stack] : list().nodes) show(node);
}

void forget_node(const void* node) noexcept {
  const std::lock_guard lock(list().mutex);
  list().nodes.erase(node);
}

StackId listed_node(const void* node) {
  const std::lock_guard lock(list().mutex);
  const auto found = list().nodes.find(node);
  return found == list().nodes.end() ? 0 : found->second;
}

std::size_t listed_node_count() {
  const std::lock_guard lock(list().mutex);
  return list().nodes.size();
}

std::vector<ListedTensor> listed_tensors() {
  std::vector<ListedTensor> tensors;
  {
    const std::lock_guard lock(list().mutex);
    tensors.reserve(list().live.size());
    for (const auto& [address, tensor] : list().live) tensors.push_back(tensor);
  }
  std::ranges::sort(tensors, {}, &ListedTensor::number);
  return tensors;
}

std::vector<StackFrame> listed_frames(StackId stack) {
  std::vector<void*> addresses;
  {
    const std::lock_guard lock(list().mutex);
    addresses = list().stacks.addresses(stack);
  }
  return symbolize(addresses);
}

}  // namespace tenon
