// L-BFGS with steps of a fixed length against the two-loop recursion written out in plain loops of doubles.
#include <tenon/ops/ops.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace tenon::test {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
/// a + factor * b
Vector sum_of(Vector a, double factor, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
  return a;
}

/// A bowl that is not round: the sum of c x^2 + x^4 / 8.
struct Bowl {
  Vector curvature;
  Vector slope(const Vector& x) const {
    Vector slope(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) slope[i] = 2 * curvature[i] * x[i] + x[i] * x[i] * x[i] / 2;
    return slope;
  }
};

/// Nocedal's method: what the last moves said of the curvature makes the direction.
class PlainLbfgs {
 public:
  PlainLbfgs(double rate, std::size_t most) : rate_(rate), most_(most) {}

  void step(Vector& x, const Bowl& bowl, int iterations) {
    for (int i = 0; i < iterations; ++i) {
      const Vector slope = bowl.slope(x);
      const bool is_first = last_slope_.empty();
      if (!is_first) remember(sum_of(slope, -1, last_slope_));
      double size = 0;
      for (const double part : slope) size += std::abs(part);
      const double length = is_first ? std::min(1.0, 1 / size) * rate_ : rate_;
      move_ = direction(slope);
      for (double& part : move_) part *= length;
      x = sum_of(x, 1, move_);
      last_slope_ = slope;
    }
  }

 private:
  struct Pair {
    Vector move, change;
  };
  void remember(const Vector& change) {
    if (dot(move_, change) <= 1e-10) return;
    if (pairs_.size() == most_) pairs_.pop_front();
    pairs_.push_back({move_, change});
  }
  Vector direction(const Vector& slope) const {
    Vector d = sum_of(Vector(slope.size()), -1, slope);
    Vector shares(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      shares[i] = dot(pairs_[i].move, d) / dot(pairs_[i].move, pairs_[i].change);
      d = sum_of(d, -shares[i], pairs_[i].change);
    }
    if (!pairs_.empty()) {
      const Pair& newest = pairs_.back();
      for (double& part : d) part *= dot(newest.move, newest.change) / dot(newest.change, newest.change);
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const double share = dot(pairs_[i].change, d) / dot(pairs_[i].move, pairs_[i].change);
      d = sum_of(d, shares[i] - share, pairs_[i].move);
    }
    return d;
  }

  const double rate_;
  const std::size_t most_;
  std::deque<Pair> pairs_;
  Vector last_slope_, move_;
};

TEST(LbfgsReference, FixedStepsAreThoseOfTheTwoLoopRecursion) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto real = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const double rate = real(0.05, 0.4);
    const std::size_t history = 1 + random() % 5;
    const int iterations = static_cast<int>(1 + random() % 4);
    // Two parameters, which count as one vector.
    Bowl bowl{.curvature = Vector(7)};
    Vector x(7);
    for (double& part : bowl.curvature) part = real(0.2, 3);
    for (double& part : x) part = real(-2, 2);
    const Tensor curvature = tenon::tensor(bowl.curvature, TensorOptions(kFloat64));
    const Tensor all = tenon::tensor(x, TensorOptions(kFloat64));
    const Tensor a = all.narrow(0, 0, 4).clone().reshape({2, 2}).set_requires_grad(true);
    const Tensor b = all.narrow(0, 4, 3).clone().set_requires_grad(true);
    optim::LBFGS lbfgs({a, b}, optim::LBFGSOptions(rate)
                                   .max_iter(iterations)
                                   .max_eval(100)
                                   .history_size(static_cast<std::int64_t>(history))
                                   .tolerance_grad(0)
                                   .tolerance_change(0));
    PlainLbfgs plain(rate, history);
    for (int step = 0; step < 20; ++step) {
      lbfgs.step([&] {
        lbfgs.zero_grad();
        const Tensor joined = cat({a.reshape({-1}), b});
        const Tensor loss = (curvature * joined.square() + joined.square().square() / 8).sum();
        loss.backward();
        return loss;
      });
      plain.step(x, bowl, iterations);
      const Tensor now = cat({a.detach().reshape({-1}), b.detach()}).contiguous();
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(now.data_ptr<double>()[i], x[i], 1e-9) << "element " << i << " after step " << step;
    }
  }
}

}  // namespace
}  // namespace tenon::test
