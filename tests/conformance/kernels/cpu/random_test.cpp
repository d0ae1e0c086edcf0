// Where the random numbers of Note [Same numbers on every device] begin and end: a word decides exactly.
#include <tenon/kernel/attributes/random.h>

#include <gtest/gtest.h>

#include <cmath>

#include "cpu_case.h"

namespace tenon::conformance {
namespace {

using RandomWords = CpuCase;

/// The words of elements 0, 2, 4, …: the lower halves of the numbers that integers are drawn by.
Tensor even_words(Bench& bench, RandomAttributes a, i64 count) {
  a.low = 0, a.high = i64{1} << 32;
  Tensor words(Dtype::kInt64, {count / 2});
  bench.run("randint", {words}, {}, &a);
  return words;
}

TEST_F(RandomWords, AreBelowTheProbabilityWhereTheirQuotientIs) {
  for_each_bench([](Bench& bench) {
    constexpr i64 kCount = 600;
    RandomAttributes a{.seed = 77, .offset = 5};
    const Tensor words = even_words(bench, a, kCount);
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt64, Dtype::kBool}) {
      for (const i64 chosen : {0, 2, 254, 256, 598}) {
        const auto word = static_cast<double>(words.integer(chosen / 2));
        for (const double part : {-0.5, 0.0, 0.5, 1.0}) {
          const double p = std::ldexp(word + part, -32);
          if (p < 0 || p > 1) continue;
          a.a = p;
          Tensor y(dtype, {kCount}), each(dtype, {kCount}), chances(Dtype::kFloat64, {kCount});
          chances.fill([p](i64) { return p; });
          bench.run("bernoulli", {y}, {Tensor()}, &a);
          bench.run("bernoulli", {each}, {chances}, &a);
          for (i64 i = 0; i < kCount; i += 2) {
            const i64 wanted = std::ldexp(words.real(i / 2), -32) < p ? 1 : 0;
            ASSERT_EQ(y.integer(i), wanted) << name_of(dtype) << " at " << i << ", part " << part;
            ASSERT_EQ(each.integer(i), wanted) << name_of(dtype) << " at " << i << ", part " << part;
          }
        }
      }
      for (const double p : {-1.0, 0.0, 1.0, 2.0}) {
        a.a = p;
        Tensor y(dtype, {kCount});
        bench.run("bernoulli", {y}, {Tensor()}, &a);
        for (i64 i = 0; i < kCount; ++i) ASSERT_EQ(y.integer(i), p >= 1 ? 1 : 0) << name_of(dtype) << ", " << p;
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
