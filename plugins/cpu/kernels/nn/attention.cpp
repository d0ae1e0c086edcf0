// Attention without its matrix of weights: scores of a block of queries at a time, in scratch that stays in the cache.
// The backward computes them again from the logarithm of each row's sum (after Dao et al., "FlashAttention", 2022).
// Operands of 16 bits become float32 a head at a time, in scratch of each thread, and results are rounded once.
#include "kernels/linalg/gemm.h"
#include "kernels/nn/attention_problem.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

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
      const i64 first = block * kQueryBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
      if (unit == begin || block == 0) {
        k.read(b, h, 0, p.keys);
        v.read(b, h, 0, p.keys);
      }
      q.read(b, h, first, n);
      y.choose(b, h, first, n);
      gemm(kDtypeOf<T>, q.matrix(), transposed(k.matrix(keys)), dense_rows(scores, n, keys), {a.scale, 0});
      for (i64 r = 0; r < n; ++r) {
        lse[p.line(b, h, first + r)] = weigh(scores + r * keys, keys, p, mask, b, h, first + r);
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
        const i64 first = block * kQueryBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
        q.read(b, h, first, n);
        dy.read(b, h, first, n);
        dq.choose(b, h, first, n);
        gemm(kDtypeOf<T>, q.matrix(), transposed(k.matrix(keys)), dense_rows(weights, n, keys), {a.scale, 0});
        gemm(kDtypeOf<T>, dy.matrix(), transposed(v.matrix(keys)), dense_rows(slopes, n, keys), {1, 0});
        for (i64 r = 0; r < n; ++r) {
          weigh_back(weights + r * keys, slopes + r * keys, keys, p, mask, b, h, first + r,
                     lse[p.line(b, h, first + r)]);
        }
        gemm(kDtypeOf<T>, transposed(dense_rows(weights, n, keys)), dy.matrix(), dv.matrix(keys), {1, 1});
        gemm(kDtypeOf<T>, transposed(dense_rows(slopes, n, keys)), q.matrix(), dk.matrix(keys), {a.scale, 1});
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
  if (numel(at(outputs, 1)) == 0 || attention_of_bfloat16(context, outputs, inputs, attributes)) return;
  with_elements("attention", at(inputs, 0).dtype,
                [&]<class E>(E) { attention<E>(context, outputs, inputs, attributes); });
}
void backward_kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (at(inputs, 1).sizes[0] * at(inputs, 1).sizes[1] == 0) return;
  if (attention_backward_of_bfloat16(context, outputs, inputs, attributes)) return;
  with_elements("attention_backward", at(inputs, 0).dtype,
                [&]<class E>(E) { attention_backward<E>(context, outputs, inputs, attributes); });
}

}  // namespace

void add_attention(const KernelSink& sink) {
  sink.add(sink.host, "attention", &forward_kernel);
  sink.add(sink.host, "attention_backward", &backward_kernel);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
