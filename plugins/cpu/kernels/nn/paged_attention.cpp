// Attention to keys and values where they lie, page by page: nothing is copied together. Scores of a block of queries
// are in scratch, as in attention.cpp. The few rows of a symbol that comes next are multiplied by loops that read each
// key and value once; of a prompt's many a page is multiplied as a matrix. A page of 16 bits becomes float32 in
// scratch, a head at a time.
#include <tenon/kernel/attributes/paged_attention.h>

#include "kernels/linalg/gemm.h"
#include "kernels/nn/attention_rows.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kBlock = 64;   // rows of queries whose scores are held at once
constexpr i64 kFewRows = 8;  // for which a call of the library takes longer than a page

// y, q: (T, heads, depth); pages: (2, room, shared, depth). A unit is a block of rows that see one head of keys: of one
// position those of all heads that share it, else those of one head at several positions.
struct Problem {
  Problem(Views outputs, Views views, const void* raw)
      : a(*static_cast<const PagedAttentionAttributes*>(raw)),
        y(at(outputs, 0)),
        q(at(views, 0)),
        inputs(views),
        count(q.sizes[0]),
        heads(q.sizes[1]),
        depth(q.sizes[2]),
        room(at(views, 1).sizes[1]),
        shared(at(views, 1).sizes[2]) {}

  bool is_one() const { return count == 1; }
  i64 rows_of_unit() const { return smaller(kBlock, is_one() ? heads / shared : count); }
  i64 blocks() const { return ((is_one() ? heads / shared : count) + kBlock - 1) / kBlock; }
  i64 units() const { return blocks() * (is_one() ? shared : heads); }

  const PagedAttentionAttributes& a;
  const TensorView &y, &q;
  Views inputs;
  i64 count, heads, depth, room, shared;
};

struct Unit {
  Unit(const Problem& p, i64 number) {
    const i64 block = number % p.blocks(), which = number / p.blocks(), of = p.is_one() ? p.heads / p.shared : p.count;
    const i64 first = block * kBlock;
    rows = smaller(kBlock, of - first);
    step = p.is_one() ? p.depth : p.heads * p.depth;
    begin = p.is_one() ? (which * of + first) * p.depth : first * step + which * p.depth;
    key_head = p.is_one() ? which : which / (p.heads / p.shared);
    position = p.a.length - p.count + (p.is_one() ? 0 : first);
    keys = p.is_one() ? p.a.length : position + rows;
  }
  i64 seen_by(const Problem& p, i64 row) const { return p.is_one() ? keys : position + row + 1; }

  i64 rows, step, begin;  // of queries: in elements, one row from the next, and the first
  i64 key_head, position, keys;
};

template <class E>
void widen(const E* from, i64 step, float* to, i64 rows, i64 columns) {
  for (i64 r = 0; r < rows; ++r)
    for (i64 c = 0; c < columns; ++c) to[r * columns + c] = to_float(from[r * step + c]);
}

// A matrix of T: where it lies, or widened in scratch.
template <class E, class T>
Matrix matrix_of(const E* data, i64 rows, i64 columns, i64 step, T* scratch) {
  if constexpr (__is_same(E, T)) {
    return {reinterpret_cast<char*>(const_cast<E*>(data)), rows, columns, step, 1};
  } else {
    widen(data, step, scratch, rows, columns);
    return dense_rows(scratch, rows, columns);
  }
}

// As rows of T, `step` elements apart.
template <class T>
struct Rows {
  const T* data;
  i64 count, step;
  const T* at(i64 row) const { return data + row * step; }
};

// So many of T that they fill a register, wherever they lie.
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
  static constexpr i64 kCount = 32 / static_cast<i64>(sizeof(T));
};
template <class T>
const typename Lanes<T>::Vector& lanes(const T* from) {
  return *reinterpret_cast<const typename Lanes<T>::Vector*>(from);
}

constexpr i64 kAtOnce = 4;  // keys whose sums are in registers

// scores[r * step + j] = scale * q_r . key_j
template <class T>
void few_scores(const Rows<T>& q, const Rows<T>& keys, i64 depth, T scale, T* scores, i64 step) {
  using Vector = typename Lanes<T>::Vector;
  constexpr i64 kLanes = Lanes<T>::kCount;
  for (i64 first = 0; first < keys.count; first += kAtOnce) {
    const i64 count = smaller(kAtOnce, keys.count - first);
    const T* const k0 = keys.at(first);  // the last one again where there are no more
    const T* const k1 = keys.at(first + smaller<i64>(1, count - 1));
    const T* const k2 = keys.at(first + smaller<i64>(2, count - 1));
    const T* const k3 = keys.at(first + count - 1);
    for (i64 r = 0; r < q.count; ++r) {
      const T* const query = q.at(r);
      Vector s0 = {}, s1 = {}, s2 = {}, s3 = {};
      i64 c = 0;
      for (; c + kLanes <= depth; c += kLanes) {
        const Vector some = lanes(query + c);
        s0 += some * lanes(k0 + c);
        s1 += some * lanes(k1 + c);
        s2 += some * lanes(k2 + c);
        s3 += some * lanes(k3 + c);
      }
      T sums[kAtOnce] = {T(0), T(0), T(0), T(0)};
      for (i64 lane = 0; lane < kLanes; ++lane) {
        sums[0] += s0[lane];
        sums[1] += s1[lane];
        sums[2] += s2[lane];
        sums[3] += s3[lane];
      }
      for (; c < depth; ++c) {
        sums[0] += query[c] * k0[c];
        sums[1] += query[c] * k1[c];
        sums[2] += query[c] * k2[c];
        sums[3] += query[c] * k3[c];
      }
      T* const to = scores + r * step + first;
      if (count == kAtOnce) {
        for (i64 k = 0; k < kAtOnce; ++k) to[k] = scale * sums[k];
      } else {
        to[0] = scale * sums[0];
        if (count > 1) to[1] = scale * sums[1];
        if (count > 2) to[2] = scale * sums[2];
      }
    }
  }
}

// sums_r += sum of weights[r * step + j] * value_j
template <class T>
void add_few_values(const T* weights, i64 step, i64 rows, const Rows<T>& values, i64 depth, T* sums) {
  for (i64 first = 0; first < values.count; first += kAtOnce) {
    const i64 count = smaller(kAtOnce, values.count - first);
    const T* const v0 = values.at(first);
    const T* const v1 = values.at(first + smaller<i64>(1, count - 1));
    const T* const v2 = values.at(first + smaller<i64>(2, count - 1));
    const T* const v3 = values.at(first + count - 1);
    for (i64 r = 0; r < rows; ++r) {
      const T* const w = weights + r * step + first;
      const T w0 = w[0], w1 = count > 1 ? w[1] : T(0), w2 = count > 2 ? w[2] : T(0), w3 = count > 3 ? w[3] : T(0);
      T* const sum = sums + r * depth;
#pragma GCC ivdep
      for (i64 c = 0; c < depth; ++c) sum[c] += (w0 * v0[c] + w1 * v1[c]) + (w2 * v2[c] + w3 * v3[c]);
    }
  }
}

void put(float value, float& to) { to = value; }
void put(double value, double& to) { to = value; }
void put(float value, F16& to) { to = to_half(value); }
void put(float value, BF16& to) { to = to_bfloat(value); }

// E: of the operands; T: computed in.
template <class E, class T>
void attend(KernelContext& context, const Problem& p, Dtype computed) {
  const i64 rows = p.rows_of_unit();
  const i64 scores_size = rows * p.a.length, row_size = rows * p.depth, page_size = p.room * p.depth;
  // Scores, results, and what is widened: queries and a page.
  const i64 bytes = (scores_size + 2 * row_size + page_size) * static_cast<i64>(sizeof(T));
  over_units(context, p.units(), bytes, [&](char* scratch, i64 begin, i64 end) {
    T* const scores = reinterpret_cast<T*>(scratch);
    T* const sums = scores + scores_size;
    T* const wide_rows = sums + row_size;
    T* const wide_page = wide_rows + row_size;
    for (i64 number = begin; number < end; ++number) {
      const Unit unit(p, number);
      const Matrix q =
          matrix_of(static_cast<const E*>(p.q.data) + unit.begin, unit.rows, p.depth, unit.step, wide_rows);
      const auto over_pages = [&](i64 which, const auto& body) {
        for (i64 first = 0, page = 1; first < unit.keys; first += p.room, ++page) {
          const E* const data = static_cast<const E*>(at(p.inputs, static_cast<int>(page)).data) +
                                (which * p.room * p.shared + unit.key_head) * p.depth;
          body(first, matrix_of(data, smaller(p.room, unit.keys - first), p.depth, p.shared * p.depth, wide_page));
        }
      };
      over_pages(0, [&](i64 first, const Matrix& keys) {
        gemm(computed, q, {keys.data, p.depth, keys.rows, 1, keys.row_stride},
             {reinterpret_cast<char*>(scores + first), unit.rows, keys.rows, unit.keys, 1}, {p.a.scale, 0});
      });
      for (i64 r = 0; r < unit.rows; ++r) {
        T* const row = scores + r * unit.keys;
        const i64 seen = unit.seen_by(p, r);
        softmax_row(row, seen);
        for (i64 j = seen; j < unit.keys; ++j) row[j] = T(0);
      }
      over_pages(1, [&](i64 first, const Matrix& values) {
        gemm(computed, {reinterpret_cast<char*>(scores + first), unit.rows, values.rows, unit.keys, 1}, values,
             dense_rows(sums, unit.rows, p.depth), {1, first == 0 ? 0.0 : 1.0});
      });
      E* const y = static_cast<E*>(p.y.data) + unit.begin;
      for (i64 r = 0; r < unit.rows; ++r)
        for (i64 c = 0; c < p.depth; ++c) put(sums[r * p.depth + c], y[r * unit.step + c]);
    }
  });
}

// Of the symbol that comes next: a page is read once, head after head, while it is in the cache.
template <class E, class T>
void attend_one(KernelContext& context, const Problem& p) {
  const i64 group = p.heads / p.shared, length = p.a.length;
  const i64 parts = smaller(static_cast<i64>(thread_count()), p.shared), most = (p.shared + parts - 1) / parts * group;
  const i64 bytes = (most * (length + 2 * p.depth) + p.room * p.depth) * static_cast<i64>(sizeof(T));
  over_units(context, p.shared, bytes, [&](char* scratch, i64 begin, i64 end) {
    const i64 rows = (end - begin) * group;
    T* const scores = reinterpret_cast<T*>(scratch);
    T* const sums = scores + most * length;
    T* const wide_rows = sums + most * p.depth;
    T* const wide_page = wide_rows + most * p.depth;
    const Matrix q =
        matrix_of(static_cast<const E*>(p.q.data) + begin * group * p.depth, rows, p.depth, p.depth, wide_rows);
    const auto each = [&](i64 which, const auto& body) {
      for (i64 first = 0, page = 1; first < length; first += p.room, ++page) {
        const E* const data =
            static_cast<const E*>(at(p.inputs, static_cast<int>(page)).data) + which * p.room * p.shared * p.depth;
        for (i64 head = begin; head < end; ++head) {
          const Matrix m =
              matrix_of(data + head * p.depth, smaller(p.room, length - first), p.depth, p.shared * p.depth, wide_page);
          body(first, (head - begin) * group, Rows<T>{reinterpret_cast<const T*>(m.data), m.rows, m.row_stride});
        }
      }
    };
    each(0, [&](i64 first, i64 row, const Rows<T>& keys) {
      const Rows<T> queries{reinterpret_cast<const T*>(q.data) + row * p.depth, group, p.depth};
      few_scores(queries, keys, p.depth, static_cast<T>(p.a.scale), scores + row * length + first, length);
    });
    for (i64 r = 0; r < rows; ++r) softmax_row(scores + r * length, length);
    std::memset(sums, 0, static_cast<std::size_t>(rows * p.depth) * sizeof(T));
    each(1, [&](i64 first, i64 row, const Rows<T>& values) {
      add_few_values(scores + row * length + first, length, group, values, p.depth, sums + row * p.depth);
    });
    E* const y = static_cast<E*>(p.y.data) + begin * group * p.depth;
    for (i64 i = 0; i < rows * p.depth; ++i) put(sums[i], y[i]);
  });
}

template <class E, class T>
void either(KernelContext& context, const Problem& p, Dtype computed) {
  if (p.is_one() && p.heads / p.shared <= kFewRows) return attend_one<E, T>(context, p);
  attend<E, T>(context, p, computed);
}

void kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Problem p(outputs, inputs, attributes);
  switch (p.q.dtype) {
    case Dtype::kFloat32:
      return either<float, float>(context, p, Dtype::kFloat32);
    case Dtype::kFloat64:
      return either<double, double>(context, p, Dtype::kFloat64);
    case Dtype::kFloat16:
      return either<F16, float>(context, p, Dtype::kFloat32);
    case Dtype::kBFloat16:
      return either<BF16, float>(context, p, Dtype::kFloat32);
    default:
      refuse_dtype("paged_attention", p.q.dtype);
  }
}

}  // namespace

void add_paged_attention(const KernelSink& sink) { sink.add(sink.host, "paged_attention", &kernel); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL
