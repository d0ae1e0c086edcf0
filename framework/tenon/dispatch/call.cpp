// The kernel context of the framework: scratch from the allocator in service.
#include <tenon/core/recycled.h>
#include <tenon/core/scope/scope.h>
#include <tenon/dispatch/after_kernel.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/kernel_work.h>
#include <tenon/dispatch/rehearsal.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon {
namespace {

class Context final : public KernelContext {
 public:
  Context(DeviceState& state, StreamRef stream) : state_(state), stream_(stream) {}
  ~Context() override {
    for (auto one = scratches_.rbegin(); one != scratches_.rend(); ++one) one->stack->deallocate(one->block);
  }

  StreamRef stream() const override { return stream_; }
  DeviceDriver& driver() const override { return state_.driver(); }
  void* scratch(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    // The place to remember it comes first: nothing is lost if there is no room for either.
    Scratch& scratch = scratches_.emplace_back(&state_.allocator());
    scratch.block = scratch.stack->allocate({.bytes = bytes,
                                             .alignment = kScratchAlignment,
                                             .stream = stream_,
                                             .purpose = Purpose::kWorkspace,
                                             .label = current_label()});
    return scratch.block.data;
  }

 private:
  struct Scratch {
    explicit Scratch(AllocatorStack* stack) : stack(stack) {}
    AllocatorStack* stack;  // in service during the call; DeviceState keeps former ones too
    Block block;
  };
  DeviceState& state_;
  StreamRef stream_;
  std::vector<Scratch, RecycledAllocator<Scratch>> scratches_;  ///< most kernels want none, and pay for nothing
};

std::optional<DeviceType>& rehearsing() {
  static std::optional<DeviceType> kind;
  return kind;
}

/// The workspace that the kernel would take, where it has a form that does so.
[[gnu::cold, gnu::noinline]] void rehearse(OperatorId op, DeviceState& state, std::span<const TensorView> outputs,
                                           std::span<const TensorView> inputs, const void* attributes,
                                           StreamRef stream) {
  if (rehearsing() != state.device().type()) return;
  const Kernel form = find_kernel(state.device().type(), intern_operator(std::string(name_of(op)) + ".workspace"));
  if (!form) return;
  Context context(state, stream);
  form(context, outputs, inputs, attributes);
}

/// Tells of a kernel's call around it.
[[gnu::cold, gnu::noinline]] void tell_around(OperatorId op, DeviceState& state, std::span<const TensorView> outputs,
                                              std::span<const TensorView> inputs, const void* attributes,
                                              StreamRef stream, Kernel kernel) {
  scopes::KernelCall call{.name = name_of(op), .device = state.device(), .stream = stream.id};
  KeepsVirtualTime* const timeline = virtual_timeline(state.driver());
  if (timeline != nullptr || (scopes::wanted() & scopes::kWantsWork) != 0) {
    const KernelWork work = work_of_kernel(call.name, outputs, inputs, attributes);
    call.flops = work.flops;
    call.bytes = static_cast<std::uint64_t>(work.bytes);
    if (timeline != nullptr) {
      call.has_virtual_time = true;
      call.virtual_host_us = virtual_time_us();
      const double before = timeline->activity().kernel_us;
      timeline->queue_kernel(stream, work);
      call.virtual_us = timeline->activity().kernel_us - before;
    }
  }
  scopes::tell_kernel_begins(call);
  struct Ends {
    const scopes::KernelCall& call;
    ~Ends() { scopes::tell_kernel_ends(call); }
  } ends{call};
  if (!state.driver().begin_kernel(stream)) return rehearse(op, state, outputs, inputs, attributes, stream);
  Context context(state, stream);
  kernel(context, outputs, inputs, attributes);
}

}  // namespace

void rehearse_workspace(DeviceType kind, bool on) {
  if (on)
    rehearsing() = kind;
  else
    rehearsing().reset();
}

void call_kernel(OperatorId op, DeviceState& state, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const void* attributes) {
  const Device device = state.device();
  Kernel kernel = find_kernel(device.type(), op);
  if (!kernel) [[unlikely]]
    kernel = require_kernel(device.type(), op);
  const StreamRef stream = current_stream(device);
  if ((scopes::wanted() & scopes::kWantsKernels) != 0) [[unlikely]] {
    tell_around(op, state, outputs, inputs, attributes, stream, kernel);
    if (is_something_after_kernels()) run_after_kernel();
    return;
  }
  if (KeepsVirtualTime* timeline = virtual_timeline(state.driver())) [[unlikely]]
    timeline->queue_kernel(stream, work_of_kernel(name_of(op), outputs, inputs, attributes));
  if (state.driver().begin_kernel(stream)) {  // else addresses without bytes: there is nothing to compute on
    Context context(state, stream);
    kernel(context, outputs, inputs, attributes);
  } else {
    rehearse(op, state, outputs, inputs, attributes, stream);
  }
  if (is_something_after_kernels()) [[unlikely]]
    run_after_kernel();
}

}  // namespace tenon
