// Random numbers by Philox4x32-10, as Note [Same numbers on every device] in kernel/attributes/random.h fixes them. A
// thread computes a block of four words and what they make: four elements, or two of two words each.
#include <tenon/kernel/attributes/random.h>

#include <tenon/device/device_driver.h>

#include <numeric>
#include <utility>
#include <vector>

#include "kernels/dtypes.cuh"
#include "kernels/errors.cuh"
#include "kernels/launch.h"
#include "kernels/philox.cuh"

namespace tenon::cuda {
namespace {

constexpr ErrorText kNoProbability{
    ErrorText::Kind::kError, "bernoulli",
    "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got a probability outside [0, 1]."};

// -log((word + 1) * 2^-32) without losing the small values next to 1.
__device__ inline float minus_log_unit(u32 word, float) {
  return word >= 0xc0000000u ? -log1pf(static_cast<float>(~word) * -0x1p-32f)
                             : -logf(static_cast<float>(word) * 0x1p-32f + 0x1p-32f);
}
__device__ inline double minus_log_unit(u32 word, double) { return -log((static_cast<double>(word) + 1) * 0x1p-32); }

// kWords: how many words an element takes. value(words, k, i): element i, the k-th of its block.
template <class C>
struct Uniform {
  static constexpr int kWords = sizeof(C) == 8 ? 2 : 1;
  C low, width, most;
  __device__ C value(const PhiloxBlock& words, int k, i64) const {
    C part;
    if constexpr (kWords == 2) {
      part = static_cast<C>(words.pair(k) >> 11) * static_cast<C>(0x1p-53);
    } else {
      part = static_cast<C>(words.word[k] >> 8) * static_cast<C>(0x1p-24);
    }
    const C drawn = low + width * part;
    return drawn < most ? drawn : most;
  }
};

template <class C>
struct Normal {
  static constexpr int kWords = 1;
  C mean, deviation;
  __device__ C value(const PhiloxBlock& words, int k, i64) const {
    const C radius = sqrt(C(2) * minus_log_unit(words.word[k / 2 * 2], C()));
    const C turns = static_cast<C>(words.word[k / 2 * 2 + 1]) * static_cast<C>(0x1p-31);  // in half turns
    return mean + deviation * (radius * (k % 2 == 0 ? cospi(turns) : sinpi(turns)));
  }
};

template <class C>
struct Exponential {
  static constexpr int kWords = 1;
  C scale;
  // The last word counts as 1 - 2^-32: a time of 0 would make 0 / time NaN in multinomial.
  __device__ C value(const PhiloxBlock& words, int k, i64) const {
    const C time = minus_log_unit(words.word[k], C());
    return (time < C(0x1p-32) ? C(0x1p-32) : time) * scale;
  }
};

struct Bernoulli {
  static constexpr int kWords = 1;
  u64 limit;  // word * 2^-32 < p exactly: word < p * 2^32 rounded up
  __device__ i64 value(const PhiloxBlock& words, int k, i64) const { return words.word[k] < limit; }
};

struct BernoulliOfEach {
  static constexpr int kWords = 1;
  const double* probabilities;
  ErrorReport report;
  __device__ i64 value(const PhiloxBlock& words, int k, i64 i) const {
    const double p = probabilities[i];
    if (!(p >= 0 && p <= 1)) report.raise();
    return static_cast<double>(words.word[k]) * 0x1p-32 < p;
  }
};

struct Integers {
  static constexpr int kWords = 2;
  u64 low, range;
  __device__ i64 value(const PhiloxBlock& words, int k, i64) const {
    return static_cast<i64>(low + words.pair(k) % range);
  }
};

template <class T, class Draw>
__global__ void fill_kernel(T* y, i64 n, PhiloxStream stream, Draw draw) {
  constexpr int kOfBlock = 4 / Draw::kWords;
  const u64 key = stream.key(), first = stream.first_block();
  const i64 all = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 block = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; block * kOfBlock < n; block += all) {
    const PhiloxBlock words = philox(key, first + static_cast<u64>(block));
#pragma unroll
    for (int k = 0; k < kOfBlock; ++k) {
      const i64 i = block * kOfBlock + k;
      if (i < n) y[i] = store_as<T>(draw.value(words, k, i));
    }
  }
}

template <class T, class Draw>
void fill(KernelContext& context, const TensorView& y, const RandomAttributes& r, const Draw& draw) {
  const i64 n = y.element_count();
  launch(context, {.grid = blocks_for(ceil_div(n, 4 / Draw::kWords)), .block = kThreads}, fill_kernel<T, Draw>,
         y.as<T>(), n, PhiloxStream::of(r), draw);
}

const RandomAttributes& given(const void* attributes) { return *static_cast<const RandomAttributes*>(attributes); }

void uniform(KernelContext& context, Views outputs, Views, const void* attributes) {
  const RandomAttributes& r = given(attributes);
  floats_only("uniform", outputs[0].dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    fill<T>(context, outputs[0], r, Uniform<C>{static_cast<C>(r.a), static_cast<C>(r.b - r.a), static_cast<C>(r.most)});
  });
}

void normal(KernelContext& context, Views outputs, Views, const void* attributes) {
  const RandomAttributes& r = given(attributes);
  floats_only("normal", outputs[0].dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    fill<T>(context, outputs[0], r, Normal<C>{static_cast<C>(r.a), static_cast<C>(r.b)});
  });
}

void exponential(KernelContext& context, Views outputs, Views, const void* attributes) {
  const RandomAttributes& r = given(attributes);
  floats_only("exponential", outputs[0].dtype, [&]<class T>(Type<T>) {
    fill<T>(context, outputs[0], r, Exponential<Compute<T>>{static_cast<Compute<T>>(1 / r.a)});
  });
}

void bernoulli(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const RandomAttributes& r = given(attributes);
  const TensorView& y = outputs[0];
  if (inputs.empty() || !inputs[0].defined()) {
    const double bound = r.a * 0x1p32;
    const u64 whole = bound <= 0 ? 0 : static_cast<u64>(bound);
    const Bernoulli draw{whole + (bound > static_cast<double>(whole) ? 1 : 0)};
    return any_dtype(y.dtype, [&]<class T>(Type<T>) { fill<T>(context, y, r, draw); });
  }
  TensorView p = inputs[0];
  if (p.dtype != Dtype::kFloat64) {  // a kernel for each pair of dtypes would be a hundred
    p.dtype = Dtype::kFloat64;
    p.data = context.scratch(static_cast<std::size_t>(p.element_count()) * sizeof(double));
    copy_view(context, p, inputs[0]);
  }
  const BernoulliOfEach draw{p.as<double>(), errors(context, kNoProbability)};
  any_dtype(y.dtype, [&]<class T>(Type<T>) { fill<T>(context, y, r, draw); });
}

void randint(KernelContext& context, Views outputs, Views, const void* attributes) {
  const RandomAttributes& r = given(attributes);
  if (r.high <= r.low) {
    refuse("randint: high (%lld) must be above low (%lld)", static_cast<long long>(r.high),
           static_cast<long long>(r.low));
  }
  const Integers draw{static_cast<u64>(r.low), static_cast<u64>(r.high) - static_cast<u64>(r.low)};
  any_dtype(outputs[0].dtype, [&]<class T>(Type<T>) { fill<T>(context, outputs[0], r, draw); });
}

// Each swap depends on the one before: on the host.
void randperm(KernelContext& context, Views outputs, Views, const void* attributes) {
  const RandomAttributes& r = given(attributes);
  const TensorView& y = outputs[0];
  const i64 n = y.element_count();
  if (n == 0) return;
  if (context.driver().capturing(context.stream()))
    refuse("randperm: the order is drawn on the host, so a graph would repeat it: draw it before the capture begins");
  std::vector<i64> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), i64{0});
  for (i64 i = n - 1; i > 0; --i) {
    const i64 draw = n - 1 - i;
    const u64 bits = philox(r.seed, r.offset + static_cast<u64>(draw / 2)).pair(static_cast<int>(draw % 2));
    std::swap(order[static_cast<std::size_t>(i)], order[bits % static_cast<u64>(i + 1)]);
  }
  TensorView whole = y;
  whole.dtype = Dtype::kInt64;
  const std::size_t bytes = order.size() * sizeof(i64);
  if (y.dtype != Dtype::kInt64) whole.data = context.scratch(bytes);
  context.driver().copy(whole.data, order.data(), bytes, CopyKind::kHostToDevice, context.stream());
  if (y.dtype != Dtype::kInt64) copy_view(context, y, whole);
}

}  // namespace

void add_random(const KernelSink& sink) {
  sink.add(sink.host, "uniform", &uniform);
  sink.add(sink.host, "normal", &normal);
  sink.add(sink.host, "exponential", &exponential);
  sink.add(sink.host, "bernoulli", &bernoulli);
  sink.add(sink.host, "randint", &randint);
  sink.add(sink.host, "randperm", &randperm);
}

}  // namespace tenon::cuda
