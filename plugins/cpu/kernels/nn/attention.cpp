// Attention without its matrix of weights: scores of a block of queries at a time, in scratch that stays in the cache.
// The backward computes them again from the logarithm of each row's sum (after Dao et al., "FlashAttention", 2022).
// Operands of 16 bits become float32 a head at a time, in scratch of each thread, and results are rounded once.
#include <tenon/kernel/attributes/attention.h>

#include <type_traits>

#include "kernels/linalg/gemm.h"
#include "kernels/nn/attention_rows.h"
#include "kernels/philox.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

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

// Rows of heads as lanes: where they lie, or up to `most` of them in scratch, where elements are of 16 bits.
template <class E>
class Rows {
 public:
  using T = decltype(widened(std::remove_const_t<E>{}));
  static constexpr bool kInPlace = std::is_same_v<std::remove_const_t<E>, T>;
  static i64 bytes(const TensorView& v, i64 most) {
    return kInPlace ? 0 : most * v.sizes[3] * static_cast<i64>(sizeof(T));
  }

  Rows(const TensorView& v, Scratch& scratch, i64 most)
      : heads_(v), room_(kInPlace ? nullptr : scratch.take<T>(most * v.sizes[3])) {}
  // Rows [first, first + count) of a head are what is read or written from now on.
  void choose(i64 b, i64 h, i64 first, i64 count) {
    b_ = b;
    h_ = h;
    first_ = first;
    count_ = count;
  }
  // Chooses rows and reads them.
  void read(i64 b, i64 h, i64 first, i64 count) {
    choose(b, h, first, count);
    if constexpr (!kInPlace) {
      for (i64 i = 0; i < count; ++i) {
        const E* const from = heads_.at(b, h, first + i);
        T* const to = room_ + i * heads_.columns;
#pragma GCC ivdep
        for (i64 c = 0; c < heads_.columns; ++c) to[c] = widened(from[c]);
      }
    }
  }
  void zero() {
    for (i64 i = 0; i < count_; ++i) {
      T* const to = row(i);
      for (i64 c = 0; c < heads_.columns; ++c) to[c] = T(0);
    }
  }
  // What was computed goes to where it belongs.
  void write() const {
    if constexpr (!kInPlace) {
      for (i64 i = 0; i < count_; ++i) {
        const T* const from = room_ + i * heads_.columns;
        E* const to = heads_.at(b_, h_, first_ + i);
#pragma GCC ivdep
        for (i64 c = 0; c < heads_.columns; ++c) put(to[c], from[c]);
      }
    }
  }
  // Of the chosen rows the first n.
  Matrix matrix(i64 n) const {
    if constexpr (kInPlace) return heads_.rows(b_, h_, first_, n);
    return dense_rows(room_, n, heads_.columns);
  }
  Matrix matrix() const { return matrix(count_); }
  auto* row(i64 i) const {
    if constexpr (kInPlace) {
      return heads_.at(b_, h_, first_ + i);
    } else {
      return room_ + i * heads_.columns;
    }
  }
  i64 columns() const { return heads_.columns; }

 private:
  Heads<E> heads_;
  T* room_;
  i64 b_ = 0, h_ = 0, first_ = 0, count_ = 0;
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

  i64 blocks() const { return (length + kBlock - 1) / kBlock; }
  i64 rows_of(i64 block) const { return smaller(kBlock, length - block * kBlock); }
  // Keys that any row of a block, or one row, may see.
  i64 seen_by_block(i64 block) const {
    return attributes.causal ? smaller(keys, block * kBlock + rows_of(block)) : keys;
  }
  i64 seen_by(i64 row, i64 most) const { return attributes.causal ? smaller(most, row + 1) : most; }
  i64 rows_at_once() const { return smaller(kBlock, length); }
};

Problem problem_of(const TensorView& q, const TensorView& k, const void* attributes) {
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
u32 dropped_below(double p) { return static_cast<u32>(p * 0x1p32); }

Matrix dense_columns(void* data, i64 rows, i64 columns) {
  return {static_cast<char*>(data), columns, rows, 1, columns};
}

// y, lse <- q, k, v, mask?   Elements of E, computed in T.
template <class E, class T = decltype(widened(E{}))>
void attention(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &to = at(outputs, 0), &from = at(inputs, 0), &key = at(inputs, 1), &value = at(inputs, 2);
  T* const lse = static_cast<T*>(at(outputs, 1).data);
  const Mask mask(at(inputs, 3));
  const Problem p = problem_of(from, key, attributes);
  const AttentionAttributes& a = p.attributes;
  const i64 blocks = p.blocks(), most = p.rows_at_once();
  const i64 bytes = most * p.keys * static_cast<i64>(sizeof(T)) + Rows<E>::bytes(to, most) +
                    Rows<E>::bytes(from, most) + Rows<E>::bytes(key, p.keys) + Rows<E>::bytes(value, p.keys);
  over_units(context, p.batch * p.heads * blocks, bytes, [&](char* room, i64 begin, i64 end) {
    Scratch scratch{room};
    T* const scores = scratch.take<T>(most * p.keys);
    Rows<E> y(to, scratch, most);
    Rows<const E> q(from, scratch, most), k(key, scratch, p.keys), v(value, scratch, p.keys);
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 block = unit % blocks, b = unit / blocks / p.heads, h = unit / blocks % p.heads;
      const i64 first = block * kBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
      if (unit == begin || block == 0) {
        k.read(b, h, 0, p.keys);
        v.read(b, h, 0, p.keys);
      }
      q.read(b, h, first, n);
      y.choose(b, h, first, n);
      gemm(kDtypeOf<T>, q.matrix(), k.matrix(keys).transposed(), dense_rows(scores, n, keys), {a.scale, 0});
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
          over_words(a, line * p.keys, seen, [&](i64 start, i64 count, const u32* words) {
            for (i64 j = 0; j < count; ++j) row[start + j] = words[j] < bound ? T(0) : row[start + j] * kept;
          });
        }
      }
      gemm(kDtypeOf<T>, dense_rows(scores, n, keys), v.matrix(keys), y.matrix(), {1, 0});
      y.write();
    }
  });
}

// dq, dk, dv <- dy, q, k, v, y, lse, mask?   Elements of E, computed in T.
template <class E, class T = decltype(widened(E{}))>
void attention_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &query = at(inputs, 1), &key = at(inputs, 2), &value = at(inputs, 3);
  const Heads<const E> y(at(inputs, 4));
  const T* const lse = static_cast<const T*>(at(inputs, 5).data);
  const Mask mask(at(inputs, 6));
  const Problem p = problem_of(query, key, attributes);
  const AttentionAttributes& a = p.attributes;
  const i64 most = p.rows_at_once(), area = most * p.keys;
  const i64 bytes = 2 * area * static_cast<i64>(sizeof(T)) + 2 * Rows<E>::bytes(query, most) +
                    Rows<E>::bytes(value, most) + 2 * Rows<E>::bytes(key, p.keys) + 2 * Rows<E>::bytes(value, p.keys);
  over_units(context, p.batch * p.heads, bytes, [&](char* room, i64 begin, i64 end) {
    Scratch scratch{room};
    T* const weights = scratch.take<T>(area);
    T* const slopes = scratch.take<T>(area);
    Rows<E> dq(at(outputs, 0), scratch, most), dk(at(outputs, 1), scratch, p.keys), dv(at(outputs, 2), scratch, p.keys);
    Rows<const E> dy(at(inputs, 0), scratch, most), q(query, scratch, most), k(key, scratch, p.keys),
        v(value, scratch, p.keys);
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 b = unit / p.heads, h = unit % p.heads;
      k.read(b, h, 0, p.keys);
      v.read(b, h, 0, p.keys);
      for (Rows<E>* gradient : {&dk, &dv}) {
        gradient->choose(b, h, 0, p.keys);
        gradient->zero();
      }
      for (i64 block = 0; block < p.blocks(); ++block) {
        const i64 first = block * kBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
        q.read(b, h, first, n);
        dy.read(b, h, first, n);
        dq.choose(b, h, first, n);
        gemm(kDtypeOf<T>, q.matrix(), k.matrix(keys).transposed(), dense_rows(weights, n, keys), {a.scale, 0});
        gemm(kDtypeOf<T>, dy.matrix(), v.matrix(keys).transposed(), dense_rows(slopes, n, keys), {1, 0});
        for (i64 r = 0; r < n; ++r) {
          T *const w = weights + r * keys, *const ds = slopes + r * keys;
          const i64 seen = p.seen_by(first + r, keys);
          const i64 line = unit * p.length + first + r;
          if (mask.present) add_mask(w, mask, mask.row(b, h, first + r), seen);
          const E* const out = y.at(b, h, first + r);
          const T* const dout = dy.row(r);
          // What every weight of the row shares: sum_j w_j dw_j = y . dy.
          const T shared = sum_of<T>(y.columns, [&](i64 c) { return widened(out[c]) * dout[c]; });
          const T log_sum = lse[line];
          if (a.dropout > 0) {
            const u32 bound = dropped_below(a.dropout);
            const T kept = static_cast<T>(1 / (1 - a.dropout));
            over_words(a, line * p.keys, seen, [&](i64 start, i64 count, const u32* words) {
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
        gemm(kDtypeOf<T>, dense_columns(weights, n, keys), dy.matrix(), dv.matrix(keys), {1, 1});
        gemm(kDtypeOf<T>, dense_columns(slopes, n, keys), q.matrix(), dk.matrix(keys), {a.scale, 1});
        gemm(kDtypeOf<T>, dense_rows(slopes, n, keys), k.matrix(keys), dq.matrix(), {a.scale, 0});
        dq.write();
      }
      dk.write();
      dv.write();
    }
  });
}

// Calls use(E{}) for elements of a dtype.
template <class F>
void with_elements(const char* name, Dtype dtype, const F& use) {
  switch (dtype) {
    case Dtype::kFloat16:
      return use(F16{});
    case Dtype::kBFloat16:
      return use(BF16{});
    case Dtype::kFloat32:
      return use(float{});
    case Dtype::kFloat64:
      return use(double{});
    default:
      refuse_dtype(name, dtype);
  }
}

void forward_kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (numel(at(outputs, 1)) == 0) return;
  with_elements("attention", at(inputs, 0).dtype,
                [&]<class E>(E) { attention<E>(context, outputs, inputs, attributes); });
}
void backward_kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (at(inputs, 1).sizes[0] * at(inputs, 1).sizes[1] == 0) return;
  with_elements("attention_backward", at(inputs, 0).dtype,
                [&]<class E>(E) { attention_backward<E>(context, outputs, inputs, attributes); });
}

}  // namespace

void add_attention(const KernelSink& sink) {
  sink.add(sink.host, "attention", &forward_kernel);
  sink.add(sink.host, "attention_backward", &backward_kernel);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
