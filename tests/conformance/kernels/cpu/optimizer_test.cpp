// Fused optimiser steps of whole lists beside their formulas in double, with every option.
#include <tenon/kernel/attributes/optimizer.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../harness.h"

namespace tenon::conformance {
namespace {

constexpr i64 kSizes[] = {1, 7, 33, 0};

/// One tensor of each size, one that is divided where `large`, and one of 5 elements that has no gradient.
std::vector<Tensor> tensors_of(Dtype dtype, std::uint64_t seed, double low, double high, bool large) {
  Random random(seed);
  std::vector<Tensor> all;
  for (const i64 size : kSizes) all.push_back(random_tensor(dtype, {size}, Layout::kContiguous, random, low, high));
  all.push_back(random_tensor(dtype, {large ? 17000 : 3}, Layout::kContiguous, random, low, high));
  all.push_back(random_tensor(dtype, {5}, Layout::kContiguous, random, low, high));
  return all;
}
std::vector<std::vector<double>> values_of(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> all;
  for (const Tensor& one : tensors) {
    all.emplace_back();
    for (i64 i = 0; i < one.count(); ++i) all.back().push_back(one.real(i));
  }
  return all;
}
void append(std::vector<Tensor>& to, const std::vector<Tensor>& more) { to.insert(to.end(), more.begin(), more.end()); }

/// `step(k, i)` gives what element i of tensor k becomes.
template <class F>
void expect_each(const std::vector<Tensor>& got, const char* what, const F& step) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double e = 16 * epsilon_of(got[k].dtype());
    expect_near(
        got[k], [&](i64 i) { return step(k, static_cast<std::size_t>(i)); }, e, what, e);
  }
}

TEST(OptimizerSteps, SgdIsItsFormulaWithEveryOption) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
      for (int options = 0; options < 16; ++options) {
        SgdAttributes a{.learning_rate = 0.25, .dampening = options & 1 ? 0.5 : 0.0};
        a.momentum = options & 2 ? 0.75 : 0;
        a.nesterov = options & 2 && (options & 4);
        a.first_step = options & 2 && !(options & 4) && (options & 1);
        a.maximize = options & 8;
        a.weight_decay = options & 4 ? 0.125 : 0;
        SCOPED_TRACE(::testing::Message() << name_of(dtype) << ", options " << options);
        const std::vector<Tensor> p = tensors_of(dtype, 3, -1, 1, options % 5 == 2),
                                  m = tensors_of(dtype, 5, -1, 1, options % 5 == 2);
        std::vector<Tensor> g = tensors_of(dtype, 7, -1, 1, options % 5 == 2);
        if (a.first_step) Tensor(m[1]).fill([](i64) { return std::nan(""); });
        const auto old = values_of(p), before = values_of(m), slope = values_of(g);
        const bool has_momentum = a.momentum != 0;
        std::vector<Tensor> states = p;
        append(states, has_momentum ? m : std::vector<Tensor>(m.size()));
        const std::size_t last = g.size() - 1;
        g[last] = Tensor();
        bench.run("sgd_step", states, g, &a);
        const auto direction = [&](std::size_t k, std::size_t i) {
          return (a.maximize ? -slope[k][i] : slope[k][i]) + a.weight_decay * old[k][i];
        };
        const auto buffer = [&](std::size_t k, std::size_t i) {
          if (k == last || !has_momentum) return before[k][i];
          return a.first_step ? direction(k, i) : a.momentum * before[k][i] + (1 - a.dampening) * direction(k, i);
        };
        expect_each(m, "buffer", buffer);
        expect_each(p, "parameter", [&](std::size_t k, std::size_t i) {
          if (k == last) return old[k][i];
          const double taken = !has_momentum ? direction(k, i)
                               : a.nesterov  ? direction(k, i) + a.momentum * buffer(k, i)
                                             : buffer(k, i);
          return old[k][i] - a.learning_rate * taken;
        });
      }
    }
  });
}

TEST(OptimizerSteps, AdamIsItsFormulaWithEveryOption) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
      for (int options = 0; options < 8; ++options) {
        const AdamAttributes a{.learning_rate = 0.125,
                               .beta1 = 0.75,
                               .beta2 = 0.875,
                               .eps = 0.01,
                               .weight_decay = options & 1 ? 0.5 : 0.0,
                               .decoupled = (options & 2) != 0,
                               .amsgrad = (options & 4) != 0,
                               .step = options + 1};
        SCOPED_TRACE(::testing::Message() << name_of(dtype) << ", options " << options);
        const std::vector<Tensor> p = tensors_of(dtype, 3, -1, 1, options % 5 == 2),
                                  m = tensors_of(dtype, 5, -1, 1, options % 5 == 2),
                                  v = tensors_of(dtype, 7, 0, 1, options % 5 == 2),
                                  most = tensors_of(dtype, 11, 0, 1, options % 5 == 2);
        std::vector<Tensor> g = tensors_of(dtype, 13, -1, 1, options % 5 == 2);
        const auto old = values_of(p), first = values_of(m), second = values_of(v), largest = values_of(most),
                   slope = values_of(g);
        std::vector<Tensor> states = p;
        append(states, m);
        append(states, v);
        append(states, a.amsgrad ? most : std::vector<Tensor>(most.size()));
        const std::size_t last = g.size() - 1;
        g[last] = Tensor();
        bench.run("adam_step", states, g, &a);
        const double steps = static_cast<double>(a.step);
        const auto direction = [&](std::size_t k, std::size_t i) {
          return slope[k][i] + (a.decoupled ? 0 : a.weight_decay * old[k][i]);
        };
        const auto mean = [&](std::size_t k, std::size_t i) {
          return k == last ? first[k][i] : a.beta1 * first[k][i] + (1 - a.beta1) * direction(k, i);
        };
        const auto square = [&](std::size_t k, std::size_t i) {
          return k == last ? second[k][i] : a.beta2 * second[k][i] + (1 - a.beta2) * direction(k, i) * direction(k, i);
        };
        const auto bound = [&](std::size_t k, std::size_t i) {
          return k == last || !a.amsgrad ? largest[k][i] : std::max(largest[k][i], square(k, i));
        };
        expect_each(m, "mean", mean);
        expect_each(v, "square", square);
        expect_each(most, "largest square", bound);
        expect_each(p, "parameter", [&](std::size_t k, std::size_t i) {
          if (k == last) return old[k][i];
          const double under = a.amsgrad ? bound(k, i) : square(k, i);
          const double denominator = std::sqrt(under) / std::sqrt(1 - std::pow(a.beta2, steps)) + a.eps;
          const double kept = a.decoupled ? old[k][i] * (1 - a.learning_rate * a.weight_decay) : old[k][i];
          return kept - a.learning_rate / (1 - std::pow(a.beta1, steps)) * mean(k, i) / denominator;
        });
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
