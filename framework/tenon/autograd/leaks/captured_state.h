// Captured state: what a hook keeps behind a std::shared_ptr, as a lambda that captured one does.
//
//   std::function -> captured shared_ptr -> control block: how many own it -> state -> tensors
//
// What a function captured cannot be asked. But a copy of it owns the state once more, so the number of owners tells
// its control block from any other word, and state that hooks alone own is searched for addresses of known tensors: in
// itself, and in vectors in it. All is read through the kernel, which refuses an address that is none, and bounded by
// the sizes that glibc writes before its blocks: with another heap nothing is found.
#pragma once

#include <tenon/autograd/node.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tenon::autograd {

/// State that a hook owns a share of.
struct CapturedState {
  std::uintptr_t control = 0;  ///< its control block
  std::uintptr_t object = 0;   ///< what the shared pointer points to
  std::uint32_t owners = 0;    ///< without the copy
};

/// The states that a hook captured as shared pointers, by value. Copies the hook, and does not call it.
std::vector<CapturedState> captured_states(const TensorHook& hook);

/// Calls `found` for each word in the state that is the address of a tensor by `is_tensor`.
void each_tensor_in(const CapturedState& state, const std::function<bool(std::uintptr_t)>& is_tensor,
                    const std::function<void(std::uintptr_t)>& found);

}  // namespace tenon::autograd
