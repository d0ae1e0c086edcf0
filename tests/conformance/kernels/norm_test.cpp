// Statistics, normalisations and their backwards against loops in double.
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <cmath>

#include "harness.h"

namespace tenon::conformance {
namespace {

struct Moments {
  double mean = 0, squares = 0;
};
Moments moments(const std::vector<double>& v) {
  Moments m;
  for (const double x : v) m.mean += x;
  m.mean /= static_cast<double>(v.size());
  for (const double x : v) m.squares += (x - m.mean) * (x - m.mean);
  return m;
}

TEST(Statistics, VarianceDeviationAndMean) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      for (const int dim : {0, 1}) {
        for (const double correction : {0.0, 1.0}) {
          Random random(103);
          const Tensor x = random_tensor(dtype, {37, 613}, Layout::kTransposed, random, 4, 6);
          const Sizes out = dim == 0 ? Sizes{1, 613} : Sizes{37, 1};
          Tensor variance(dtype, out), deviation(dtype, out), again(dtype, out), mean(dtype, out);
          VarAttributes attributes{.correction = correction};
          bench.run("var", {variance}, {x}, &attributes);
          bench.run("std", {deviation}, {x}, &attributes);
          bench.run("var_mean", {again, mean}, {x}, &attributes);
          for (i64 i = 0; i < variance.count(); ++i) {
            std::vector<double> values;
            for (i64 k = 0; k < (dim == 0 ? 37 : 613); ++k)
              values.push_back(x.real(dim == 0 ? k * 613 + i : i * 613 + k));
            const Moments m = moments(values);
            const double want = m.squares / (static_cast<double>(values.size()) - correction);
            const double e = (dtype == Dtype::kFloat64 ? 64 : 4) * epsilon_of(dtype);
            ASSERT_NEAR(variance.real(i), want, e * want);
            ASSERT_EQ(again.real(i), variance.real(i));
            ASSERT_NEAR(deviation.real(i), std::sqrt(want), e * std::sqrt(want));
            ASSERT_NEAR(mean.real(i), m.mean, e * m.mean);
          }
        }
      }
    }
  });
}

// Rows with a weight per element: what layer_norm, group_norm and batch_norm have in common.
struct NormCase {
  i64 rows, n;
  std::vector<std::vector<i64>> elements;  // of each row, as flat indices
  std::vector<i64> affine;                 // which weight each flat index uses
};

struct NormReference {
  std::vector<double> y, dx, dweight, dbias;
};

NormReference reference(const NormCase& c, const Tensor& x, const Tensor& dy, const Tensor& w, const Tensor& b,
                        double eps, bool constants = false, const Tensor& mean = {}, const Tensor& variance = {}) {
  const auto count = static_cast<std::size_t>(x.count());
  const auto channels = static_cast<std::size_t>(w.count());
  NormReference r{std::vector<double>(count), std::vector<double>(count), std::vector<double>(channels),
                  std::vector<double>(channels)};
  for (std::size_t row = 0; row < c.elements.size(); ++row) {
    std::vector<double> values;
    for (const i64 i : c.elements[row]) values.push_back(x.real(i));
    Moments m = moments(values);
    const double n = static_cast<double>(values.size());
    double var = m.squares / n;
    if (constants) m.mean = mean.real(static_cast<i64>(row)), var = variance.real(static_cast<i64>(row));
    const double s = 1 / std::sqrt(var + eps);
    double total = 0, dot = 0;
    for (const i64 i : c.elements[row]) {
      const auto at = static_cast<std::size_t>(i);
      const auto a = static_cast<std::size_t>(c.affine[at]);
      const double hat = (x.real(i) - m.mean) * s, g = dy.real(i) * w.real(c.affine[at]);
      r.y[at] = hat * w.real(c.affine[at]) + b.real(c.affine[at]);
      r.dweight[a] += dy.real(i) * hat;
      r.dbias[a] += dy.real(i);
      total += g;
      dot += g * hat;
    }
    if (constants) total = dot = 0;
    for (const i64 i : c.elements[row]) {
      const auto at = static_cast<std::size_t>(i);
      const double hat = (x.real(i) - m.mean) * s, g = dy.real(i) * w.real(c.affine[at]);
      r.dx[at] = s * (g - total / n - hat * dot / n);
    }
  }
  return r;
}

void expect_all(const Tensor& got, const std::vector<double>& want, double unit, const char* what) {
  for (i64 i = 0; i < got.count(); ++i) {
    const double expected = want[static_cast<std::size_t>(i)];
    ASSERT_NEAR(got.real(i), expected, unit * (1 + std::fabs(expected))) << what << " element " << i;
  }
}

void expect_reference(const NormReference& want, const Tensor& y, const Tensor& dx, const Tensor& dweight,
                      const Tensor& dbias) {
  const double unit = epsilon_of(y.dtype()) * (y.dtype() == Dtype::kFloat64 ? 1024 : 64);
  expect_all(y, want.y, unit, "y");
  expect_all(dx, want.dx, unit, "dx");
  expect_all(dweight, want.dweight, unit, "dweight");
  expect_all(dbias, want.dbias, unit, "dbias");
}

/// Of a tensor and of its parameters, which are in float32 beside 16 bits, or in the tensor's own.
struct NormDtypes {
  Dtype tensor, parameters;
};
std::vector<NormDtypes> norm_dtypes() {
  std::vector<NormDtypes> all{{Dtype::kFloat16, Dtype::kFloat32}, {Dtype::kBFloat16, Dtype::kFloat32}};
  for (const Dtype dtype : kFloats) all.push_back({dtype, dtype});
  return all;
}

TEST(Normalization, LayerNorm) {
  for_each_bench([](Bench& bench) {
    for (const auto& [dtype, parameters] : norm_dtypes()) {
      for (const auto& [rows, n] : {std::pair<i64, i64>{150, 67}, {3, 1024}, {200, 5}}) {
        Random random(107);
        NormCase c{rows, n, {}, {}};
        for (i64 r = 0; r < rows; ++r) {
          c.elements.emplace_back();
          for (i64 i = 0; i < n; ++i) c.elements.back().push_back(r * n + i), c.affine.push_back(i);
        }
        const Tensor x = random_tensor(dtype, {rows, n}, Layout::kContiguous, random, 1, 3);
        const Tensor dy = random_tensor(dtype, {rows, n}, Layout::kContiguous, random, -1, 1);
        const Tensor w = random_tensor(parameters, {n}, Layout::kContiguous, random, 0.5, 1.5);
        const Tensor b = random_tensor(parameters, {n}, Layout::kContiguous, random, -1, 1);
        const Dtype wide = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
        Tensor y(dtype, {rows, n}), mean(wide, {rows}), rstd(wide, {rows}), dx(dtype, {rows, n}), dw(parameters, {n}),
            db(parameters, {n});
        LayerNormAttributes attributes{.normalized = n, .eps = 1e-5};
        bench.run("layer_norm", {y, mean, rstd}, {x, w, b}, &attributes);
        bench.run("layer_norm_backward", {dx, dw, db}, {dy, x, mean, rstd, w}, &attributes);
        expect_reference(reference(c, x, dy, w, b, 1e-5), y, dx, dw, db);
        Tensor alone(dtype, {rows, n});
        bench.run("layer_norm_backward", {alone, Tensor(), Tensor()}, {dy, x, mean, rstd, w}, &attributes);
        expect_near(
            alone, [&](i64 i) { return dx.real(i); }, 0, "dx alone");
      }
    }
  });
}

TEST(Normalization, GroupNorm) {
  for_each_bench([](Bench& bench) {
    for (const auto& [dtype, parameters] : norm_dtypes()) {
      Random random(109);
      const i64 batch = 3, channels = 6, groups = 2, inner = 35;
      NormCase c{};
      c.affine.resize(static_cast<std::size_t>(batch * channels * inner));
      for (i64 r = 0; r < batch * groups; ++r) {
        c.elements.emplace_back();
        for (i64 i = 0; i < channels / groups * inner; ++i) {
          const i64 at = r * channels / groups * inner + i;
          c.elements.back().push_back(at);
          c.affine[static_cast<std::size_t>(at)] = at / inner % channels;
        }
      }
      const Tensor x = random_tensor(dtype, {batch, channels, 5, 7}, Layout::kContiguous, random, 1, 3);
      const Tensor dy = random_tensor(dtype, {batch, channels, 5, 7}, Layout::kContiguous, random, -1, 1);
      const Tensor w = random_tensor(parameters, {channels}, Layout::kContiguous, random, 0.5, 1.5);
      const Tensor b = random_tensor(parameters, {channels}, Layout::kContiguous, random, -1, 1);
      const Dtype wide = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
      Tensor y(dtype, x.sizes()), mean(wide, {batch, groups}), rstd(wide, {batch, groups}), dx(dtype, x.sizes()),
          dw(parameters, {channels}), db(parameters, {channels});
      GroupNormAttributes attributes{.groups = groups, .eps = 1e-5};
      bench.run("group_norm", {y, mean, rstd}, {x, w, b}, &attributes);
      bench.run("group_norm_backward", {dx, dw, db}, {dy, x, mean, rstd, w}, &attributes);
      expect_reference(reference(c, x, dy, w, b, 1e-5), y, dx, dw, db);
    }
  });
}

TEST(Normalization, BatchNormTrainsAndEvaluates) {
  for_each_bench([](Bench& bench) {
    for (const auto& [dtype, parameters] : norm_dtypes()) {
      if (parameters != Dtype::kFloat32 && parameters != Dtype::kFloat64) continue;  // running statistics are wide
      for (const Sizes& sizes : {Sizes{9, 5}, Sizes{4, 5, 6, 7}, Sizes{2, 3, 11}}) {
        for (const bool training : {true, false}) {
          Random random(113);
          const i64 channels = sizes[1];
          i64 inner = 1;
          for (std::size_t d = 2; d < sizes.size(); ++d) inner *= sizes[d];
          const i64 count = sizes[0] * inner;
          NormCase c{};
          c.affine.resize(static_cast<std::size_t>(sizes[0] * channels * inner));
          c.elements.resize(static_cast<std::size_t>(channels));
          for (i64 i = 0; i < sizes[0] * channels * inner; ++i) {
            c.affine[static_cast<std::size_t>(i)] = i / inner % channels;
            c.elements[static_cast<std::size_t>(i / inner % channels)].push_back(i);
          }
          const Tensor x = random_tensor(dtype, sizes, Layout::kContiguous, random, 1, 3);
          const Tensor dy = random_tensor(dtype, sizes, Layout::kContiguous, random, -1, 1);
          const Tensor w = random_tensor(parameters, {channels}, Layout::kContiguous, random, 0.5, 1.5);
          const Tensor b = random_tensor(parameters, {channels}, Layout::kContiguous, random, -1, 1);
          Tensor running_mean = random_tensor(parameters, {channels}, Layout::kContiguous, random, 1, 3);
          Tensor running_var = random_tensor(parameters, {channels}, Layout::kContiguous, random, 0.5, 1);
          Tensor before_mean(parameters, {channels}), before_var(parameters, {channels});
          before_mean.fill([&](i64 i) { return running_mean.real(i); });
          before_var.fill([&](i64 i) { return running_var.real(i); });
          Tensor y(dtype, sizes), mean(parameters, {channels}), rstd(parameters, {channels}), dx(dtype, sizes),
              dw(parameters, {channels}), db(parameters, {channels});
          BatchNormAttributes attributes{.training = training, .momentum = 0.25, .eps = 1e-5};
          bench.run("batch_norm",
                    {y, mean, rstd, training ? running_mean : Tensor(), training ? running_var : Tensor()},
                    {x, w, b, running_mean, running_var}, &attributes);
          bench.run("batch_norm_backward", {dx, dw, db}, {dy, x, mean, rstd, w}, &attributes);
          expect_reference(reference(c, x, dy, w, b, 1e-5, !training, before_mean, before_var), y, dx, dw, db);
          for (i64 k = 0; k < channels; ++k) {
            std::vector<double> values;
            for (const i64 i : c.elements[static_cast<std::size_t>(k)]) values.push_back(x.real(i));
            const Moments m = moments(values);
            const double keep = training ? 0.75 : 1, take = training ? 0.25 : 0;
            ASSERT_NEAR(running_mean.real(k), keep * before_mean.real(k) + take * m.mean, 1e-5);
            ASSERT_NEAR(running_var.real(k),
                        keep * before_var.real(k) + take * m.squares / static_cast<double>(count - 1), 1e-5);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
