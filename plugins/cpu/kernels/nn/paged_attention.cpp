// Attention to keys and values where they lie, page by page: nothing is copied together. Scores of a block of queries
// are in scratch, as in attention.cpp; a page of 16 bits becomes float32 there, one head at a time.
#include <tenon/kernel/attributes/paged_attention.h>

#include "kernels/linalg/gemm.h"
#include "kernels/nn/attention_rows.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kBlock = 64;  // rows of queries whose scores are held at once

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
  char* const room = static_cast<char*>(context.scratch(static_cast<std::size_t>(thread_count() * bytes)));
  over_units(room, p.units(), bytes, [&](char* scratch, i64 begin, i64 end) {
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

void kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Problem p(outputs, inputs, attributes);
  switch (p.q.dtype) {
    case Dtype::kFloat32:
      return attend<float, float>(context, p, Dtype::kFloat32);
    case Dtype::kFloat64:
      return attend<double, double>(context, p, Dtype::kFloat64);
    case Dtype::kFloat16:
      return attend<F16, float>(context, p, Dtype::kFloat32);
    case Dtype::kBFloat16:
      return attend<BF16, float>(context, p, Dtype::kFloat32);
    default:
      refuse_dtype("paged_attention", p.q.dtype);
  }
}

}  // namespace

void add_paged_attention(const KernelSink& sink) { sink.add(sink.host, "paged_attention", &kernel); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL
