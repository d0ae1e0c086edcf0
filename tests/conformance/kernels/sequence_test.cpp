// Recurrent cells and attention against loops in double.
#include <tenon/kernel/attributes/attention.h>
#include <tenon/kernel/attributes/random.h>
#include <tenon/kernel/attributes/recurrent.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness.h"
#include "target.h"

namespace tenon::conformance {
namespace {

constexpr Dtype kPrecise[] = {Dtype::kFloat32, Dtype::kFloat64};
double tolerance_of(Dtype dtype) { return 32 * epsilon_of(dtype); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void for_each_case(const test::FunctionRef<void(Bench&, Dtype, i64 rows, i64 width)>& test) {
  for_each_bench([&](Bench& bench) {
    for (const Dtype dtype : kPrecise) {
      for (const auto& [rows, width] : {std::pair<i64, i64>{1, 1}, {3, 7}, {5, 64}, {130, 33}})
        test(bench, dtype, rows, width);
    }
  });
}

TEST(RecurrentCell, Lstm) {
  for_each_case([](Bench& bench, Dtype dtype, i64 rows, i64 n) {
    Random random(31);
    const Tensor sums = random_tensor(dtype, {rows, 4 * n}, Layout::kContiguous, random);
    const Tensor before = random_tensor(dtype, {rows, n}, Layout::kContiguous, random);
    const Tensor dh = random_tensor(dtype, {rows, n}, Layout::kContiguous, random);
    const Tensor dc = random_tensor(dtype, {rows, n}, Layout::kContiguous, random);
    Tensor gates(dtype, {rows, 4 * n}), c(dtype, {rows, n}), h(dtype, {rows, n});
    Tensor dsums(dtype, {rows, 4 * n}), dbefore(dtype, {rows, n});
    bench.run("lstm_cell", {gates, c, h}, {sums, before});
    bench.run("lstm_cell_backward", {dsums, dbefore}, {gates, before, c, dh, dc});
    const auto gate = [&](i64 i, int which) {
      const double x = sums.real(i / n * 4 * n + which * n + i % n);
      return which == 2 ? std::tanh(x) : sigmoid(x);
    };
    const auto cell = [&](i64 i) { return gate(i, 1) * before.real(i) + gate(i, 0) * gate(i, 2); };
    const double e = tolerance_of(dtype);
    expect_near(c, cell, e, "c", e);
    expect_near(
        h, [&](i64 i) { return gate(i, 3) * std::tanh(cell(i)); }, e, "h", e);
    const auto dcell = [&](i64 i) {
      const double t = std::tanh(cell(i));
      return dc.real(i) + dh.real(i) * gate(i, 3) * (1 - t * t);
    };
    expect_near(
        dbefore, [&](i64 i) { return dcell(i) * gate(i, 1); }, e, "dc", e);
    expect_near(
        dsums,
        [&](i64 at) {
          const i64 i = at / (4 * n) * n + at % n;
          switch (at / n % 4) {
            case 0:
              return dcell(i) * gate(i, 2) * gate(i, 0) * (1 - gate(i, 0));
            case 1:
              return dcell(i) * before.real(i) * gate(i, 1) * (1 - gate(i, 1));
            case 2:
              return dcell(i) * gate(i, 0) * (1 - gate(i, 2) * gate(i, 2));
            default:
              return dh.real(i) * std::tanh(cell(i)) * gate(i, 3) * (1 - gate(i, 3));
          }
        },
        e, "dsums", e);
  });
}

TEST(RecurrentCell, Gru) {
  for_each_case([](Bench& bench, Dtype dtype, i64 rows, i64 n) {
    Random random(32);
    const Tensor x = random_tensor(dtype, {rows, 3 * n}, Layout::kContiguous, random);
    const Tensor u = random_tensor(dtype, {rows, 3 * n}, Layout::kContiguous, random);
    const Tensor before = random_tensor(dtype, {rows, n}, Layout::kContiguous, random);
    const Tensor dh = random_tensor(dtype, {rows, n}, Layout::kContiguous, random);
    Tensor saved(dtype, {rows, 4 * n}), h(dtype, {rows, n});
    Tensor dx(dtype, {rows, 3 * n}), du(dtype, {rows, 3 * n}), dbefore(dtype, {rows, n});
    bench.run("gru_cell", {saved, h}, {x, u, before});
    bench.run("gru_cell_backward", {dx, du, dbefore}, {saved, before, dh});
    const auto part = [&](const Tensor& t, i64 i, int which) { return t.real(i / n * 3 * n + which * n + i % n); };
    const auto reset = [&](i64 i) { return sigmoid(part(x, i, 0) + part(u, i, 0)); };
    const auto update = [&](i64 i) { return sigmoid(part(x, i, 1) + part(u, i, 1)); };
    const auto fresh = [&](i64 i) { return std::tanh(part(x, i, 2) + reset(i) * part(u, i, 2)); };
    const double e = tolerance_of(dtype);
    expect_near(
        h, [&](i64 i) { return (1 - update(i)) * fresh(i) + update(i) * before.real(i); }, e, "h", e);
    expect_near(
        dbefore, [&](i64 i) { return dh.real(i) * update(i); }, e, "dh", e);
    const auto slope = [&](i64 at, bool of_state) {
      const i64 i = at / (3 * n) * n + at % n;
      const double dfresh = dh.real(i) * (1 - update(i)) * (1 - fresh(i) * fresh(i));
      switch (at / n % 3) {
        case 0:
          return dfresh * part(u, i, 2) * reset(i) * (1 - reset(i));
        case 1:
          return dh.real(i) * (before.real(i) - fresh(i)) * update(i) * (1 - update(i));
        default:
          return of_state ? dfresh * reset(i) : dfresh;
      }
    };
    expect_near(
        dx, [&](i64 at) { return slope(at, false); }, e, "dx", e);
    expect_near(
        du, [&](i64 at) { return slope(at, true); }, e, "du", e);
  });
}

TEST(RecurrentCell, Rnn) {
  for_each_case([](Bench& bench, Dtype dtype, i64 rows, i64 n) {
    Random random(33);
    const Tensor x = random_tensor(dtype, {rows, n}, Layout::kContiguous, random);
    const Tensor dh = random_tensor(dtype, {rows, n}, Layout::kContiguous, random);
    for (const bool relu : {false, true}) {
      const RecurrentAttributes attributes{.relu = relu};
      Tensor h(dtype, {rows, n}), dx(dtype, {rows, n});
      bench.run("rnn_cell", {h}, {x}, &attributes);
      bench.run("rnn_cell_backward", {dx}, {h, dh}, &attributes);
      const auto value = [&](i64 i) { return relu ? std::max(0.0, x.real(i)) : std::tanh(x.real(i)); };
      const double e = tolerance_of(dtype);
      expect_near(h, value, e, "h", e);
      expect_near(
          dx,
          [&](i64 i) {
            const double y = value(i);
            return dh.real(i) * (relu ? (y > 0 ? 1.0 : 0.0) : 1 - y * y);
          },
          e, "dx", e);
    }
  });
}

struct AttentionCase {
  i64 batch, heads, length, keys, width, value_width;
  bool causal;
  enum Mask { kNone, kAdded, kBoolean, kOfKeys, kBlindRow } mask;
  double dropout;
  i64 from = -1;    // heads are columns from here on of rows that all heads share; negative: each has its own rows
  double size = 0;  // queries and keys are of this size or its negative, every third key equal; 0: between -1 and 1
};

// All in double, with the weights written out.
struct AttentionReference {
  std::vector<double> y, lse, dq, dk, dv;

  AttentionReference(const AttentionCase& c, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& seen,
                     const Tensor& kept, const Tensor& dy, double scale) {
    const i64 lines = c.batch * c.heads * c.length;
    y.assign(static_cast<std::size_t>(lines * c.value_width), 0);
    lse.assign(static_cast<std::size_t>(lines), 0);
    dq.assign(static_cast<std::size_t>(q.count()), 0);
    dk.assign(static_cast<std::size_t>(k.count()), 0);
    dv.assign(static_cast<std::size_t>(v.count()), 0);
    std::vector<double> w(static_cast<std::size_t>(c.keys)), dw = w;
    for (i64 line = 0; line < lines; ++line) {
      const i64 head = line / c.length, i = line % c.length;
      const i64 keys = c.causal ? std::min(c.keys, i + 1) : c.keys;
      double most = -kInfinity, sum = 0;
      for (i64 j = 0; j < keys; ++j) {
        double s = 0;
        for (i64 d = 0; d < c.width; ++d) s += q.real(line * c.width + d) * k.real((head * c.keys + j) * c.width + d);
        s *= scale;
        if (seen.defined() && seen.dtype() != Dtype::kBool) s += seen.real(line * c.keys + j);
        if (seen.defined() && seen.dtype() == Dtype::kBool && seen.integer(line * c.keys + j) == 0) s = -kInfinity;
        w[at(j)] = s;
        most = std::max(most, s);
      }
      if (most == -kInfinity) {  // it sees nothing: all its weights are 0
        lse[at(line)] = kInfinity;
        continue;
      }
      for (i64 j = 0; j < keys; ++j) sum += w[at(j)] = std::exp(w[at(j)] - most);
      lse[at(line)] = most + std::log(sum);
      double shared = 0;
      for (i64 j = 0; j < keys; ++j) {
        const double factor = c.dropout > 0 ? kept.real(line * c.keys + j) : 1;
        w[at(j)] /= sum;
        dw[at(j)] = 0;
        for (i64 d = 0; d < c.value_width; ++d) {
          const double value = v.real((head * c.keys + j) * c.value_width + d),
                       slope = dy.real(line * c.value_width + d);
          y[at(line * c.value_width + d)] += w[at(j)] * factor * value;
          dv[at((head * c.keys + j) * c.value_width + d)] += w[at(j)] * factor * slope;
          dw[at(j)] += factor * value * slope;
        }
        shared += w[at(j)] * dw[at(j)];
      }
      for (i64 j = 0; j < keys; ++j) {
        const double ds = w[at(j)] * (dw[at(j)] - shared) * scale;
        for (i64 d = 0; d < c.width; ++d) {
          dq[at(line * c.width + d)] += ds * k.real((head * c.keys + j) * c.width + d);
          dk[at((head * c.keys + j) * c.width + d)] += ds * q.real(line * c.width + d);
        }
      }
    }
  }
  static std::size_t at(i64 i) { return static_cast<std::size_t>(i); }
};

Tensor attention_mask(const AttentionCase& c, Dtype dtype, Random& random) {
  const Sizes sizes{c.batch, c.heads, c.length, c.keys};
  if (c.mask == AttentionCase::kAdded)
    return random_tensor(dtype, {1, 1, c.length, c.keys}, Layout::kContiguous, random).expanded(sizes);
  if (c.mask == AttentionCase::kBlindRow) {
    const auto never = [&c](i64 i) { return i / c.keys == 2 ? -kInfinity : 0; };
    return Tensor(dtype, {1, 1, c.length, c.keys}).fill(never).expanded(sizes);
  }
  if (c.mask == AttentionCase::kNone) return {};
  Tensor mask(Dtype::kBool, c.mask == AttentionCase::kBoolean ? Sizes{1, 1, c.length, c.keys} : Sizes{1, 1, 1, c.keys});
  for (i64 i = 0; i < mask.count(); ++i) mask.set_integer(i, i % 3 != 1 || i % c.keys == 0);
  return mask.expanded(sizes);
}

/// Queries or keys whose scores are equal or far apart, and too large for a logarithm to be kept beside them.
Tensor large_operand(const AttentionCase& c, Dtype dtype, i64 rows, bool repeats) {
  return Tensor(dtype, {c.batch, c.heads, rows, c.width}).fill([&](i64 i) {
    const i64 row = i / c.width % rows, column = i % c.width;
    return ((repeats ? row % 3 : row) * 5 + column * 3) % 7 < 3 ? c.size : -c.size;
  });
}

/// (batch, heads, rows, columns), filled with numbers.
Tensor attention_operand(const AttentionCase& c, Dtype dtype, i64 rows, i64 columns, Random& random) {
  if (c.from < 0) return random_tensor(dtype, {c.batch, c.heads, rows, columns}, Layout::kContiguous, random, -1, 1);
  const i64 wide = (c.from + columns + 7) / 8 * 8;
  return random_tensor(dtype, {c.batch, rows, c.heads, wide}, Layout::kContiguous, random, -1, 1)
      .narrowed(3, c.from, columns)
      .transposed(1, 2);
}

void check_attention(Bench& bench, Dtype dtype, const AttentionCase& c) {
  const Dtype sums = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
  Random random(34);
  const auto make = [&](i64 rows, i64 columns) { return attention_operand(c, dtype, rows, columns, random); };
  const bool large = c.size > 0;
  const Tensor q = large ? large_operand(c, dtype, c.length, false) : make(c.length, c.width);
  const Tensor k = large ? large_operand(c, dtype, c.keys, true) : make(c.keys, c.width);
  const Tensor v = make(c.keys, c.value_width);
  const Tensor dy = make(c.length, c.value_width), seen = attention_mask(c, dtype, random);
  const AttentionAttributes a{.scale = 0.7, .causal = c.causal, .dropout = c.dropout, .seed = 5, .offset = 12};
  Tensor kept(Dtype::kFloat64, {c.batch * c.heads * c.length * c.keys});
  if (c.dropout > 0) {
    const RandomAttributes draw{.seed = a.seed, .offset = a.offset, .a = c.dropout};
    bench.run("bernoulli", {kept}, {Tensor()}, &draw);
    kept.fill([old = kept, &c](i64 i) { return old.real(i) != 0 ? 0 : 1 / (1 - c.dropout); });
  }
  Tensor y = make(c.length, c.value_width), lse(sums, {c.batch, c.heads, c.length});
  bench.run("attention", {y, lse}, {q, k, v, seen}, &a);
  Tensor dq = make(c.length, c.width), dk = make(c.keys, c.width), dv = make(c.keys, c.value_width);
  bench.run("attention_backward", {dq, dk, dv}, {dy, q, k, v, y, lse, seen}, &a);
  const AttentionReference want(c, q, k, v, seen, kept, dy, a.scale);
  // Of 16 bits the results are rounded, and the backward starts from a rounded y.
  const bool rounds = size_of(dtype) == 2;
  const auto expect = [&](const Tensor& got, const std::vector<double>& values, const char* what, double size = 1) {
    const double e = rounds && got.dtype() == dtype ? 8 * epsilon_of(dtype) : 8 * tolerance_of(got.dtype());
    expect_near(
        got, [&](i64 i) { return values[static_cast<std::size_t>(i)]; }, e, what, e * size);
  };
  SCOPED_TRACE(to_string(q.sizes()) + " on " + to_string(k.sizes()));
  expect(y, want.y, "y");
  expect(lse, want.lse, "lse");
  expect(dq, want.dq, "dq", large ? c.size : 1);
  expect(dk, want.dk, "dk", large ? c.size : 1);
  expect(dv, want.dv, "dv");
}

TEST(Attention, ForwardAndBackward) {
  using enum AttentionCase::Mask;
  const AttentionCase cases[] = {
      {1, 1, 1, 1, 1, 1, false, kNone, 0},      {2, 3, 5, 7, 4, 3, false, kNone, 0},
      {2, 2, 70, 70, 8, 8, true, kNone, 0},     {1, 2, 130, 40, 16, 16, true, kNone, 0},
      {1, 2, 40, 130, 16, 5, true, kNone, 0},   {2, 1, 9, 33, 8, 8, false, kAdded, 0},
      {2, 1, 67, 33, 8, 8, false, kBoolean, 0}, {2, 2, 66, 35, 8, 4, false, kNone, 0.3},
      {1, 2, 66, 66, 8, 8, true, kNone, 0.5},   {2, 1, 9, 12, 4, 5, true, kNone, 0},
      {1, 2, 5, 9, 8, 8, false, kBlindRow, 0},  {2, 2, 9, 6, 8, 5, true, kOfKeys, 0, 3},
  };
  for_each_bench([&](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      for (const AttentionCase& c : cases) {
        if (target().slow && size_of(dtype) == 2 && c.length * c.keys > 3000) continue;
        check_attention(bench, dtype, c);
      }
    }
  });
}

// Where tensor cores compute it: widths and lengths around those of their tiles, and beyond them.
TEST(Attention, OfSixteenBits) {
  using enum AttentionCase::Mask;
  const AttentionCase cases[] = {
      {1, 1, 64, 64, 64, 64, false, kNone, 0},      {1, 2, 70, 70, 64, 64, true, kNone, 0, 0},
      {1, 1, 150, 66, 40, 40, true, kNone, 0},      {1, 1, 66, 130, 64, 64, true, kNone, 0},
      {1, 1, 33, 65, 128, 128, false, kNone, 0},    {1, 1, 70, 72, 80, 80, true, kNone, 0, 8},
      {1, 2, 20, 66, 128, 24, false, kNone, 0},     {1, 1, 40, 72, 24, 24, false, kAdded, 0.2},
      {2, 1, 72, 40, 64, 64, true, kBoolean, 0, 1}, {1, 1, 17, 70, 120, 128, false, kOfKeys, 0.3},
      {1, 1, 9, 65, 96, 104, true, kBlindRow, 0.1}, {1, 1, 9, 12, 136, 16, false, kNone, 0},
  };
  for_each_bench([&](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
      for (const AttentionCase& c : cases) check_attention(bench, dtype, c);
    }
  });
}

TEST(Attention, EqualKeysShareTheSlopeBesideLargeScores) {
  using enum AttentionCase::Mask;
  const AttentionCase cases[] = {
      {1, 1, 3, 5, 4, 4, false, kNone, 0, -1, 32768},       {1, 2, 35, 40, 8, 8, true, kNone, 0, -1, 32768},
      {1, 1, 33, 36, 8, 4, false, kNone, 0.3, -1, 32768},   {1, 1, 9, 70, 8, 8, false, kBoolean, 0, -1, 32768},
      {1, 1, 20, 34, 136, 8, false, kOfKeys, 0, -1, 32768}, {1, 1, 40, 66, 64, 64, true, kNone, 0, -1, 32768},
      {1, 1, 5, 9, 8, 8, false, kBlindRow, 0, -1, 32768},
  };
  for_each_bench([&](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      for (const AttentionCase& c : cases) check_attention(bench, dtype, c);
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
