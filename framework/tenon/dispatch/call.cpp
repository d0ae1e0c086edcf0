// The kernel context of the framework: scratch from the allocator in service.
#include <tenon/dispatch/call.h>

#include <array>
#include <vector>

namespace tenon {
namespace {

class Context final : public KernelContext {
 public:
  Context(DeviceState& state, StreamRef stream) : state_(state), stream_(stream) {}
  ~Context() override {
    while (count_ > 0) {
      const Scratch& scratch = scratches_[static_cast<std::size_t>(--count_)];
      scratch.stack->deallocate(scratch.block);
    }
    for (const Scratch& scratch : more_) scratch.stack->deallocate(scratch.block);
  }

  StreamRef stream() const override { return stream_; }
  DeviceDriver& driver() const override { return state_.driver(); }
  void* scratch(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    AllocatorStack& stack = state_.allocator();
    const Scratch scratch{&stack, stack.allocate({.bytes = bytes,
                                                  .stream = stream_,
                                                  .purpose = Purpose::kWorkspace,
                                                  .label = current_label()})};
    if (count_ < static_cast<int>(scratches_.size())) {
      scratches_[static_cast<std::size_t>(count_++)] = scratch;
    } else {
      more_.push_back(scratch);
    }
    return scratch.block.data;
  }

 private:
  struct Scratch {
    AllocatorStack* stack;  // in service during the call; DeviceState keeps former ones too
    Block block;
  };
  DeviceState& state_;
  StreamRef stream_;
  int count_ = 0;
  std::array<Scratch, 4> scratches_;
  std::vector<Scratch> more_;
};

}  // namespace

void call_kernel(OperatorId op, DeviceState& state, std::span<const TensorView> outputs, std::span<const TensorView> inputs,
                 const void* attributes) {
  const Device device = state.device();
  Kernel kernel = find_kernel(device.type(), op);
  if (!kernel) [[unlikely]] kernel = require_kernel(device.type(), op);
  const StreamRef stream = current_stream(device);
  if (!state.driver().begin_kernel(stream)) return;  // addresses without bytes: there is nothing to compute on
  Context context(state, stream);
  kernel(context, outputs, inputs, attributes);
}

}  // namespace tenon
