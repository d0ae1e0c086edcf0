// Normalisations, softmax and losses of drawn operands beside loops: of every layout, with and without each parameter,
// and with only some of the gradients wanted.
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using DrawnLayers = CpuCase;

double& element(Doubles& of, i64 index) { return of[static_cast<std::size_t>(index)]; }

/// What layer, group and batch normalisations have in common: groups of elements, and a parameter for each element.
struct Normal {
  Sizes sizes;
  i64 groups = 1, channels = 1;
  std::function<i64(i64)> group_of, channel_of;

  i64 count() const { return product_of_sizes(sizes); }
  i64 size() const { return count() / groups; }
  Doubles sums(const test::FunctionRef<double(i64)>& value) const {
    Doubles all(static_cast<std::size_t>(groups));
    for (i64 i = 0; i < count(); ++i) element(all, group_of(i)) += value(i);
    return all;
  }
};

struct NormalOperands {
  Tensor x, dy, weight, bias, y, mean, rstd, dx, dweight, dbias;

  NormalOperands(Draw& draw, const Normal& n) {
    constexpr Dtype kTypes[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16};
    const Dtype dtype = draw.any_of(kTypes);
    const Dtype sums = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
    const Dtype parameters = draw.one_in(3) ? dtype : sums;
    x = draw.operand(dtype, n.sizes, -8, 8), dy = draw.operand(dtype, n.sizes);
    if (!draw.one_in(3)) weight = draw.operand(parameters, {n.channels});
    if (!draw.one_in(3)) bias = draw.operand(parameters, {n.channels});
    y = draw.room(dtype, n.sizes), dx = draw.room(dtype, n.sizes);
    mean = draw.room(sums, {n.groups}), rstd = draw.room(sums, {n.groups});
    dweight = draw.room(parameters, {n.channels}), dbias = draw.room(parameters, {n.channels});
  }
  double scale(i64 channel) const { return weight.defined() ? weight.real(channel) : 1; }
  double shift(i64 channel) const { return bias.defined() ? bias.real(channel) : 0; }
};

constexpr double kEps = 0.25;

/// `given`: statistics that are not those of x.
void expect_normal(const Normal& n, const NormalOperands& o, bool has_dx, bool has_dweight, bool has_dbias,
                   const Doubles* given_mean = nullptr, const Doubles* given_variance = nullptr) {
  const auto size = static_cast<double>(n.size());
  Doubles mean = n.sums([&](i64 i) { return o.x.real(i); });
  for (double& one : mean) one /= size;
  Doubles variance = n.sums([&](i64 i) { return std::pow(o.x.real(i) - element(mean, n.group_of(i)), 2); });
  for (double& one : variance) one /= size;
  if (given_mean != nullptr) mean = *given_mean, variance = *given_variance;
  const auto inverse = [&](i64 group) { return 1 / std::sqrt(element(variance, group) + kEps); };
  const auto hat = [&](i64 i) { return (o.x.real(i) - element(mean, n.group_of(i))) * inverse(n.group_of(i)); };
  const auto slope = [&](i64 i) { return o.dy.real(i) * o.scale(n.channel_of(i)); };
  Doubles total = n.sums(slope), dot = n.sums([&](i64 i) { return slope(i) * hat(i); });
  if (given_mean != nullptr) total = dot = Doubles(total.size());
  Doubles dweight(static_cast<std::size_t>(n.channels)), dbias = dweight;
  for (i64 i = 0; i < n.count(); ++i) {
    element(dweight, n.channel_of(i)) += o.dy.real(i) * hat(i);
    element(dbias, n.channel_of(i)) += o.dy.real(i);
  }
  const double unit = epsilon_of(o.x.dtype()) * (o.x.dtype() == Dtype::kFloat64 ? 1024 : 64);
  const auto expect = [&](const Tensor& got, const char* what, const test::FunctionRef<double(i64)>& wanted) {
    for (i64 i = 0; i < got.count(); ++i)
      ASSERT_NEAR(got.real(i), wanted(i), unit * (1 + std::fabs(wanted(i))))
          << what << " of " << to_string(n.sizes) << " " << name_of(o.x.dtype()) << " at " << i;
  };
  expect(o.mean, "mean", [&](i64 g) { return element(mean, g); });
  expect(o.rstd, "rstd", inverse);
  expect(o.y, "y", [&](i64 i) { return hat(i) * o.scale(n.channel_of(i)) + o.shift(n.channel_of(i)); });
  if (has_dx)
    expect(o.dx, "dx", [&](i64 i) {
      const i64 g = n.group_of(i);
      return inverse(g) * (slope(i) - element(total, g) / size - hat(i) * element(dot, g) / size);
    });
  if (has_dweight) expect(o.dweight, "dweight", [&](i64 c) { return element(dweight, c); });
  if (has_dbias) expect(o.dbias, "dbias", [&](i64 c) { return element(dbias, c); });
}

void check_rows(Bench& bench, Draw& draw, const Normal& n, const std::string& kernel, const void* attributes) {
  const NormalOperands o(draw, n);
  const bool has_dx = !draw.one_in(4), has_dweight = !draw.one_in(4), has_dbias = !draw.one_in(4);
  const auto wanted = [](const Tensor& of, bool is) { return is ? of : Tensor(); };
  bench.run(kernel, {o.y, o.mean, o.rstd}, {o.x, o.weight, o.bias}, attributes);
  bench.run(kernel + "_backward", {wanted(o.dx, has_dx), wanted(o.dweight, has_dweight), wanted(o.dbias, has_dbias)},
            {o.dy, o.x, o.mean, o.rstd, o.weight}, attributes);
  expect_normal(n, o, has_dx, has_dweight, has_dbias);
}

constexpr i64 kRowWidths[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 129, 300};
constexpr i64 kRowCounts[] = {1, 2, 3, 5, 63, 64, 65, 130};

TEST_F(DrawnLayers, RowsAreNormalised) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const i64 rows = draw.any_of(kRowCounts), width = draw.any_of(kRowWidths);
    Normal n{.sizes = {rows, width}, .groups = rows, .channels = width};
    n.group_of = [=](i64 i) { return i / width; };
    n.channel_of = [=](i64 i) { return i % width; };
    const LayerNormAttributes a{.normalized = width, .eps = kEps};
    check_rows(bench, draw, n, "layer_norm", &a);
  });
}

TEST_F(DrawnLayers, GroupsOfChannelsAreNormalised) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const i64 batch = draw.number(1, 5), groups = draw.number(1, 4), each = draw.number(1, 4);
    Normal n{.sizes = {batch, groups * each}, .groups = batch * groups, .channels = groups * each};
    i64 inner = 1;
    for (i64 d = draw.number(0, 2); d > 0; --d) {
      n.sizes.push_back(draw.number(1, 14));
      inner *= n.sizes.back();
    }
    n.group_of = [=](i64 i) { return i / (each * inner); };
    n.channel_of = [=](i64 i) { return i / inner % (groups * each); };
    const GroupNormAttributes a{.groups = groups, .eps = kEps};
    check_rows(bench, draw, n, "group_norm", &a);
  });
}

TEST_F(DrawnLayers, ChannelsOfABatchAreNormalisedAndTracked) {
  for_draws(80, [](Bench& bench, Draw& draw) {
    const i64 batch = draw.number(1, 9), channels = draw.any_of(kRowCounts);
    Normal n{.sizes = {batch, channels}, .groups = channels, .channels = channels};
    i64 inner = 1;
    for (i64 d = draw.number(0, 2); d > 0; --d) {
      n.sizes.push_back(draw.number(1, 9));
      inner *= n.sizes.back();
    }
    if (batch * inner == 1) return;
    n.group_of = n.channel_of = [=](i64 i) { return i / inner % channels; };
    const NormalOperands o(draw, n);
    const BatchNormAttributes a{.training = !draw.one_in(3), .momentum = 0.25, .eps = kEps};
    const bool tracks = !a.training || draw.one_in(2);
    const Dtype sums = o.mean.dtype();
    const Tensor old_mean = draw.operand(sums, {channels}), old_variance = draw.operand(sums, {channels}, 1, 5),
                 new_mean(sums, {channels}), new_variance(sums, {channels});
    const auto tracked = [&](const Tensor& of) { return tracks ? of : Tensor(); };
    const bool is_written = tracks && a.training;
    bench.run("batch_norm",
              {o.y, o.mean, o.rstd, is_written ? new_mean : Tensor(), is_written ? new_variance : Tensor()},
              {o.x, o.weight, o.bias, tracked(old_mean), tracked(old_variance)}, &a);
    const bool has_dx = !draw.one_in(4), has_dweight = !draw.one_in(4), has_dbias = !draw.one_in(4);
    bench.run("batch_norm_backward",
              {has_dx ? o.dx : Tensor(), has_dweight ? o.dweight : Tensor(), has_dbias ? o.dbias : Tensor()},
              {o.dy, o.x, o.mean, o.rstd, o.weight}, &a);
    Doubles mean, variance;
    for (i64 c = 0; c < channels; ++c) {
      mean.push_back(old_mean.real(c));
      variance.push_back(old_variance.real(c));
    }
    expect_normal(n, o, has_dx, has_dweight, has_dbias, a.training ? nullptr : &mean, a.training ? nullptr : &variance);
    if (!is_written) return;
    const auto size = static_cast<double>(n.size());
    const Doubles total = n.sums([&](i64 i) { return o.x.real(i); });
    for (i64 c = 0; c < channels; ++c) {
      const double m = total[static_cast<std::size_t>(c)] / size;
      double squares = 0;
      for (i64 i = 0; i < n.count(); ++i)
        if (n.channel_of(i) == c) squares += (o.x.real(i) - m) * (o.x.real(i) - m);
      ASSERT_NEAR(new_mean.real(c), 0.75 * old_mean.real(c) + 0.25 * m, 1e-4) << c;
      ASSERT_NEAR(new_variance.real(c), 0.75 * old_variance.real(c) + 0.25 * squares / (size - 1), 1e-3) << c;
    }
  });
}

// That they follow their formulas is shown with rows behind each other.
TEST_F(DrawnLayers, RecurrentCellsTakeRowsThatLieApart) {
  struct Cell {
    const char* name;
    std::vector<i64> outputs, inputs;  // how many times as wide as the state
  };
  const Cell cells[] = {{"lstm_cell", {4, 1, 1}, {4, 1}}, {"lstm_cell_backward", {4, 1}, {4, 1, 1, 1, 1}},
                        {"gru_cell", {4, 1}, {3, 3, 1}},  {"gru_cell_backward", {3, 3, 1}, {4, 1, 1}},
                        {"rnn_cell", {1}, {1}},           {"rnn_cell_backward", {1}, {1, 1}}};
  for_draws(60, [&](Bench& bench, Draw& draw) {
    const Cell cell = draw.any_of(cells);
    const i64 rows = draw.any_of(kRowCounts), width = draw.any_of(kRowWidths);
    const Dtype dtype = draw.one_in(2) ? Dtype::kFloat32 : Dtype::kFloat64;
    const auto apart = [&](i64 times) {
      const i64 before = draw.number(0, 3), behind = draw.number(0, 3);
      return Tensor(dtype, {rows, before + times * width + behind}).narrowed(1, before, times * width);
    };
    std::vector<Tensor> outputs, inputs, plain_outputs, plain_inputs;
    for (const i64 times : cell.outputs) {
      outputs.push_back(apart(times));
      plain_outputs.emplace_back(dtype, Sizes{rows, times * width});
    }
    for (const i64 times : cell.inputs) {
      inputs.push_back(draw.fill(apart(times), -2, 2));
      plain_inputs.push_back(Tensor(dtype, {rows, times * width}).fill([&](i64 i) { return inputs.back().real(i); }));
    }
    bench.run(cell.name, outputs, inputs);
    bench.run(cell.name, plain_outputs, plain_inputs);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      for (i64 i = 0; i < outputs[k].count(); ++i)
        ASSERT_EQ(outputs[k].real(i), plain_outputs[k].real(i)) << cell.name << ", result " << k << " at " << i;
  });
}

TEST_F(DrawnLayers, LinesBecomeSharesAndTheirLogarithms) {
  for_draws(90, [](Bench& bench, Draw& draw) {
    Sizes sizes;
    do {
      sizes = draw.sizes(static_cast<int>(draw.number(1, 4)), draw.one_in(15) ? 40000 : 2500);
    } while (product_of_sizes(sizes) == 0);
    const DimAttributes a{.dim = static_cast<std::int32_t>(draw.number(0, static_cast<i64>(sizes.size()) - 1))};
    const auto dim = static_cast<std::size_t>(a.dim);
    i64 step = 1;
    for (std::size_t d = dim + 1; d < sizes.size(); ++d) step *= sizes[d];
    const i64 length = sizes[dim];
    constexpr Dtype kTypes[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16};
    const Dtype dtype = draw.any_of(kTypes);
    const Tensor x = draw.operand(dtype, sizes), dy = draw.operand(dtype, sizes), y = draw.room(dtype, sizes),
                 logarithm = draw.room(dtype, sizes), dx = draw.room(dtype, sizes), dlog = draw.room(dtype, sizes);
    bench.run("softmax", {y}, {x}, &a);
    bench.run("log_softmax", {logarithm}, {x}, &a);
    bench.run("softmax_backward", {dx}, {dy, y}, &a);
    bench.run("log_softmax_backward", {dlog}, {dy, logarithm}, &a);
    const double e = (dtype == Dtype::kFloat64 ? 1024 : 32) * epsilon_of(dtype);
    for (i64 first = 0; first < x.count(); ++first) {
      if (first / step % length != 0) continue;
      double sum = 0, total = 0, dot = 0;
      for (i64 k = 0; k < length; ++k) {
        const i64 i = first + k * step;
        sum += std::exp(x.real(i));
        total += dy.real(i);
        dot += dy.real(i) * y.real(i);
      }
      for (i64 k = 0; k < length; ++k) {
        const i64 i = first + k * step;
        const double share = std::exp(x.real(i)) / sum, size = 1 + std::fabs(total);
        ASSERT_NEAR(y.real(i), share, e * share + 1e-7) << i;
        ASSERT_NEAR(logarithm.real(i), std::log(share), e * (1 + std::fabs(std::log(share)))) << i;
        ASSERT_NEAR(dx.real(i), y.real(i) * (dy.real(i) - dot), e * (1 + std::fabs(dot))) << i;
        ASSERT_NEAR(dlog.real(i), dy.real(i) - std::exp(logarithm.real(i)) * total, e * 4 * size) << i;
      }
    }
  });
}

TEST_F(DrawnLayers, LossesOfClassesAreWeightedAndSomeIgnored) {
  for_draws(90, [](Bench& bench, Draw& draw) {
    const i64 batch = draw.number(1, 9), classes = draw.number(1, 7), inner = draw.one_in(2) ? 0 : draw.number(1, 60);
    const i64 places = inner == 0 ? 1 : inner;
    const Sizes sizes = inner == 0 ? Sizes{batch, classes} : Sizes{batch, classes, inner};
    const Sizes each = inner == 0 ? Sizes{batch} : Sizes{batch, inner};
    constexpr LossReduction kReductions[] = {LossReduction::kNone, LossReduction::kMean, LossReduction::kSum};
    const NllLossAttributes a{.reduction = draw.any_of(kReductions), .ignore_index = draw.number(-1, classes)};
    const bool is_each = a.reduction == LossReduction::kNone;
    const Dtype dtype = draw.one_in(2) ? Dtype::kFloat32 : Dtype::kFloat64;
    const Tensor x = draw.plain(dtype, sizes), target = draw.plain(Dtype::kInt64, each, 0, classes - 1);
    const Tensor weight = draw.one_in(2) ? draw.plain(dtype, {classes}, 1, 4) : Tensor();
    const Tensor loss(dtype, is_each ? each : Sizes{}), total(dtype, {}), dx(dtype, sizes);
    const Tensor dloss = draw.plain(dtype, loss.sizes(), 1, 3);
    bench.run("nll_loss", {loss, total}, {x, target, weight}, &a);
    bench.run("nll_loss_backward", {dx}, {dloss, target, weight, total}, &a);
    double sum = 0, weights = 0;
    Doubles slopes(static_cast<std::size_t>(x.count()));
    for (i64 i = 0; i < target.count(); ++i) {
      const i64 c = target.integer(i), at = (i / places * classes + c) * places + i % places;
      const bool is_ignored = c == a.ignore_index;
      const double scale = is_ignored ? 0 : weight.defined() ? weight.real(c) : 1;
      const double own = is_ignored ? 0 : -scale * x.real(at);
      ASSERT_NEAR(is_each ? loss.real(i) : own, own, 1e-6) << i;
      sum -= scale * x.real(at);
      weights += scale;
      element(slopes, at) = -scale * dloss.real(is_each ? i : 0);
    }
    const bool is_mean = a.reduction == LossReduction::kMean;
    if (is_mean && weights == 0) return;
    ASSERT_NEAR(total.real(0), weights, 1e-5);
    const double all = is_mean ? sum / weights : sum;
    ASSERT_NEAR(is_each ? all : loss.real(0), all, 1e-5 * (1 + std::fabs(sum)));
    for (i64 i = 0; i < dx.count(); ++i)
      ASSERT_NEAR(dx.real(i), element(slopes, i) / (is_mean ? weights : 1), 1e-6) << i;
  });
}

}  // namespace
}  // namespace tenon::conformance
