// Every tensor that lives, with the call stack that made it: known while somebody asks for it. Off, it costs a branch
// where a tensor is made and one where it ends.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/scope/wanted.h>
#include <tenon/memory/call_stacks.h>
#include <tenon/tensor/tensor_impl.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tenon {

/// A Standstill begins.
TENON_API void lock_lists();
/// It ends.
TENON_API void unlock_lists();

/// While it lives no thread makes or ends a tensor or node that is listed: who would, waits. So what is on the lists
/// can be looked at while a program's other threads go on, though not what they change in a tensor meanwhile. The
/// thread that holds it may do both. Under it nothing may be waited for that another thread does.
class Standstill {
 public:
  Standstill() { lock_lists(); }
  ~Standstill() { unlock_lists(); }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
};

/// For who takes away, adds or publishes what is followed under a Standstill: a node's saved tensors, hooks, a tensor's
/// memory. While it lives nobody looks; where nothing is listed it costs a branch. What is taken away ends behind it.
class ListedChange {
 public:
  ListedChange() : is_locked_(scopes::are_lives_wanted()) {
    if (is_locked_) [[unlikely]]
      lock_lists();
  }
  ~ListedChange() {
    if (is_locked_) [[unlikely]]
      unlock_lists();
  }
  ListedChange(const ListedChange&) = delete;
  ListedChange& operator=(const ListedChange&) = delete;

 private:
  const bool is_locked_;  // by functions without an object, so that it is kept in a register
};

/// A tensor on the list. The pointer is good as long as the tensor lives: look at it under a Standstill, or while no
/// other thread ends tensors.
struct ListedTensor {
  const TensorImpl* tensor = nullptr;
  StackId made_at = 0;       ///< the stack that made it: listed_frames()
  std::uint64_t number = 0;  ///< the how-manieth tensor of the list it was, from 1: younger is larger
  std::uint32_t thread = 0;  ///< that made it: scopes::thread_number()
  bool is_older = false;     ///< than the list: see list_older_tensor()
};

/// Begins a list, or goes on with it where one is kept already: tensors made from now on are on it. Each call has its
/// stop_listing_tensors(); the last one of these ends the list and forgets it.
TENON_API void list_tensors();
/// Ends what one list_tensors() began.
TENON_API void stop_listing_tensors() noexcept;

/// A tensor that was there before the list began, as parameters are, is on it from now on, without a stack: what
/// autograd keeps through it, a gradient or what a hook captured, has an owner then.
TENON_API void list_older_tensor(const TensorImpl* tensor) noexcept;

/// Those that live, oldest first.
TENON_API std::vector<ListedTensor> listed_tensors();
/// The frames of a stack of the list, innermost first; empty for 0.
TENON_API std::vector<StackFrame> listed_frames(StackId stack);

/// For ~TensorImpl.
void forget_tensor(const TensorImpl* tensor) noexcept;

/// Nodes of the graph are known by their stacks as well: where a history grew is another place than where its tensor
/// was made. While tensors or nodes are listed, a node says that it was made and that it ends.
void list_node(const void* node) noexcept;
/// It ends.
void forget_node(const void* node) noexcept;
/// The stack that made it, 0 for one that is not listed: listed_frames().
StackId listed_node(const void* node);
/// How many of them live.
std::size_t listed_node_count();

/// Begins a list of nodes alone, without stacks; each call has its stop_listing_nodes().
void list_nodes();
/// Ends what one list_nodes() began.
void stop_listing_nodes() noexcept;
/// Shows each node that lives, under a Standstill. It may be on its way in or out in another thread: keep it first.
void each_listed_node(const std::function<void(const void* node)>& show);

/// Hooks of one tensor are known by the stack that hung up the last one.
void list_hooks(const void* hooks) noexcept;
/// That stack; 0 for hooks that are not listed.
StackId listed_hooks(const void* hooks);

}  // namespace tenon
