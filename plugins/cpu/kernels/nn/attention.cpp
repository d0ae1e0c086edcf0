// Attention without its matrix of weights: scores of a block of queries at a time, in scratch that stays in the cache.
// The backward computes them again from the logarithm of each row's sum (after Dao et al., "FlashAttention", 2022).
// Operands of 16 bits become float32 first, and results are rounded once.
#include <tenon/kernel/attributes/attention.h>

#include <type_traits>

#include "kernels/linalg/gemm.h"
#include "kernels/nn/attention_rows.h"
#include "kernels/philox.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"
#include "kernels/view_range.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kBlock = 64;  // queries whose scores are held at once

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
  Matrix rows_transposed(i64 b, i64 h, i64 first, i64 count) const {
    return {reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(at(b, h, first))), columns, count, 1, row};
  }
  T* data;
  i64 batch, head, row, columns;
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
  i64 first, batch, heads, length, keys;  // examples [first, first + batch) of the whole

  i64 blocks() const { return (length + kBlock - 1) / kBlock; }
  i64 rows_of(i64 block) const { return smaller(kBlock, length - block * kBlock); }
  // Keys that any row of a block, or one row, may see.
  i64 seen_by_block(i64 block) const {
    return attributes.causal ? smaller(keys, block * kBlock + rows_of(block)) : keys;
  }
  i64 seen_by(i64 row, i64 most) const { return attributes.causal ? smaller(most, row + 1) : most; }
  // The first random number of a query's weights, which is of its place in the whole.
  i64 random_of(i64 line) const { return (first * heads * length + line) * keys; }
};

Problem problem_of(const TensorView& q, const TensorView& k, const void* attributes, i64 first) {
  return {*static_cast<const AttentionAttributes*>(attributes), first, q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
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
u32 dropped_below(double p) { return static_cast<u32>(p * 0x1p32); }

// Scores of a block of queries, or of two, for each thread.
template <class T>
char* room_for_scores(KernelContext& context, const TensorView& q, const TensorView& k, i64 blocks) {
  const i64 bytes = blocks * smaller(kBlock, q.sizes[2]) * k.sizes[2] * static_cast<i64>(sizeof(T));
  return static_cast<char*>(context.scratch(static_cast<std::size_t>(thread_count() * bytes)));
}

Matrix dense_columns(void* data, i64 rows, i64 columns) {
  return {static_cast<char*>(data), columns, rows, 1, columns};
}

// y, lse <- q, k, v, mask?
template <class T>
void attention(char* room, Views outputs, Views inputs, const void* attributes, Dtype dtype, i64 first_example = 0) {
  const Heads<T> y(at(outputs, 0));
  T* const lse = static_cast<T*>(at(outputs, 1).data);
  const Heads<const T> q(at(inputs, 0)), k(at(inputs, 1)), v(at(inputs, 2));
  const Mask mask(at(inputs, 3));
  const Problem p = problem_of(at(inputs, 0), at(inputs, 1), attributes, first_example);
  const AttentionAttributes& a = p.attributes;
  const i64 blocks = p.blocks();
  const i64 bytes = smaller(kBlock, p.length) * p.keys * static_cast<i64>(sizeof(T));
  over_units(room, p.batch * p.heads * blocks, bytes, [&](char* scratch, i64 begin, i64 end) {
    T* const scores = reinterpret_cast<T*>(scratch);
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 block = unit % blocks, b = unit / blocks / p.heads, h = unit / blocks % p.heads;
      const i64 first = block * kBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
      gemm(dtype, q.rows(b, h, first, n), k.rows_transposed(b, h, 0, keys), dense_rows(scores, n, keys), {a.scale, 0});
      for (i64 r = 0; r < n; ++r) {
        T* const row = scores + r * keys;
        const i64 seen = p.seen_by(first + r, keys);
        const i64 line = (b * p.heads + h) * p.length + first + r;
        if (mask.present) add_mask(row, mask, mask.row(b, h, first + r), seen);
        lse[line] = softmax_row(row, seen);
        for (i64 j = seen; j < keys; ++j) row[j] = T(0);
        if (a.dropout > 0) {
          const u32 bound = dropped_below(a.dropout);
          const T kept = static_cast<T>(1 / (1 - a.dropout));
          over_words(a, p.random_of(line), seen, [&](i64 start, i64 count, const u32* words) {
            for (i64 j = 0; j < count; ++j) row[start + j] = words[j] < bound ? T(0) : row[start + j] * kept;
          });
        }
      }
      gemm(dtype, dense_rows(scores, n, keys), v.rows(b, h, 0, keys), y.rows(b, h, first, n), {1, 0});
    }
  });
}

// dq, dk, dv <- dy, q, k, v, y, lse, mask?
template <class T>
void attention_backward(char* room, Views outputs, Views inputs, const void* attributes, Dtype dtype,
                        i64 first_example = 0) {
  const Heads<T> dq(at(outputs, 0)), dk(at(outputs, 1)), dv(at(outputs, 2));
  const Heads<const T> dy(at(inputs, 0)), q(at(inputs, 1)), k(at(inputs, 2)), v(at(inputs, 3)), y(at(inputs, 4));
  const T* const lse = static_cast<const T*>(at(inputs, 5).data);
  const Mask mask(at(inputs, 6));
  const Problem p = problem_of(at(inputs, 1), at(inputs, 2), attributes, first_example);
  const AttentionAttributes& a = p.attributes;
  const i64 area = smaller(kBlock, p.length) * p.keys;
  over_units(room, p.batch * p.heads, 2 * area * static_cast<i64>(sizeof(T)), [&](char* scratch, i64 begin, i64 end) {
    T* const weights = reinterpret_cast<T*>(scratch);
    T* const slopes = weights + area;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 b = unit / p.heads, h = unit % p.heads;
      for (i64 j = 0; j < p.keys; ++j) {
        for (i64 c = 0; c < dk.columns; ++c) dk.at(b, h, j)[c] = T(0);
        for (i64 c = 0; c < dv.columns; ++c) dv.at(b, h, j)[c] = T(0);
      }
      for (i64 block = 0; block < p.blocks(); ++block) {
        const i64 first = block * kBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
        gemm(dtype, q.rows(b, h, first, n), k.rows_transposed(b, h, 0, keys), dense_rows(weights, n, keys),
             {a.scale, 0});
        gemm(dtype, dy.rows(b, h, first, n), v.rows_transposed(b, h, 0, keys), dense_rows(slopes, n, keys), {1, 0});
        for (i64 r = 0; r < n; ++r) {
          T *const w = weights + r * keys, *const ds = slopes + r * keys;
          const i64 seen = p.seen_by(first + r, keys);
          const i64 line = unit * p.length + first + r;
          if (mask.present) add_mask(w, mask, mask.row(b, h, first + r), seen);
          const T *const out = y.at(b, h, first + r), *const dout = dy.at(b, h, first + r);
          // What every weight of the row shares: sum_j w_j dw_j = y . dy.
          const T shared = sum_of<T>(y.columns, [&](i64 c) { return out[c] * dout[c]; });
          const T log_sum = lse[line];
          if (a.dropout > 0) {
            const u32 bound = dropped_below(a.dropout);
            const T kept = static_cast<T>(1 / (1 - a.dropout));
            over_words(a, p.random_of(line), seen, [&](i64 start, i64 count, const u32* words) {
              for (i64 j = 0; j < count; ++j) {
                const T factor = words[j] < bound ? T(0) : kept;
                const T weight = math::exp(w[start + j] - log_sum);
                ds[start + j] = weight * (ds[start + j] * factor - shared);
                w[start + j] = weight * factor;
              }
            });
          } else {
#pragma GCC ivdep
            for (i64 j = 0; j < seen; ++j) {
              const T weight = math::exp(w[j] - log_sum);
              ds[j] = weight * (ds[j] - shared);
              w[j] = weight;
            }
          }
          for (i64 j = seen; j < keys; ++j) w[j] = ds[j] = T(0);
        }
        gemm(dtype, dense_columns(weights, n, keys), dy.rows(b, h, first, n), dv.rows(b, h, 0, keys), {1, 1});
        gemm(dtype, dense_columns(slopes, n, keys), q.rows(b, h, first, n), dk.rows(b, h, 0, keys), {a.scale, 1});
        gemm(dtype, dense_rows(slopes, n, keys), k.rows(b, h, 0, keys), dq.rows(b, h, first, n), {a.scale, 0});
      }
    }
  });
}

bool has_16_bits(Dtype dtype) { return dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16; }

// Tensors (B, H, rows, columns) of 16 bits, of which a few examples at a time are dense float32 in scratch: as many as
// give every thread several heads.
class WidenedExamples {
 public:
  WidenedExamples(KernelContext& context, i64 batch, i64 heads, std::initializer_list<const TensorView*> tensors)
      : batch_(batch), at_once_(smaller(batch, larger<i64>(1, kHeadsPerThread * thread_count() / heads))) {
    for (const TensorView* of : tensors) {
      Slot& slot = slots_[count_++];
      slot.of = of;
      i64 count = 1;
      for (int d = 3; d >= 0; --d) {
        slot.sizes[d] = d == 0 ? at_once_ : of->sizes[d];
        slot.strides[d] = count;
        count *= slot.sizes[d];
      }
      slot.data = context.scratch(static_cast<std::size_t>(count) * sizeof(float));
    }
  }
  WidenedExamples(const WidenedExamples&) = delete;

  // body(first, count) for some examples after the others; view() and read() are then of these.
  template <class F>
  void each(const F& body) {
    for (first_ = 0; first_ < batch_; first_ += at_once_) {
      now_ = smaller(at_once_, batch_ - first_);
      for (int i = 0; i < count_; ++i) slots_[i].sizes[0] = now_;
      body(first_, now_);
    }
  }
  TensorView view(int i) const { return {slots_[i].data, slots_[i].sizes, slots_[i].strides, 4, Dtype::kFloat32}; }
  // The same with the tensor's values.
  TensorView read(int i) const {
    copy_view(view(i), ViewRange(*slots_[i].of, 0, first_, now_).view);
    return view(i);
  }
  // What view(i) holds goes back.
  void write(int i) const { copy_view(ViewRange(*slots_[i].of, 0, first_, now_).view, view(i)); }

 private:
  static constexpr i64 kHeadsPerThread = 8;
  struct Slot {
    const TensorView* of;
    i64 sizes[4], strides[4];
    void* data;
  };
  Slot slots_[8];
  int count_ = 0;
  i64 batch_, at_once_, first_ = 0, now_ = 0;
};

void forward_of_16_bits(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView& q = at(inputs, 0);
  WidenedExamples widened(context, q.sizes[0], q.sizes[1], {&q, &at(inputs, 1), &at(inputs, 2), &at(outputs, 0)});
  char* const room = room_for_scores<float>(context, q, at(inputs, 1), 1);
  widened.each([&](i64 first, i64 count) {
    const ViewRange lse(at(outputs, 1), 0, first, count), mask(at(inputs, 3), 0, first, count);
    const TensorView from[] = {widened.read(0), widened.read(1), widened.read(2), mask.view};
    const TensorView to[] = {widened.view(3), lse.view};
    attention<float>(room, to, from, attributes, Dtype::kFloat32, first);
    widened.write(3);
  });
}
void backward_of_16_bits(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView& q = at(inputs, 1);
  WidenedExamples widened(context, q.sizes[0], q.sizes[1],
                          {&at(inputs, 0), &q, &at(inputs, 2), &at(inputs, 3), &at(inputs, 4), &at(outputs, 0),
                           &at(outputs, 1), &at(outputs, 2)});
  char* const room = room_for_scores<float>(context, q, at(inputs, 2), 2);
  widened.each([&](i64 first, i64 count) {
    const ViewRange lse(at(inputs, 5), 0, first, count), mask(at(inputs, 6), 0, first, count);
    const TensorView from[] = {widened.read(0), widened.read(1), widened.read(2), widened.read(3),
                               widened.read(4), lse.view,        mask.view};
    const TensorView to[] = {widened.view(5), widened.view(6), widened.view(7)};
    attention_backward<float>(room, to, from, attributes, Dtype::kFloat32, first);
    for (const int i : {5, 6, 7}) widened.write(i);
  });
}

void forward_kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Dtype dtype = at(inputs, 0).dtype;
  if (numel(at(outputs, 1)) == 0) return;
  if (has_16_bits(dtype)) return forward_of_16_bits(context, outputs, inputs, attributes);
  if (dtype == Dtype::kFloat32)
    return attention<float>(room_for_scores<float>(context, at(inputs, 0), at(inputs, 1), 1), outputs, inputs,
                            attributes, dtype);
  if (dtype == Dtype::kFloat64)
    return attention<double>(room_for_scores<double>(context, at(inputs, 0), at(inputs, 1), 1), outputs, inputs,
                             attributes, dtype);
  refuse_dtype("attention", dtype);
}
void backward_kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Dtype dtype = at(inputs, 0).dtype;
  if (at(inputs, 1).sizes[0] * at(inputs, 1).sizes[1] == 0) return;
  if (has_16_bits(dtype)) return backward_of_16_bits(context, outputs, inputs, attributes);
  if (dtype == Dtype::kFloat32)
    return attention_backward<float>(room_for_scores<float>(context, at(inputs, 1), at(inputs, 2), 2), outputs, inputs,
                                     attributes, dtype);
  if (dtype == Dtype::kFloat64)
    return attention_backward<double>(room_for_scores<double>(context, at(inputs, 1), at(inputs, 2), 2), outputs,
                                      inputs, attributes, dtype);
  refuse_dtype("attention_backward", dtype);
}

}  // namespace

void add_attention(const KernelSink& sink) {
  sink.add(sink.host, "attention", &forward_kernel);
  sink.add(sink.host, "attention_backward", &backward_kernel);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
