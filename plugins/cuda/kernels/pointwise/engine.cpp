// The plan of a pointwise kernel: its nest, and how much of it goes by packets.
#include "kernels/pointwise/engine.cuh"

#include <cstdint>

namespace tenon::cuda {

namespace {

/// Elements in 16 bytes of the widest operand, where the inner dimension and all addresses allow packets; else 0.
int group_of(const PointwisePlan& plan, int operands) {
  int widest = 1;
  for (int k = 0; k < operands; ++k) {
    if (plan.forms[k] != Form::kImmediate) widest = larger(widest, plan.bytes[k]);
  }
  const int group = 16 / widest;
  const auto& nest = plan.nest;
  const auto inner = static_cast<i64>(nest.sizes[0].divisor());
  if (inner < group || (nest.rank > 1 && inner % group != 0)) return 0;
  for (int k = 0; k < operands; ++k) {
    if (plan.forms[k] != Form::kElements) continue;
    const i64 packet_bytes = group * plan.bytes[k];
    if (nest.strides[k][0] != plan.bytes[k]) return 0;
    if (reinterpret_cast<std::uintptr_t>(nest.data[k]) % static_cast<std::uintptr_t>(packet_bytes) != 0) return 0;
    for (int d = 1; d < nest.rank; ++d) {
      if (nest.strides[k][d] % packet_bytes != 0) return 0;
    }
  }
  return group;
}

}  // namespace

void launch_pointwise(KernelContext& context, const void* kernel, const void* functor, int width, const TensorView& y,
                      std::span<const PointwiseInput> inputs, const std::source_location& where) {
  const TensorView nothing{.data = nullptr, .sizes = nullptr, .strides = nullptr, .rank = 0, .dtype = y.dtype};
  const int operands = static_cast<int>(inputs.size()) + 1;
  const TensorView* views[kPointwiseOperands] = {&y, &nothing, &nothing, &nothing};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].view() != nullptr) views[k + 1] = inputs[k].view();
  }
  const auto whole = make_nest(views);
  if (whole.total == 0) return;
  PointwisePlan plan;
  for (int k = 0; k < kPointwiseOperands; ++k) {
    plan.dtypes[k] = views[k]->dtype;
    plan.bytes[k] = static_cast<u8>(size_of(views[k]->dtype));
    plan.immediates[k] = k == 0 || k >= operands ? 0 : inputs[static_cast<std::size_t>(k - 1)].immediate();
  }
  in_near_parts(whole, [&](const Nest<kPointwiseOperands>& part) {
    plan.nest = part;
    for (int k = 0; k < kPointwiseOperands; ++k) {
      plan.forms[k] = views[k] == &nothing               ? Form::kImmediate
                      : k > 0 && part.strides[k][0] == 0 ? Form::kConstant
                                                         : Form::kElements;
    }
    plan.group = group_of(plan, operands);
    plan.packets = plan.group == 0 ? 0 : static_cast<u32>(part.total / plan.group);
    const i64 singles = part.total - static_cast<i64>(plan.packets) * plan.group;
    plan.items = plan.packets + static_cast<u32>(ceil_div(singles, kWarp * width) * kWarp);
    void* arguments[] = {&plan, const_cast<void*>(functor)};
    launch_function(context, kernel, {.grid = blocks_for(plan.items), .block = kThreads, .where = where}, arguments);
  });
}

}  // namespace tenon::cuda
