// Every kernel of a pointwise row against the row in double (int64 for integers), for all dtypes and layouts. That the
// rows are right is shown in tests/kernel.
#include "../../support/row_checks.h"

#include <tenon/core/error.h>
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/pointwise.h>

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string_view>

#include "harness.h"

namespace tenon::conformance {
namespace {

constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kTransposed, Layout::kStrided};
/// For every row: what takes them through layouts and sizes is the same for all, and tried with few of them.
const Sizes kRowShapes[] = {{}, {67}, {31, 37}};

using tenon::test::Check;
using tenon::test::for_each_row;

/// The rows that the backend has a kernel for: all of them, but for a backend that somebody has begun.
template <class List, class F>
void for_each_row_of(Bench& bench, List rows, const F& f) {
  for_each_row(rows, [&]<class Row>(Row row) {
    if (bench.has(Row::name) || bench.is_whole()) f(row);
  });
}

// Of an integer tensor the parameters are others: the rows name fractions.
constexpr i64 kIntegerParameters[3] = {-1, 2, 3};

template <class Row>
PointwiseAttributes attributes_of() {
  PointwiseAttributes attributes;
  for (int i = 0; i < 3; ++i) attributes.parameters[i] = {Check<Row>::kParameters[i], kIntegerParameters[i]};
  return attributes;
}

// A few units in the last place of the result, plus what the formula loses where it cancels: units of the compute type
// at 1.
void expect_close(const Tensor& got, const test::FunctionRef<double(i64)>& want, std::string_view what) {
  const double unit = epsilon_of(got.dtype());
  const double compute = unit > 0x1p-24 ? 0x1p-24 : unit;
  for (i64 i = 0; i < got.count(); ++i) {
    const double value = got.real(i), expected = want(i);
    if (std::isnan(expected) && std::isnan(value)) continue;
    if (value == expected) continue;
    const double subnormal = got.dtype() == Dtype::kFloat16 ? 0x1p-24 : 0;
    ASSERT_LE(std::fabs(value - expected), 12 * (unit * std::fabs(expected) + compute) + subnormal)
        << what << ": " << name_of(got.dtype()) << " " << to_string(got.sizes()) << ", element " << i << ": got "
        << value << ", expected " << expected;
  }
}

TEST(Pointwise, UnaryRowsMatchTheirDefinition) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Unary{}, [&]<class Row>(Row) {
      using C = Check<Row>;
      const PointwiseAttributes attributes = attributes_of<Row>();
      const double* const p = C::kParameters;
      const bool is_first = std::string_view(Row::name) == "neg";
      for (const Dtype dtype : kFloats) {
        for (const Sizes& sizes : is_first ? std::span<const Sizes>(shapes()) : std::span<const Sizes>(kRowShapes)) {
          for (const Layout layout : kLayouts) {
            Random random(7);
            const Tensor x = random_tensor(dtype, sizes, layout, random, C::kLow, C::kHigh);
            Tensor y(dtype, sizes, layout == Layout::kStrided ? Layout::kContiguous : layout);
            bench.run(Row::name, {y}, {x}, &attributes);
            expect_close(
                y, [&](i64 i) { return Row::template value<double>(x.real(i), p); }, Row::name);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    });
  });
}

TEST(Pointwise, UnaryBackwardsAreTheSlope) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Unary{}, [&]<class Row>(Row) {
      using C = Check<Row>;
      const PointwiseAttributes attributes = attributes_of<Row>();
      const double* const p = C::kParameters;
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
        for (const Sizes& sizes : {Sizes{67}, Sizes{31, 37}}) {
          for (const Layout layout : kLayouts) {
            Random random(11);
            const Tensor x = random_tensor(dtype, sizes, layout, random, C::kLow, C::kHigh);
            const Tensor dy = random_tensor(dtype, sizes, Layout::kContiguous, random, -1, 1);
            Tensor y(dtype, sizes, layout);
            y.fill([&](i64 i) { return Row::template value<double>(x.real(i), p); });
            Tensor dx(dtype, sizes);
            const std::string name = std::string(Row::name) + "_backward";
            const Tensor saved = Row::kSaves == pointwise::Saves::kInput    ? x
                                 : Row::kSaves == pointwise::Saves::kOutput ? y
                                                                            : Tensor();
            bench.run(name, {dx}, {dy, saved}, &attributes);
            for (i64 i = 0; i < dx.count(); ++i) {
              const double s = Row::kSaves == pointwise::Saves::kNothing ? 0 : saved.real(i);
              const double slope = Row::template slope<double>(s, s, p);
              ASSERT_LE(std::fabs(dx.real(i) - dy.real(i) * slope), 64 * epsilon_of(dtype) * (1 + std::fabs(slope)))
                  << name << " at " << s << ": got " << dx.real(i) << ", expected " << dy.real(i) * slope;
            }
          }
        }
      }
    });
  });
}

TEST(Pointwise, UnaryRowsKeepNanAndInfinity) {
  for_each_bench([](Bench& bench) {
    for (const char* name : {"exp", "log", "tanh", "sigmoid", "sqrt", "relu", "abs", "erf", "neg", "silu", "gelu"}) {
      Tensor x(Dtype::kFloat32, {40}), y(Dtype::kFloat32, {40});
      x.fill([](i64) { return std::nan(""); });
      bench.run(name, {y}, {x});
      for (i64 i = 0; i < 40; ++i) ASSERT_TRUE(std::isnan(y.real(i))) << name;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    struct Row {
      const char* name;
      double at, expected;
    };
    for (const Row& row :
         {Row{"exp", infinity, infinity}, Row{"exp", -infinity, 0}, Row{"exp", 100, infinity}, Row{"exp", -150, 0},
          Row{"log", infinity, infinity}, Row{"log", 0, -infinity}, Row{"tanh", infinity, 1},
          Row{"tanh", -infinity, -1}, Row{"erf", infinity, 1}, Row{"sigmoid", infinity, 1},
          Row{"sigmoid", -infinity, 0}, Row{"sqrt", infinity, infinity}}) {
      Tensor x(Dtype::kFloat32, {40}), y(Dtype::kFloat32, {40});
      x.fill([&](i64) { return row.at; });
      bench.run(row.name, {y}, {x});
      for (i64 i = 0; i < 40; ++i) ASSERT_EQ(y.real(i), row.expected) << row.name << " at " << row.at;
    }
    Tensor x(Dtype::kFloat32, {40}), y(Dtype::kFloat32, {40});
    x.fill([](i64) { return -1; });
    bench.run("log", {y}, {x});
    for (i64 i = 0; i < 40; ++i) ASSERT_TRUE(std::isnan(y.real(i)));
  });
}

TEST(Pointwise, IntegerUnaryRowsAreExact) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Unary{}, [&]<class Row>(Row) {
      if constexpr (pointwise::computes(Row::kIntegers)) {
        const PointwiseAttributes attributes = attributes_of<Row>();
        for (const Dtype dtype : kIntegers) {
          for (const Sizes& sizes : kRowShapes) {
            Random random(13);
            const Tensor x = random_tensor(dtype, sizes, Layout::kStrided, random, -9, 9);
            Tensor y(dtype, sizes), expected(dtype, sizes);
            bench.run(Row::name, {y}, {x}, &attributes);
            for (i64 i = 0; i < x.count(); ++i) {
              expected.set_integer(i, Row::template value<i64>(x.integer(i), kIntegerParameters));
            }
            expect_equal(
                y, [&](i64 i) { return expected.integer(i); }, Row::name);
          }
        }
      }
    });
  });
}

// The three ways in which the second operand comes.
enum class Second { kSame, kBroadcast, kScalar };

TEST(Pointwise, BinaryRowsMatchTheirDefinition) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Binary{}, [&]<class Row>(Row) {
      using C = Check<Row>;
      constexpr bool jumps = Row::kIntegers == pointwise::Integers::kDivided;
      const bool is_first = std::string_view(Row::name) == "mul";
      for (const Dtype dtype : kFloats) {
        if (jumps && dtype != Dtype::kFloat32 && dtype != Dtype::kFloat64) continue;
        for (const Sizes& sizes : is_first ? std::span<const Sizes>(shapes()) : std::span<const Sizes>(kRowShapes)) {
          for (const Second second : {Second::kSame, Second::kBroadcast, Second::kScalar}) {
            Random random(17);
            const Tensor a = random_tensor(dtype, sizes, Layout::kTransposed, random, C::kLow, C::kHigh);
            Sizes narrow = sizes;
            if (second == Second::kBroadcast && !narrow.empty()) narrow[0] = 1;
            Tensor b = random_tensor(dtype, narrow, Layout::kContiguous, random, C::kLow, C::kHigh);
            b = b.expanded(sizes);
            BinaryAttributes attributes;
            attributes.scalar = {1.25, 1};
            if (second == Second::kScalar) attributes.scalar_side = ScalarSide::kRight;
            Tensor y(dtype, sizes);
            bench.run(Row::name, {y}, {a, second == Second::kScalar ? Tensor() : b}, &attributes);
            auto operand = [&](i64 i) { return second == Second::kScalar ? 1.25 : b.real(i); };
            if (jumps && dtype == Dtype::kFloat32) {
              for (i64 i = 0; i < y.count(); ++i) {
                const float want =
                    Row::template value<float>(static_cast<float>(a.real(i)), static_cast<float>(operand(i)));
                ASSERT_EQ(y.real(i), want) << Row::name;
              }
            } else {
              expect_close(
                  y, [&](i64 i) { return Row::template value<double>(a.real(i), operand(i)); }, Row::name);
            }
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    });
  });
}

TEST(Pointwise, BinaryRowsTakeAScalarOnTheLeft) {
  for_each_bench([](Bench& bench) {
    Random random(19);
    const Tensor b = random_tensor(Dtype::kFloat32, {31, 37}, Layout::kStrided, random, 0.5, 2);
    Tensor y(Dtype::kFloat32, {31, 37});
    BinaryAttributes attributes;
    attributes.scalar = {3, 3};
    attributes.scalar_side = ScalarSide::kLeft;
    attributes.alpha = {2, 2};
    bench.run("sub", {y}, {Tensor(), b}, &attributes);
    expect_near(
        y, [&](i64 i) { return 3 - 2 * b.real(i); }, 1e-6, "3 - 2 b");
    attributes.alpha = {1, 1};
    bench.run("div", {y}, {Tensor(), b}, &attributes);
    expect_near(
        y, [&](i64 i) { return 3 / b.real(i); }, 1e-6, "3 / b");
  });
}

/// The row's kernel against its value in 64 bits, brought into the operands' dtype.
template <class Row>
void expect_exact(Bench& bench, const Tensor& a, const Tensor& b) {
  Tensor y(a.dtype(), a.sizes()), expected(a.dtype(), a.sizes());
  bench.run(Row::name, {y}, {a, b});
  for (i64 i = 0; i < y.count(); ++i) expected.set_integer(i, Row::template value<i64>(a.integer(i), b.integer(i)));
  expect_equal(
      y, [&](i64 i) { return expected.integer(i); }, Row::name);
}

TEST(Pointwise, IntegerBinaryRowsAreExactAndWrap) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Binary{}, [&]<class Row>(Row) {
      if constexpr (pointwise::computes(Row::kIntegers)) {
        const bool divides = Row::kIntegers == pointwise::Integers::kDivided;
        const bool power = std::string_view(Row::name) == "pow";
        for (const Dtype dtype : kIntegers) {
          Random random(23);
          const Tensor a = random_tensor(dtype, {31, 37}, Layout::kTransposed, random, -100, 100);
          const Tensor b =
              random_tensor(dtype, {31, 37}, Layout::kContiguous, random, divides || power ? 1 : -100, power ? 4 : 100);
          expect_exact<Row>(bench, a, b);
        }
      }
    });
  });
}

TEST(Pointwise, DivisionOfIntegersByZeroIsAnError) {
  for_each_bench([](Bench& bench) {
    bench.require("floor_divide");
    Tensor a(Dtype::kInt32, {3}), b(Dtype::kInt32, {3}), y(Dtype::kInt32, {3});
    a.fill([](i64) { return 5; });
    b.fill([](i64 i) { return static_cast<double>(i); });
    EXPECT_THROW(bench.run("floor_divide", {y}, {a, b}), Error);
    EXPECT_THROW(bench.run("remainder", {y}, {a, b}), Error);
  });
}

TEST(Pointwise, ComparisonsGiveBoolForEveryType) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Comparison{}, [&]<class Row>(Row) {
      const bool is_first = std::string_view(Row::name) == "lt";
      for (const Dtype dtype : kAllTypes) {
        for (const Sizes& sizes : is_first ? std::span<const Sizes>(shapes()) : std::span<const Sizes>(kRowShapes)) {
          Random random(29);
          const Tensor a = random_tensor(dtype, sizes, Layout::kStrided, random, 0, 3);
          const Tensor b = random_tensor(dtype, sizes, Layout::kContiguous, random, 0, 3);
          Tensor y(Dtype::kBool, sizes);
          bench.run(Row::name, {y}, {a, b});
          expect_equal(
              y, [&](i64 i) { return Row::template value<double>(a.real(i), b.real(i)); }, Row::name);
        }
      }
    });
  });
}

TEST(Pointwise, PredicatesGiveBool) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Predicate{}, [&]<class Row>(Row) {
      for (const Dtype dtype : kFloats) {
        const double values[] = {0, -0.0, 1, -1, std::nan(""), INFINITY, -INFINITY};
        Tensor x(dtype, {7, 9}), y(Dtype::kBool, {7, 9});
        x.fill([&](i64 i) { return values[i % 7]; });
        bench.run(Row::name, {y}, {x});
        expect_equal(
            y, [&](i64 i) { return Row::template value<double>(values[i % 7]); }, Row::name);
      }
    });
  });
}

TEST(Pointwise, BitwiseRowsAreExact) {
  for_each_bench([](Bench& bench) {
    for_each_row_of(bench, pointwise::Bitwise{}, [&]<class Row>(Row) {
      const bool shift = std::string_view(Row::name).find("shift") != std::string_view::npos;
      for (const Dtype dtype : kIntegers) {
        Random random(31);
        const Tensor a = random_tensor(dtype, {17, 130}, Layout::kTransposed, random, -100, 100);
        const Tensor b =
            random_tensor(dtype, {17, 130}, Layout::kContiguous, random, shift ? 0 : -100, shift ? 6 : 100);
        expect_exact<Row>(bench, a, b);
      }
    });
  });
}

TEST(Pointwise, InPlaceGivesTheSameAsOutOfPlace) {
  for_each_bench([](Bench& bench) {
    Random random(37);
    for (const Dtype dtype : kFloats) {
      const Tensor a = random_tensor(dtype, {31, 37}, Layout::kTransposed, random);
      const Tensor b = random_tensor(dtype, {31, 37}, Layout::kContiguous, random);
      Tensor y(dtype, {31, 37}), z(dtype, {31, 37}, Layout::kTransposed);
      bench.run("mul", {y}, {a, b});
      bench.run("copy", {z}, {a});
      bench.run("mul", {z}, {z, b});
      expect_near(
          z, [&](i64 i) { return y.real(i); }, 0, "in place");
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
