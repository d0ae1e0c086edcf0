// Scopes: what a program is in the middle of, for those who want to know: a profiler, who attributes memory.
//
//   Tensor LinearImpl::forward(…) {            module scope   encoder.layer.3.mlp
//     return tenon::linear(…);                 operator scope   linear
//   }                                            allocation       → current_context()
//
// Nobody listens: one relaxed load and a branch that is never taken, wherever a scope stands. Somebody does: each
// thread knows its innermost scope as a node of the context tree, and listeners are told what is entered and left, and
// what happens meanwhile.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/core/scope/context.h>
#include <tenon/core/scope/wanted.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tenon {
class AllocatorStack;
}

namespace tenon::scopes {

/// An operand of an operator, for listeners that know tensors.
struct Operand {
  enum class Type : std::uint8_t { kOther, kTensor, kTensors };
  Type type = Type::kOther;
  std::uint32_t count = 0;     ///< of kTensors
  const void* data = nullptr;  ///< kTensor: a const Tensor*; kTensors: the first of `count`
};

/// A scope that is entered.
struct Entered {
  Kind kind = Kind::kOutside;
  Phase phase = Phase::kOther;  ///< of a phase
  const char* name = "";        ///< lives as long as the process
  ContextId context = 0;
  std::span<const Operand> operands = {};  ///< of an operator, where they are wanted
  std::uint64_t sequence = 0;              ///< of a backward node: that of the node
  ContextId forward = 0;                   ///< of a backward node: where the node was made; 0 where nobody listened
  const void* node = nullptr;              ///< of a backward node: the same in node_made()
};

/// A kernel of a device, around its call.
struct KernelCall {
  std::string_view name;
  Device device;
  std::uint64_t stream = 0;
  double flops = 0;               ///< where work is wanted
  std::uint64_t bytes = 0;        ///< read and written, where work is wanted
  bool has_virtual_time = false;  ///< of a device with a cost model, whose times are:
  double virtual_host_us = 0;     ///< when the host queues it
  double virtual_us = 0;          ///< how long it takes there
};

/// A copy between two memories.
struct CopyCall {
  Device from, to;
  std::size_t bytes = 0;
};

/// A block that was handed out, or is given back.
struct MemoryCall {
  const AllocatorStack* stack = nullptr;
  const void* address = nullptr;
  std::size_t bytes = 0;        ///< as requested, with what a policy is asked for more for an alignment above its own
  std::size_t block_bytes = 0;  ///< as handed out
  std::size_t reserved_bytes = 0;  ///< what the allocator has of its device
  std::uint64_t stream = 0;
  std::uint8_t purpose = 0;   ///< a tenon::Purpose
  std::uint8_t elements = 0;  ///< a tenon::ElementKind
  std::uint16_t label = 0;
  ContextId context = 0;  ///< of an allocation: where it is made; of a free: where it is given back
};

/// A call of an allocator to its device.
struct DeviceCall {
  const char* name = "";  ///< "acquire", "release", "map", "unmap", "synchronize" …
  const AllocatorStack* stack = nullptr;
  const void* address = nullptr;
  std::size_t bytes = 0;
  std::size_t reserved_bytes = 0;  ///< what the allocator has of its device afterwards
};

/// Told on the thread that does it. A listener throws nothing, and what happens inside of one of its functions is told
/// to nobody. It may be called under an allocator's lock: it allocates no tensor and asks no allocator for figures.
class TENON_EXPORT Listener {
 public:
  virtual ~Listener() = default;
  virtual void entered(const Entered& /*scope*/) noexcept {}
  /// The scope that this thread entered last and has not left.
  virtual void left(Kind /*kind*/, ContextId /*context*/) noexcept {}
  /// A node of autograd was made inside of the current operator.
  virtual void node_made(const void* /*node*/, std::uint64_t /*sequence*/) noexcept {}
  virtual void kernel_begins(const KernelCall& /*call*/) noexcept {}
  virtual void kernel_ends(const KernelCall& /*call*/) noexcept {}
  virtual void copy_begins(const CopyCall& /*call*/) noexcept {}
  virtual void copy_ends(const CopyCall& /*call*/) noexcept {}
  virtual void allocated(const MemoryCall& /*call*/) noexcept {}
  virtual void freed(const MemoryCall& /*call*/) noexcept {}
  virtual void device_called(const DeviceCall& /*call*/) noexcept {}
  /// The program is at a mark: "step 3".
  virtual void marked(std::string_view /*name*/) noexcept {}
};

/// Tells the listener from now on what it wants (bits of Wants). At most eight listen at a time: throws Error beyond.
TENON_API void add_listener(Listener& listener, std::uint32_t wants);
/// Returns when no thread is inside of one of its functions any more. Not to be called from one of them.
TENON_API void remove_listener(Listener& listener);

/// Sets or clears kWantsLives.
void want_lives(bool are_wanted);

/// From now on `told` is called with wanted() after each change of it, under the lock of listeners: it may not add or
/// remove one. For those who keep what follows from it where they find it at once; at most four in a process.
void on_wanted_changed(void (*told)(std::uint32_t wants) noexcept);

/// Where this thread is; 0 outside of every scope, and where nobody listens.
TENON_API ContextId current_context() noexcept;
/// A small number of this thread's own: 1 for the first that was told of, and so on.
TENON_API std::uint32_t thread_number() noexcept;

/// A scope of this thread while it lives.
class Scope {
 public:
  /// `name` need not outlive the constructor. Throws nothing.
  Scope(Kind kind, const char* name) noexcept {
    if (is_listening()) [[unlikely]]
      enter({.kind = kind, .name = name}, "");
  }
  explicit Scope(Phase phase) noexcept {
    if (is_listening()) [[unlikely]]
      enter({.kind = Kind::kPhase, .phase = phase, .name = name_of(phase)}, "");
  }
  /// One that may be entered later.
  Scope() noexcept = default;
  ~Scope() {
    if (is_entered_) [[unlikely]]
      leave();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Enters a scope that has not been entered, of which more is known; its context is found from the rest. `type`
  /// and `root` are those of a module (Context); without a root it is in the tree of the module around it. A backward
  /// node belongs to the module in which it was made.
  TENON_API void enter(const Entered& entered, const char* type, const char* root = "") noexcept;

 private:
  TENON_API void leave() noexcept;

  bool is_entered_ = false;
  Kind kind_;
  ContextId context_;
  ContextId outer_;
};

/// Makes what another thread does part of a scope of this one: `context` is where that stood.
class TENON_API ContextGuard {
 public:
  explicit ContextGuard(ContextId context) noexcept;
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  ContextId outer_;
};

// To be called where something happens, after asking wanted().

void tell_node_made(const void* node, std::uint64_t sequence) noexcept;
void tell_kernel_begins(const KernelCall& call) noexcept;
void tell_kernel_ends(const KernelCall& call) noexcept;
void tell_copy_begins(const CopyCall& call) noexcept;
void tell_copy_ends(const CopyCall& call) noexcept;
/// `call.context` is found here, as in tell_freed().
void tell_allocated(MemoryCall call) noexcept;
void tell_freed(MemoryCall call) noexcept;
TENON_API void tell_device_called(const DeviceCall& call) noexcept;
TENON_API void tell_marked(std::string_view name) noexcept;

/// A copy while it lives, as far as the host takes part in it.
class CopyScope {
 public:
  explicit CopyScope(const CopyCall& call) noexcept : call_(call) {
    if ((wanted() & kWantsKernels) != 0) [[unlikely]]
      tell_copy_begins(call_);
  }
  ~CopyScope() {
    if ((wanted() & kWantsKernels) != 0) [[unlikely]]
      tell_copy_ends(call_);
  }
  CopyScope(const CopyScope&) = delete;
  CopyScope& operator=(const CopyScope&) = delete;

 private:
  CopyCall call_;
};

}  // namespace tenon::scopes
