// What attention's kernels share beside their products: the operands, and what becomes of a row of scores.
#pragma once

#include <tenon/kernel/attributes/attention.h>

#include <type_traits>

#include "kernels/nn/attention_rows.h"
#include "kernels/philox.h"
#include "kernels/pointwise/lanes.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

constexpr i64 kQueryBlock = 64;  // queries whose scores are held at once

// (B, H, rows, columns) with dense rows.
template <class T>
struct Heads {
  explicit Heads(const TensorView& v)
      : data(static_cast<T*>(v.data)),
        batch(v.strides[0]),
        head(v.strides[1]),
        row(v.strides[2]),
        columns(v.sizes[3]) {}
  T* at(i64 b, i64 h, i64 i) const { return data + b * batch + h * head + i * row; }
  Matrix rows(i64 b, i64 h, i64 first, i64 count) const {
    return {reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(at(b, h, first))), count, columns, row, 1};
  }
  T* data;
  i64 batch, head, row, columns;
};

// Scratch of a thread, handed out piece by piece.
struct Scratch {
  char* next;
  template <class T>
  T* take(i64 count) {
    T* const piece = reinterpret_cast<T*>(next);
    next += count * static_cast<i64>(sizeof(T));
    return piece;
  }
};

struct Mask {
  explicit Mask(const TensorView& v) : view(v), present(v.rank >= 0) {}
  const char* row(i64 b, i64 h, i64 i) const {
    return static_cast<const char*>(view.data) +
           (b * view.strides[0] + h * view.strides[1] + i * view.strides[2]) * bytes_of(view.dtype);
  }
  const TensorView& view;
  bool present;
};

struct Problem {
  const AttentionAttributes& attributes;
  i64 batch, heads, length, keys;

  i64 blocks() const { return (length + kQueryBlock - 1) / kQueryBlock; }
  i64 rows_of(i64 block) const { return smaller(kQueryBlock, length - block * kQueryBlock); }
  // Keys that any row of a block, or one row, may see.
  i64 seen_by_block(i64 block) const {
    return attributes.causal ? smaller(keys, block * kQueryBlock + rows_of(block)) : keys;
  }
  i64 seen_by(i64 row, i64 most) const { return attributes.causal ? smaller(most, row + 1) : most; }
  i64 rows_at_once() const { return smaller(kQueryBlock, length); }
  // A query among all, which has a logarithm of its sum and random numbers of its own.
  i64 line(i64 b, i64 h, i64 i) const { return (b * heads + h) * length + i; }
};

inline Problem problem_of(const TensorView& q, const TensorView& k, const void* attributes) {
  return {*static_cast<const AttentionAttributes*>(attributes), q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
}

template <class T, class E>
void add_elements(T* scores, const char* row, i64 step, i64 n) {
  const E* added = reinterpret_cast<const E*>(row);
  for (i64 j = 0; j < n; ++j) scores[j] += static_cast<T>(to_float(added[j * step]));
}

template <class T>
void add_mask(T* scores, const Mask& mask, const char* row, i64 n) {
  const i64 step = mask.view.strides[3];
  if (mask.view.dtype == Dtype::kBool) {
    const u8* keep = reinterpret_cast<const u8*>(row);
    for (i64 j = 0; j < n; ++j) scores[j] = keep[j * step] ? scores[j] : -static_cast<T>(__builtin_inff());
  } else if (mask.view.dtype == Dtype::kFloat16) {
    add_elements<T, F16>(scores, row, step, n);
  } else if (mask.view.dtype == Dtype::kBFloat16) {
    add_elements<T, BF16>(scores, row, step, n);
  } else if (step == 1) {
    const T* added = reinterpret_cast<const T*>(row);
    for (i64 j = 0; j < n; ++j) scores[j] += added[j];
  } else {
    const T* added = reinterpret_cast<const T*>(row);
    for (i64 j = 0; j < n; ++j) scores[j] += added[j * step];
  }
}

// Calls body(first, count, words) for the words of elements [begin, begin + n) of the weights.
template <class F>
void over_words(const AttentionAttributes& a, i64 begin, i64 n, const F& body) {
  Words words;
  for (i64 done = 0; done < n;) {
    const i64 element = begin + done;
    philox(a.seed, a.offset + static_cast<u64>(element / 4), words);
    const i64 skip = element % 4;
    const i64 count = smaller(kChunk - skip, n - done);
    body(done, count, words.word + skip);
    done += count;
  }
}
inline u32 dropped_below(double p) { return static_cast<u32>(p * 0x1p32); }

// The scores of query i become the weights of all `keys` values; returns the logarithm of their sum.
template <class T>
T weigh(T* row, i64 keys, const Problem& p, const Mask& mask, i64 b, i64 h, i64 i) {
  const AttentionAttributes& a = p.attributes;
  const i64 seen = p.seen_by(i, keys);
  if (mask.present) add_mask(row, mask, mask.row(b, h, i), seen);
  const T log_sum = softmax_row(row, seen);
  for (i64 j = seen; j < keys; ++j) row[j] = T(0);
  if (a.dropout > 0) {
    const u32 bound = dropped_below(a.dropout);
    const T kept = static_cast<T>(1 / (1 - a.dropout));
    over_words(a, p.line(b, h, i) * p.keys, seen, [&](i64 start, i64 count, const u32* words) {
      for (i64 j = 0; j < count; ++j) row[start + j] = words[j] < bound ? T(0) : row[start + j] * kept;
    });
  }
  return log_sum;
}

// From here on what rounds the logarithm of a row's sum shows in its weights: the row is summed again.
constexpr int kLargeLogSum = 32;

// In the backward: the scores of query i become its weights again, and the gradients of the weights those of the
// scores. What every weight of the row has in common, sum_j w_j dw_j, is y . dy too; but summed of the weights it is
// exact where one of them is 1, and not rounded to 16 bits.
template <class T>
void weigh_back(T* w, T* ds, i64 keys, const Problem& p, const Mask& mask, i64 b, i64 h, i64 i, T log_sum) {
  const AttentionAttributes& a = p.attributes;
  const i64 seen = p.seen_by(i, keys);
  if (mask.present) add_mask(w, mask, mask.row(b, h, i), seen);
  const bool again = log_sum > T(kLargeLogSum) || log_sum < T(-kLargeLogSum);
  if (again) softmax_row(w, seen);
  const T kept = a.dropout > 0 ? static_cast<T>(1 / (1 - a.dropout)) : T(1);
  if (a.dropout > 0) {
    const u32 bound = dropped_below(a.dropout);
    over_words(a, p.line(b, h, i) * p.keys, seen, [&](i64 start, i64 count, const u32* words) {
      for (i64 j = 0; j < count; ++j) {
        const T score = w[start + j], weight = again ? score : math::exp(score - log_sum);
        const bool dropped = words[j] < bound;
        ds[start + j] *= dropped ? T(0) : kept;
        w[start + j] = dropped ? -weight : weight;  // the sign says it to the loops below
      }
    });
  } else if (!again) {
#pragma GCC ivdep
    for (i64 j = 0; j < seen; ++j) w[j] = math::exp(w[j] - log_sum);
  }
  const auto weight_of = [](T signed_weight) { return signed_weight < T(0) ? -signed_weight : signed_weight; };
  // Over their sum, which the rounding of log_sum takes away from 1; 0 where a row sees nothing.
  const T total = sum_of<T>(seen, [&](i64 j) { return weight_of(w[j]); });
  const T common = total > T(0) ? sum_of<T>(seen, [&](i64 j) { return weight_of(w[j]) * ds[j]; }) / total : T(0);
  if (a.dropout > 0) {
#pragma GCC ivdep
    for (i64 j = 0; j < seen; ++j) {
      ds[j] = weight_of(w[j]) * (ds[j] - common);
      w[j] = w[j] < T(0) ? T(0) : w[j] * kept;
    }
  } else {
#pragma GCC ivdep
    for (i64 j = 0; j < seen; ++j) ds[j] = w[j] * (ds[j] - common);
  }
  for (i64 j = seen; j < keys; ++j) w[j] = ds[j] = T(0);
}

// On bfloat16 by products of 16 bits. False where oneDNN has none for these operands, or floats are faster.
bool attention_of_bfloat16(KernelContext& context, Views outputs, Views inputs, const void* attributes);
bool attention_backward_of_bfloat16(KernelContext& context, Views outputs, Views inputs, const void* attributes);

}  // namespace tenon::cpu::TENON_CPU_LEVEL
