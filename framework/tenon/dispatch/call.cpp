// The kernel context of the framework: scratch from the allocator in service.
#include <tenon/core/recycled.h>
#include <tenon/dispatch/after_kernel.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/kernel_work.h>

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

}  // namespace

void call_kernel(OperatorId op, DeviceState& state, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const void* attributes) {
  const Device device = state.device();
  Kernel kernel = find_kernel(device.type(), op);
  if (!kernel) [[unlikely]]
    kernel = require_kernel(device.type(), op);
  const StreamRef stream = current_stream(device);
  if (KeepsVirtualTime* timeline = virtual_timeline(state.driver())) [[unlikely]]
    timeline->queue_kernel(stream, work_of_kernel(name_of(op), outputs, inputs, attributes));
  if (state.driver().begin_kernel(stream)) {  // else addresses without bytes: there is nothing to compute on
    Context context(state, stream);
    kernel(context, outputs, inputs, attributes);
  }
  if (is_something_after_kernels()) [[unlikely]]
    run_after_kernel();
}

}  // namespace tenon
