// SavedTensor: a tensor that a node keeps for its backward, with the version it had, and the hooks that may pack it
// away.
#pragma once

#include <tenon/autograd/node.h>
#include <tenon/core/owned.h>

#include <any>
#include <functional>
#include <memory>

namespace tenon::autograd {

/// Called when a tensor is saved and when it is used: offload in pack, bring back in unpack.
struct SavedTensorHooks {
  std::function<std::any(const Tensor&)> pack;
  std::function<Tensor(const std::any&)> unpack;
};

/// Tensors saved by this thread while the guard lives go through the hooks; guards nest, the innermost acts.
class TENON_API SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
  SavedTensorHooksGuard& operator=(const SavedTensorHooksGuard&) = delete;

 private:
  std::shared_ptr<SavedTensorHooks> previous_;
};

class TENON_EXPORT SavedTensor {
 public:
  TENON_API SavedTensor() noexcept;
  SavedTensor(const SavedTensor&) = delete;
  SavedTensor& operator=(const SavedTensor&) = delete;
  TENON_API ~SavedTensor();

  /// `is_output`: the tensor is a result of the node that saves it (then its history is not kept: that would be a
  /// cycle).
  TENON_API void save(const Tensor& tensor, bool is_output = false);
  /// Throws when it was released, or modified since.
  TENON_API Tensor unpack(Node& saved_for) const;
  TENON_API void reset();
  bool holds() const { return data_.defined() || packed_; }
  /// The tensor as it is kept; undefined where hooks have packed it away, or nothing is held.
  const Tensor& kept() const { return data_; }
  /// What hooks have packed it into; null where none did, or nothing is held.
  TENON_API const std::any* packed() const;

 private:
  struct Packed;
  void pack_with(const std::shared_ptr<SavedTensorHooks>& hooks);

  Tensor data_;
  Owned<Packed> packed_;
  std::uint32_t version_ = 0;
  std::uint32_t output_nr_ = 0;
  bool is_output_ = false;  ///< detached: the node itself is its history
  bool released_ = false;
};

/// "Trying to backward through the graph a second time …".
[[noreturn]] TENON_API void throw_backward_twice();

}  // namespace tenon::autograd
