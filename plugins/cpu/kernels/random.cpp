// Random numbers by Philox4x32-10, as Note [Same numbers on every device] in kernel/attributes/random.h fixes them.
#include <tenon/kernel/attributes/random.h>

#include "kernels/philox.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/pointwise/math.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 4096;

// -log((word + 1) * 2^-32) without losing the small values next to 1.
inline float minus_log_unit(u32 word) {
  const bool upper = word >= 0xc0000000u;
  const float below = static_cast<float>(static_cast<i32>((~word) >> 1)) * 0x1p-31f;  // about 1 - u
  const float near_one = below + below * below * (0.5f + below * (0.33333333f + below * (0.25f + below * 0.2f)));
  const float u = static_cast<float>(word) * 0x1p-32f + 0x1p-32f;
  const float small = below < 0.02f ? near_one : -math::log(1.0f - below);
  return upper ? small : -math::log(u);
}
inline double minus_log_unit64(u32 word) { return -math::log((static_cast<double>(word) + 1) * 0x1p-32); }

// Fills lanes of n <= kChunk elements whose first has block number `block`.
void uniform_f32(float* out, const Words& w, i64 n, const RandomAttributes& r) {
  const float a = static_cast<float>(r.a), width = static_cast<float>(r.b - r.a), most = static_cast<float>(r.most);
  for (i64 i = 0; i < n; ++i) {
    const float drawn = math::mad(width, static_cast<float>(static_cast<i32>(w.word[i] >> 8)) * 0x1p-24f, a);
    out[i] = drawn < most ? drawn : most;
  }
}
void normal_f32(float* out, const Words& w, i64 n, const RandomAttributes& r) {
  const float mean = static_cast<float>(r.a), deviation = static_cast<float>(r.b);
  alignas(64) float even[kChunk / 2], odd[kChunk / 2];
  const i64 pairs = (n + 1) / 2;
  for (i64 j = 0; j < pairs; ++j) {
    const float radius = math::sqrt(2.0f * minus_log_unit(w.word[2 * j]));
    float sine, cosine;
    math::sincos_turn(static_cast<float>(static_cast<i32>(w.word[2 * j + 1] >> 8)) * 0x1p-24f, sine, cosine);
    even[j] = math::mad(deviation, radius * cosine, mean);
    odd[j] = math::mad(deviation, radius * sine, mean);
  }
  for (i64 i = 0; i < n; ++i) out[i] = i % 2 ? odd[i / 2] : even[i / 2];
}
void normal_f64(double* out, const Words& w, i64 n, const RandomAttributes& r) {
  for (i64 i = 0; i < n; i += 2) {
    const double radius = math::sqrt(2 * minus_log_unit64(w.word[i]));
    const double angle = 6.283185307179586 * (static_cast<double>(w.word[i + 1]) * 0x1p-32);
    out[i] = r.a + r.b * (radius * math::cos(angle));
    if (i + 1 < n) out[i + 1] = r.a + r.b * (radius * math::sin(angle));
  }
}
// The last word (in float the last two) counts as 1 - 2^-32: a time of 0 would make 0 / time NaN in multinomial.
template <class T>
inline T above_zero(T minus_log) {
  return minus_log < T(0x1p-32) ? T(0x1p-32) : minus_log;
}
void exponential_f32(float* out, const Words& w, i64 n, const RandomAttributes& r) {
  const float scale = static_cast<float>(1 / r.a);
  for (i64 i = 0; i < n; ++i) out[i] = above_zero(minus_log_unit(w.word[i])) * scale;
}
void exponential_f64(double* out, const Words& w, i64 n, const RandomAttributes& r) {
  for (i64 i = 0; i < n; ++i) out[i] = above_zero(minus_log_unit64(w.word[i])) / r.a;
}

// Runs body(lane buffer, words, n) over chunks of kChunk / per_element elements and stores them.
template <class L, class F>
void generate(const TensorView& y, Lane lane, i64 words_per_element, const RandomAttributes& r, const F& body) {
  const i64 total = numel(y);
  const i64 step = kChunk / words_per_element;
  const i64 bytes = bytes_of(y.dtype);
  const Store store = store_function(y.dtype, lane);
  const bool native = is_native(y.dtype, lane);
  parallel(total, kGrain, step, [&](i64 begin, i64 end) {
    Words words;
    alignas(64) L lanes[kChunk];
    for (i64 i = begin; i < end; i += step) {
      const i64 n = smaller(step, end - i);
      char* to = static_cast<char*>(y.data) + i * bytes;
      philox(r.seed, r.offset + static_cast<u64>(i * words_per_element / 4), words);
      L* target = native ? reinterpret_cast<L*>(to) : lanes;
      body(target, words, n, i);
      if (!native) store(to, bytes, lanes, n);
    }
  });
}

const RandomAttributes& given(const void* attributes) { return *static_cast<const RandomAttributes*>(attributes); }

void uniform(KernelContext&, Views outputs, Views, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const RandomAttributes& r = given(attributes);
  if (lane_of(y.dtype) == Lane::kF32) {
    return generate<float>(y, Lane::kF32, 1, r, [&](float* o, const Words& w, i64 n, i64) { uniform_f32(o, w, n, r); });
  }
  generate<double>(y, Lane::kF64, 2, r, [&](double* out, const Words& w, i64 n, i64) {
    for (i64 i = 0; i < n; ++i) {
      const u64 bits = (u64{w.word[2 * i + 1]} << 32 | w.word[2 * i]) >> 11;
      const double drawn = r.a + (r.b - r.a) * (static_cast<double>(bits) * 0x1p-53);
      out[i] = drawn < r.most ? drawn : r.most;
    }
  });
}

void normal(KernelContext&, Views outputs, Views, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const RandomAttributes& r = given(attributes);
  if (lane_of(y.dtype) == Lane::kF32) {
    return generate<float>(y, Lane::kF32, 1, r, [&](float* o, const Words& w, i64 n, i64) { normal_f32(o, w, n, r); });
  }
  generate<double>(y, Lane::kF64, 1, r, [&](double* o, const Words& w, i64 n, i64) { normal_f64(o, w, n, r); });
}

void exponential(KernelContext&, Views outputs, Views, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const RandomAttributes& r = given(attributes);
  if (lane_of(y.dtype) == Lane::kF32) {
    return generate<float>(y, Lane::kF32, 1, r,
                           [&](float* o, const Words& w, i64 n, i64) { exponential_f32(o, w, n, r); });
  }
  generate<double>(y, Lane::kF64, 1, r, [&](double* o, const Words& w, i64 n, i64) { exponential_f64(o, w, n, r); });
}

void bernoulli(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const RandomAttributes& r = given(attributes);
  const bool each = inputs.size() > 0 && at(inputs, 0).rank >= 0;
  if (!each) {
    // word * 2^-32 < p exactly: word < p * 2^32 rounded up.
    const double bound = r.a * 0x1p32;
    const u64 limit = bound <= 0 ? 0 : static_cast<u64>(bound) + (bound > static_cast<double>(static_cast<u64>(bound)));
    const bool is_float = lane_of(y.dtype) == Lane::kF32;
    if (is_float) {
      const u32 last = limit > 0xffffffffu ? 0xffffffffu : static_cast<u32>(limit);
      const bool always = limit > 0xffffffffu;
      return generate<float>(y, Lane::kF32, 1, r, [&](float* out, const Words& w, i64 n, i64) {
        for (i64 i = 0; i < n; ++i) out[i] = always || w.word[i] < last ? 1.0f : 0.0f;
      });
    }
    return generate<i64>(y, Lane::kI64, 1, r, [&](i64* out, const Words& w, i64 n, i64) {
      for (i64 i = 0; i < n; ++i) out[i] = w.word[i] < limit;
    });
  }
  const TensorView& p = at(inputs, 0);
  const Load load = load_function(p.dtype, Lane::kF64);
  const i64 bytes = bytes_of(p.dtype);
  generate<i64>(y, Lane::kI64, 1, r, [&](i64* out, const Words& w, i64 n, i64 first) {
    alignas(64) double probability[kChunk];
    load(probability, static_cast<const char*>(p.data) + first * bytes, bytes, n);
    bool right = true;
    for (i64 i = 0; i < n; ++i) {
      right &= probability[i] >= 0 && probability[i] <= 1;  // false for NaN
      out[i] = static_cast<double>(w.word[i]) * 0x1p-32 < probability[i];
    }
    if (!right) fail("bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got a probability outside [0, 1].");
  });
}

void randint(KernelContext&, Views outputs, Views, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const RandomAttributes& r = given(attributes);
  if (r.high <= r.low)
    fail("randint: high (%lld) must be above low (%lld)", static_cast<long long>(r.high),
         static_cast<long long>(r.low));
  const u64 range = static_cast<u64>(r.high) - static_cast<u64>(r.low);
  generate<i64>(y, Lane::kI64, 2, r, [&](i64* out, const Words& w, i64 n, i64) {
    for (i64 i = 0; i < n; ++i) {
      const u64 bits = u64{w.word[2 * i + 1]} << 32 | w.word[2 * i];
      out[i] = static_cast<i64>(static_cast<u64>(r.low) + bits % range);
    }
  });
}

void randperm(KernelContext& context, Views outputs, Views, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const RandomAttributes& r = given(attributes);
  const i64 n = numel(y);
  if (n == 0) return;
  const bool native = y.dtype == Dtype::kInt64;
  i64* order = native ? static_cast<i64*>(y.data) : static_cast<i64*>(context.scratch(static_cast<std::size_t>(n) * 8));
  for (i64 i = 0; i < n; ++i) order[i] = i;
  Words words;
  for (i64 draw = 0; draw < n - 1; ++draw) {
    const i64 slot = draw % (kChunk / 2);
    if (slot == 0) philox(r.seed, r.offset + static_cast<u64>(draw / 2), words);
    const u64 bits = u64{words.word[2 * slot + 1]} << 32 | words.word[2 * slot];
    const i64 i = n - 1 - draw;
    const i64 j = static_cast<i64>(bits % static_cast<u64>(i + 1));
    const i64 held = order[i];
    order[i] = order[j];
    order[j] = held;
  }
  if (!native) store_function(y.dtype, Lane::kI64)(static_cast<char*>(y.data), bytes_of(y.dtype), order, n);
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

}  // namespace tenon::cpu::TENON_CPU_LEVEL
