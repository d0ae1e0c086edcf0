// Attention on bfloat16 where the processor multiplies 16 bits: several heads in one call, scores summed in float32,
// weights and their gradients rounded to bfloat16 before the next product, as PyTorch's kernel does.
#include "kernels/linalg/bfloat16.h"
#include "kernels/nn/attention_problem.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

// What a thread works on at a time shall stay in the cache of a core.
constexpr i64 kGroupBytes = 1280 << 10;

// Some heads of an example as one operand of products: the first head's matrix, and the step to the next.
struct Operand {
  Matrix matrix;
  i64 step;
};
Operand turned(const Operand& o) { return {transposed(o.matrix), o.step}; }
Operand rows_of(const Heads<BF16>& x, i64 b, i64 h, i64 first, i64 count) {
  return {x.rows(b, h, first, count), x.head};
}
// Dense rows of each head in scratch.
template <class T>
Operand dense(T* data, i64 rows, i64 columns) {
  return {dense_rows(data, rows, columns), rows * columns};
}

HeadProducts product(i64 heads, const Operand& a, const Operand& b, const Operand& c, double beta = 0) {
  return {heads, a.matrix, a.step, b.matrix, b.step, c.matrix, c.step, beta};
}

// to = scale * from, rounded.
void round_all(BF16* to, const float* from, i64 n, float scale = 1) {
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) put(to[i], from[i] * scale);
}
// Rows of heads in scratch go to where they belong.
void round_rows(const Heads<BF16>& to, i64 b, i64 h, i64 heads, i64 first, i64 rows, const float* from, float scale) {
  for (i64 g = 0; g < heads; ++g) {
    for (i64 i = 0; i < rows; ++i) {
      round_all(to.at(b, h + g, first + i), from + (g * rows + i) * to.columns, to.columns, scale);
    }
  }
}

// Heads in groups: as many at once as kGroupBytes hold. A head of no queries and no keys takes none.
struct Groups {
  i64 heads, size;
  Groups(i64 all, i64 bytes_of_head)
      : heads(all), size(larger<i64>(1, smaller(all, kGroupBytes / larger<i64>(1, bytes_of_head)))) {}
  i64 count() const { return (heads + size - 1) / size; }
  i64 first(i64 group) const { return group * size; }
  i64 heads_of(i64 group) const { return smaller(size, heads - group * size); }
};

// The products of a block of queries, all but where scratch lies known beforehand.
struct Forward {
  HeadProducts scores, y;
};
Forward forward_of(const Problem& p, const Heads<BF16>& q, const Heads<BF16>& k, const Heads<BF16>& v, i64 b, i64 h,
                   i64 heads, i64 block, float* scores, BF16* weights, float* y) {
  const i64 n = p.rows_of(block), keys = p.seen_by_block(block);
  return {product(heads, rows_of(q, b, h, block * kQueryBlock, n), turned(rows_of(k, b, h, 0, keys)),
                  dense(scores, n, keys)),
          product(heads, dense(weights, n, keys), rows_of(v, b, h, 0, keys), dense(y, n, v.columns))};
}

struct Backward {
  HeadProducts scores, slopes, dv, dk, dq;
};
struct BackwardScratch {
  float *scores, *slopes, *dq, *dk, *dv;
  BF16 *weights, *rounded;
};
struct BackwardOperands {
  const Heads<BF16>&dy, &q, &k, &v;
};
Backward backward_of(const Problem& p, const BackwardOperands& o, i64 b, i64 h, i64 heads, i64 block,
                     const BackwardScratch& s) {
  const i64 first = block * kQueryBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
  const Operand q = rows_of(o.q, b, h, first, n), dy = rows_of(o.dy, b, h, first, n);
  const Operand k = rows_of(o.k, b, h, 0, keys), v = rows_of(o.v, b, h, 0, keys);
  const Operand weights = dense(s.weights, n, keys), slopes = dense(s.rounded, n, keys);
  const Operand dk{dense_rows(s.dk, keys, o.k.columns), p.keys * o.k.columns};
  const Operand dv{dense_rows(s.dv, keys, o.v.columns), p.keys * o.v.columns};
  return {product(heads, q, turned(k), dense(s.scores, n, keys)),
          product(heads, dy, turned(v), dense(s.slopes, n, keys)), product(heads, turned(weights), dy, dv, 1),
          product(heads, turned(slopes), q, dk, 1), product(heads, slopes, k, dense(s.dq, n, o.q.columns))};
}

// Whether `all_exist(heads, block)` for every size of group and every block.
template <class F>
bool for_all_products(const Problem& p, const Groups& groups, const F& all_exist) {
  const i64 last = groups.heads_of(groups.count() - 1);
  for (i64 block = 0; block < p.blocks(); ++block) {
    if (!all_exist(groups.size, block) || (last != groups.size && !all_exist(last, block))) return false;
  }
  return true;
}

bool are_bfloat16(std::initializer_list<const TensorView*> tensors) {
  for (const TensorView* tensor : tensors) {
    if (tensor->dtype != Dtype::kBFloat16) return false;
  }
  return has_bfloat16_products();
}

}  // namespace

bool attention_of_bfloat16(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (!are_bfloat16({&at(outputs, 0), &at(inputs, 0), &at(inputs, 1), &at(inputs, 2)})) return false;
  const Heads<BF16> y(at(outputs, 0)), q(at(inputs, 0)), k(at(inputs, 1)), v(at(inputs, 2));
  float* const lse = static_cast<float*>(at(outputs, 1).data);
  const Mask mask(at(inputs, 3));
  const Problem p = problem_of(at(inputs, 0), at(inputs, 1), attributes);
  const i64 most = p.rows_at_once(), area = most * p.keys;
  const i64 head_bytes = area * static_cast<i64>(sizeof(float) + sizeof(BF16)) + most * v.columns * i64{sizeof(float)};
  const Groups groups(p.heads, head_bytes);
  const bool all = for_all_products(p, groups, [&](i64 heads, i64 block) {
    const Forward f = forward_of(p, q, k, v, 0, 0, heads, block, nullptr, nullptr, nullptr);
    return has_product(f.scores) && has_product(f.y);
  });
  if (!all) return false;
  const i64 blocks = p.blocks();
  const auto scale = static_cast<float>(p.attributes.scale);
  over_units(context, p.batch * groups.count() * blocks, groups.size * head_bytes, [&](char* room, i64 begin, i64 end) {
    Scratch scratch{room};
    float* const scores = scratch.take<float>(groups.size * area);
    float* const sums = scratch.take<float>(groups.size * most * v.columns);
    BF16* const weights = scratch.take<BF16>(groups.size * area);
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 block = unit % blocks, group = unit / blocks % groups.count(), b = unit / blocks / groups.count();
      const i64 h = groups.first(group), heads = groups.heads_of(group);
      const i64 first = block * kQueryBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
      const Forward products = forward_of(p, q, k, v, b, h, heads, block, scores, weights, sums);
      multiply(products.scores);
      for (i64 r = 0; r < heads * n; ++r) {
        float* const row = scores + r * keys;
        const i64 head = h + r / n, i = first + r % n;
#pragma GCC ivdep
        for (i64 j = 0; j < keys; ++j) row[j] *= scale;
        lse[p.line(b, head, i)] = weigh(row, keys, p, mask, b, head, i);
        round_all(weights + r * keys, row, keys);
      }
      multiply(products.y);
      round_rows(y, b, h, heads, first, n, sums, 1);
    }
  });
  return true;
}

bool attention_backward_of_bfloat16(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (!are_bfloat16({&at(outputs, 0), &at(outputs, 1), &at(outputs, 2), &at(inputs, 0), &at(inputs, 1), &at(inputs, 2),
                     &at(inputs, 3), &at(inputs, 4)}))
    return false;
  const Heads<BF16> dq(at(outputs, 0)), dk(at(outputs, 1)), dv(at(outputs, 2));
  const Heads<BF16> dy(at(inputs, 0)), q(at(inputs, 1)), k(at(inputs, 2)), v(at(inputs, 3));
  const float* const lse = static_cast<const float*>(at(inputs, 5).data);
  const Mask mask(at(inputs, 6));
  const Problem p = problem_of(at(inputs, 1), at(inputs, 2), attributes);
  const BackwardOperands operands{dy, q, k, v};
  const i64 most = p.rows_at_once(), area = most * p.keys;
  const i64 floats = 2 * area + most * q.columns + p.keys * (k.columns + v.columns);
  const i64 head_bytes = floats * i64{sizeof(float)} + 2 * area * i64{sizeof(BF16)};
  const Groups groups(p.heads, head_bytes);
  const bool all = for_all_products(p, groups, [&](i64 heads, i64 block) {
    const Backward b = backward_of(p, operands, 0, 0, heads, block, {});
    return has_product(b.scores) && has_product(b.slopes) && has_product(b.dv) && has_product(b.dk) &&
           has_product(b.dq);
  });
  if (!all) return false;
  const auto scale = static_cast<float>(p.attributes.scale);
  over_units(context, p.batch * groups.count(), groups.size * head_bytes, [&](char* room, i64 begin, i64 end) {
    Scratch scratch{room};
    const i64 size = groups.size;
    BackwardScratch s{};
    s.scores = scratch.take<float>(size * area);
    s.slopes = scratch.take<float>(size * area);
    s.dq = scratch.take<float>(size * most * q.columns);
    s.dk = scratch.take<float>(size * p.keys * k.columns);
    s.dv = scratch.take<float>(size * p.keys * v.columns);
    s.weights = scratch.take<BF16>(size * area);
    s.rounded = scratch.take<BF16>(size * area);
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 group = unit % groups.count(), b = unit / groups.count();
      const i64 h = groups.first(group), heads = groups.heads_of(group);
      for (i64 i = 0; i < heads * p.keys * k.columns; ++i) s.dk[i] = 0;
      for (i64 i = 0; i < heads * p.keys * v.columns; ++i) s.dv[i] = 0;
      for (i64 block = 0; block < p.blocks(); ++block) {
        const i64 first = block * kQueryBlock, n = p.rows_of(block), keys = p.seen_by_block(block);
        const Backward products = backward_of(p, operands, b, h, heads, block, s);
        multiply(products.scores);
        multiply(products.slopes);
        for (i64 r = 0; r < heads * n; ++r) {
          float *const w = s.scores + r * keys, *const ds = s.slopes + r * keys;
          const i64 head = h + r / n, i = first + r % n;
#pragma GCC ivdep
          for (i64 j = 0; j < keys; ++j) w[j] *= scale;
          weigh_back(w, ds, keys, p, mask, b, head, i, lse[p.line(b, head, i)]);
          round_all(s.weights + r * keys, w, keys);
          round_all(s.rounded + r * keys, ds, keys);
        }
        multiply(products.dv);
        multiply(products.dk);
        multiply(products.dq);
        round_rows(dq, b, h, heads, first, n, s.dq, scale);
      }
      round_rows(dk, b, h, heads, 0, p.keys, s.dk, scale);
      round_rows(dv, b, h, heads, 0, p.keys, s.dv, 1);
    }
  });
  return true;
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
