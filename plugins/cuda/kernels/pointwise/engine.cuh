// The engine of everything pointwise: y = f(a, b, …) for operands of any strides, where an operand may be a number,
// too.
//
// A thread computes `width` numbers at a time. Where the inner dimension lies dense in every operand that is not
// constant along it, and all are aligned, it reads and writes 16 bytes of the widest operand at once: four float32,
// eight float16. Elsewhere it gathers single elements, neighbours by neighbouring threads.
//
//   struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
//   run_pointwise<FloatLane, FloatLane, FloatLane>(context, Plus{}, y, a, b);
#pragma once

#include "kernels/launch.h"
#include "kernels/offsets.cuh"
#include "kernels/pointwise/packets.cuh"

#include <cstring>
#include <source_location>
#include <span>
#include <utility>

namespace tenon::cuda {

/// How an operand comes to a thread.
enum class Form : u8 {
  kElements,   ///< from memory
  kConstant,   ///< from memory, the same element along the inner dimension
  kImmediate,  ///< a number that the launch brought along
};

inline constexpr int kPointwiseOperands = 4;  ///< at most, the output included

struct PointwisePlan {
  Nest<kPointwiseOperands> nest;
  int group = 0;    ///< elements of a packet
  u32 packets = 0;  ///< how many there are; single elements follow
  u32 items = 0;    ///< what threads take: packets and the rounds of single elements
  Dtype dtypes[kPointwiseOperands];
  Form forms[kPointwiseOperands];
  u8 bytes[kPointwiseOperands];        ///< of an element
  u64 immediates[kPointwiseOperands];  ///< the bits of a lane's value
};

/// What is computed of one operand: a view, or a number in the type of its lane.
class PointwiseInput {
 public:
  PointwiseInput(const TensorView& view) : view_(&view) {}  // NOLINT: views are given as they are
  template <class C>
  static PointwiseInput number(C value) {
    PointwiseInput input;
    std::memcpy(&input.immediate_, &value, sizeof value);
    return input;
  }
  const TensorView* view() const { return view_; }
  u64 immediate() const { return immediate_; }

 private:
  PointwiseInput() = default;
  const TensorView* view_ = nullptr;  // null: a number
  u64 immediate_ = 0;
};

/// Launches `kernel`, a pointwise_kernel of that width whose functor is at `functor`, over y and its inputs.
void launch_pointwise(KernelContext& context, const void* kernel, const void* functor, int width, const TensorView& y,
                      std::span<const PointwiseInput> inputs,
                      const std::source_location& where = std::source_location::current());

/// How many numbers a thread computes at a time: what 16 bytes hold of the widest element, at most 4.
template <class... Lanes>
constexpr int pointwise_width() {
  int most = 4;
  ((most = larger(most, Lanes::kMostBytes)), ...);
  return 16 / most;
}

#if defined(__CUDACC__)

template <class L, int kWidth>
struct Numbers {
  typename L::Value values[kWidth];
};

template <class L>
__device__ typename L::Value immediate_as(u64 bits) {
  typename L::Value value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// An input's next numbers, from its packet.
template <class L, int kWidth>
__device__ void take(Packet& packet, bool constant, Dtype dtype, Numbers<L, kWidth>& numbers) {
  L::visit(dtype, [&]<class T>(Type<T>) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      numbers.values[i] = load_as<T, typename L::Value>(constant ? packet.at<T>(0) : packet.at<T>(i));
    }
    if (!constant) packet.drop<kWidth* static_cast<int>(sizeof(T))>();
  });
}

template <class L, int kWidth>
__device__ void put(Packet& packet, Dtype dtype, const Numbers<L, kWidth>& numbers) {
  L::visit(dtype, [&]<class T>(Type<T>) {
    T elements[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) elements[i] = store_as<T>(numbers.values[i]);
    packet.put(elements);
  });
}

/// Where the elements of a thread lie. Single ones: neighbours belong to neighbouring threads of the warp.
template <int kOperands, int kWidth>
struct Scattered {
  i64 at[kWidth][kOperands];
  bool is_there[kWidth];

  __device__ Scattered(const Nest<kPointwiseOperands>& nest, u32 first, u32 step) {
    u32 positions[kWidth];
    const u32 last = static_cast<u32>(nest.total) - 1;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const u32 position = first + i * step;
      is_there[i] = position <= last;
      positions[i] = is_there[i] ? position : last;
    }
    nest.locate_near(positions, at);
  }
};

template <class L, int kOperands, int kWidth>
__device__ void gather(const Scattered<kOperands, kWidth>& where, const char* data, int operand, Dtype dtype,
                       Numbers<L, kWidth>& numbers) {
  L::visit(dtype, [&]<class T>(Type<T>) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      numbers.values[i] = typename L::Value(1);  // beyond the end: what nothing divides badly by
      if (where.is_there[i]) {
        const T element = *reinterpret_cast<const T*>(data + where.at[i][operand]);
        numbers.values[i] = load_as<T, typename L::Value>(element);
      }
    }
  });
}

template <class L, int kOperands, int kWidth>
__device__ void scatter(const Scattered<kOperands, kWidth>& where, char* data, Dtype dtype,
                        const Numbers<L, kWidth>& numbers) {
  L::visit(dtype, [&]<class T>(Type<T>) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (where.is_there[i]) *reinterpret_cast<T*>(data + where.at[i][0]) = store_as<T>(numbers.values[i]);
    }
  });
}

/// What a thread does of the positions: `item` counts packets first, then the rounds of single elements.
template <class Out, class... In, class F, std::size_t... K>
__device__ void pointwise_item(const PointwisePlan& plan, const F& f, u32 item, std::index_sequence<K...>) {
  constexpr int kOperands = 1 + sizeof...(In);
  constexpr int kWidth = pointwise_width<Out, In...>();
  const bool packed = item < plan.packets;
  const u32 round = item - plan.packets;
  const u32 first =
      packed ? item * plan.group : plan.packets * plan.group + round / kWarp * (kWarp * kWidth) + round % kWarp;
  const Scattered<kOperands, kWidth> where(plan.nest, first, packed ? 0 : kWarp);
  Packet in[kOperands], out;  // in[0] is not used
  if (packed) {
    (in[K + 1].read_if(plan.forms[K + 1] != Form::kImmediate, plan.nest.data[K + 1] + where.at[0][K + 1],
                       plan.bytes[K + 1] * (plan.forms[K + 1] == Form::kConstant ? 1 : plan.group)),
     ...);
  }
  const auto next = [&]<class L>(int k, Numbers<L, kWidth>& numbers) {
    if (plan.forms[k] == Form::kImmediate) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) numbers.values[i] = immediate_as<L>(plan.immediates[k]);
    } else if (packed) {
      take(in[k], plan.forms[k] == Form::kConstant, plan.dtypes[k], numbers);
    } else {
      gather(where, plan.nest.data[k], k, plan.dtypes[k], numbers);
    }
  };
  const auto compute = [&](Numbers<In, kWidth>... inputs) {
    (next(K + 1, inputs), ...);
    Numbers<Out, kWidth> y;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) y.values[i] = f(inputs.values[i]...);
    if (packed) {
      put(out, plan.dtypes[0], y);
    } else {
      scatter(where, plan.nest.data[0], plan.dtypes[0], y);
    }
  };
  const int parts = packed ? plan.group / kWidth : 1;
#pragma unroll 1
  for (int part = 0; part < parts; ++part) compute(Numbers<In, kWidth>{}...);
  if (packed) out.write(plan.nest.data[0] + where.at[0][0], plan.group * plan.bytes[0]);
}

template <class F, class Out, class... In>
__global__ void __launch_bounds__(kThreads) pointwise_kernel(const PointwisePlan plan, const F f) {
  const auto items = static_cast<u32>(all_items());
  for (u32 item = static_cast<u32>(first_item()); item < plan.items; item += items) {
    pointwise_item<Out, In...>(plan, f, item, std::index_sequence_for<In...>{});
  }
}

/// y = f(inputs…), element by element. Lanes say what f computes in; In is one for each input.
template <class Out, class... In, class F, class... Inputs>
void run_pointwise(KernelContext& context, const F& f, const TensorView& y, const Inputs&... inputs) {
  static_assert(sizeof...(In) == sizeof...(Inputs));
  const PointwiseInput given[] = {inputs...};
  launch_pointwise(context, reinterpret_cast<const void*>(&pointwise_kernel<F, Out, In...>), &f,
                   pointwise_width<Out, In...>(), y, given);
}

#endif  // __CUDACC__

}  // namespace tenon::cuda
