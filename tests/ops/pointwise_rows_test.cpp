// What follows from a row of kernel/rows: functions, methods, in-place and _out forms that agree, with the values of
// PyTorch, the dtypes that the row names, and gradients that are the same in place.
#include "../support/expect_error.h"
#include "../support/row_checks.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using test::expect_error;

/// One unary row as a user sees it. Plain pointers: a std::function of each of a thousand forms takes half a minute to
/// compile.
struct Unary {
  std::string name;
  pointwise::Integers integers;
  detail::OutRule::Asks asks;  ///< of `out`
  Tensor x, y;                 ///< PyTorch's
  Tensor (*function)(const Tensor&);
  Tensor (*method)(const Tensor&);
  void (*inplace)(Tensor&);
  void (*inplace_method)(Tensor&);
  void (*out)(Tensor&, const Tensor&);
};

template <class Row>
Unary known_of(const detail::OutRule& asks) {
  std::vector<double> x, y;
  for (const KnownUnary& known : Check<Row>::kKnown) {
    x.push_back(known.x);
    y.push_back(known.y);
  }
  return {.name = Row::name,
          .integers = Row::kIntegers,
          .asks = asks.dtype,
          .x = tensor(x, kFloat64),
          .y = tensor(y, kFloat64)};
}

const std::vector<Unary>& unary_rows() {
  static const std::vector<Unary> rows = [] {
    std::vector<Unary> list;
#define TENON_UNARY(Row, f, saves, integers, asks, ...)               \
  list.push_back(known_of<pointwise::Row>(detail::out_rules::asks));  \
  list.back().function = [](const Tensor& x) { return tenon::f(x); }; \
  list.back().method = [](const Tensor& x) { return x.f(); };         \
  list.back().inplace = [](Tensor& x) { tenon::f##_(x); };            \
  list.back().inplace_method = [](Tensor& x) { x.f##_(); };           \
  list.back().out = [](Tensor& out, const Tensor& x) { tenon::f##_out(out, x); };
#define TENON_UNARY_WITH(Row, f, saves, integers, asks, count, parameters, ...)                         \
  list.push_back(known_of<pointwise::Row>(detail::out_rules::asks));                                    \
  list.back().function = [](const Tensor& x) { return tenon::f(x, TENON_CHECKED_##count parameters); }; \
  list.back().method = [](const Tensor& x) { return x.f(TENON_CHECKED_##count parameters); };           \
  list.back().inplace = [](Tensor& x) { tenon::f##_(x, TENON_CHECKED_##count parameters); };            \
  list.back().inplace_method = [](Tensor& x) { x.f##_(TENON_CHECKED_##count parameters); };             \
  list.back().out = [](Tensor& out, const Tensor& x) { tenon::f##_out(out, x, TENON_CHECKED_##count parameters); };
#include <tenon/kernel/rows/unary.inl>
    return list;
  }();
  return rows;
}

/// One binary row; `number` is the form whose second operand is a number.
struct Binary {
  std::string name;
  Tensor a, b, y;
  Tensor (*function)(const Tensor&, const Tensor&);
  Tensor (*method)(const Tensor&, const Tensor&);
  Tensor (*number)(const Tensor&, double);
  void (*inplace)(Tensor&, const Tensor&);
  void (*inplace_number)(Tensor&, double);
  void (*out)(Tensor&, const Tensor&, const Tensor&);
  void (*out_number)(Tensor&, const Tensor&, double);
};

#define TENON_FORMS_OF_TWO(f)                                                                         \
  list.back().function = [](const Tensor& a, const Tensor& b) { return tenon::f(a, b); };             \
  list.back().method = [](const Tensor& a, const Tensor& b) { return a.f(b); };                       \
  list.back().number = [](const Tensor& a, double b) { return a.f(b); };                              \
  list.back().inplace = [](Tensor& a, const Tensor& b) { a.f##_(b); };                                \
  list.back().inplace_number = [](Tensor& a, double b) { a.f##_(b); };                                \
  list.back().out = [](Tensor& out, const Tensor& a, const Tensor& b) { tenon::f##_out(out, a, b); }; \
  list.back().out_number = [](Tensor& out, const Tensor& a, double b) { tenon::f##_out(out, a, b); };

std::vector<Binary> binary_rows() {
  std::vector<Binary> list;
#define TENON_BINARY(Row, f, ...)                                                                               \
  {                                                                                                             \
    std::vector<double> a, b, y;                                                                                \
    for (const KnownBinary& known : Check<pointwise::Row>::kKnown) {                                            \
      a.push_back(known.a);                                                                                     \
      b.push_back(known.b);                                                                                     \
      y.push_back(known.y);                                                                                     \
    }                                                                                                           \
    list.push_back({.name = #f, .a = tensor(a, kFloat64), .b = tensor(b, kFloat64), .y = tensor(y, kFloat64)}); \
    TENON_FORMS_OF_TWO(f)                                                                                       \
  }
#include <tenon/kernel/rows/binary.inl>
  return list;
}

std::vector<Binary> comparison_rows() {
  std::vector<Binary> list;
#define TENON_COMPARISON(Row, f, ...)                                                                           \
  list.push_back(                                                                                               \
      {.name = #f, .a = tensor({0.0, 1.5, -2.0, 1.5}, kFloat64), .b = tensor({0.0, 0.0, 1.5, 1.5}, kFloat64)}); \
  TENON_FORMS_OF_TWO(f)
#include <tenon/kernel/rows/relations.inl>
  return list;
}

TEST(UnaryRows, GiveTheValuesOfPyTorch) {
  for (const Unary& row : unary_rows()) {
    EXPECT_TRUE(row.function(row.x).allclose(row.y, 1e-12, 1e-13)) << row.name << "\n" << row.function(row.x) << row.y;
  }
}

TEST(UnaryRows, HaveFormsThatAgree) {
  for (const Unary& row : unary_rows()) {
    SCOPED_TRACE(row.name);
    const Tensor wanted = row.function(row.x);
    EXPECT_TRUE(row.method(row.x).equal(wanted));
    Tensor written = row.x.clone();
    row.inplace(written);
    EXPECT_TRUE(written.equal(wanted)) << "in place";
    written = row.x.clone();
    row.inplace_method(written);
    EXPECT_TRUE(written.equal(wanted)) << "in place, as a method";
    Tensor out = empty({0}, kFloat64);
    row.out(out, row.x);
    EXPECT_TRUE(out.equal(wanted)) << "out";
  }
}

TEST(UnaryRows, GiveIntegersTheDtypeThatTheRowNames) {
  const Tensor whole = tensor({1, 2}), truth = tensor({true, false});
  for (const Unary& row : unary_rows()) {
    SCOPED_TRACE(row.name);
    switch (row.integers) {
      case pointwise::Integers::kConverted:
        EXPECT_EQ(row.function(whole).scalar_type(), kFloat32);
        EXPECT_EQ(row.function(truth).scalar_type(), kFloat32);
        expect_error(
            [&] {
              Tensor x = whole.clone();
              row.inplace(x);
            },
            "can't be cast to the desired output type Long");
        break;
      case pointwise::Integers::kRefused:
        expect_error([&] { row.function(whole); }, "\"" + row.name + "_cpu\" not implemented for 'Long'");
        expect_error(
            [&] {
              Tensor x = whole.clone();
              row.inplace(x);
            },
            "_cpu\" not implemented for 'Long'");
        expect_error([&] { row.function(truth); }, "_cpu\" not implemented for 'Bool'");
        break;
      case pointwise::Integers::kKept:
        EXPECT_TRUE(row.function(whole).equal(whole));
        EXPECT_FALSE(row.function(whole).is_alias_of(whole));
        expect_error([&] { row.function(truth); }, "_cpu\" not implemented for 'Bool'");
        break;
      default:
        EXPECT_EQ(row.function(whole).scalar_type(), kInt64);
    }
  }
}

TEST(UnaryRows, AskTheOutFormForTheDtypeThatTheRowNames) {
  for (const Unary& row : unary_rows()) {
    SCOPED_TRACE(row.name);
    Tensor single = empty({0}, kFloat32), whole = empty({0}, kInt64);
    if (row.asks == detail::OutRule::Asks::kSame) {
      expect_error([&] { row.out(single, row.x); }, "Expected out tensor to have dtype double, but got float instead");
      expect_error([&] { row.out(whole, row.x); },
                   "Expected out tensor to have dtype double, but got long int instead");
    } else {
      row.out(single, row.x);
      EXPECT_TRUE(single.equal(row.function(row.x).to(kFloat32)));
      expect_error([&] { row.out(whole, row.x); }, "can't be cast to the desired output type Long");
    }
  }
}

TEST(UnaryRows, HaveTheSameGradientInPlace) {
  for (const Unary& row : unary_rows()) {
    SCOPED_TRACE(row.name);
    const Tensor x = row.x.clone().set_requires_grad(true), z = row.x.clone().set_requires_grad(true);
    row.function(x * 1).square().sum().backward();
    Tensor written = z * 1;
    row.inplace(written);
    written.square().sum().backward();
    EXPECT_TRUE(z.grad().equal(x.grad()));
  }
}

TEST(UnaryRows, OfBoolsAreTheFewThatPyTorchHas) {
  const Tensor truth = tensor({true, false});
  EXPECT_TRUE(truth.square().equal(tensor({1, 0})));
  EXPECT_TRUE(truth.sign().equal(truth));
  expect_error([&] { truth.abs(); }, "\"abs_cpu\" not implemented for 'Bool'");
  expect_error([&] { truth.neg(); }, "Negation, the `-` operator, on a bool tensor is not supported.");
  expect_error([&] { truth.relu(); }, "Boolean inputs not supported for relu");
  expect_error([&] { relu6(truth); }, "Bool inputs not supported for hardtanh");
  expect_error([&] { hardtanh(truth); }, "Bool inputs not supported for hardtanh");
}

TEST(UnaryRows, KeepIntegersWholeWhereTheirBoundsAreNot) {
  EXPECT_TRUE(hardtanh(tensor({-2, 0, 3}), -0.5, 1.5).equal(tensor({0, 0, 1})));
  EXPECT_TRUE(threshold(tensor({-2, 0, 3}), 0.5, 2.5).equal(tensor({2, 2, 3})));
  EXPECT_TRUE(relu6(tensor({-2, 0, 9})).equal(tensor({0, 0, 6})));
  Tensor written = tensor({-2, 0, 3});
  hardtanh_(written);
  EXPECT_TRUE(written.equal(tensor({-1, 0, 1})));
  EXPECT_TRUE(hardtanh(tensor({1, 200}, kUInt8), -1, 1).equal(tensor({1, 1}, kUInt8)));
}

TEST(UnaryRows, CheckTheirParameters) {
  const Tensor x = ones({2});
  expect_error([&] { celu(x, 0); }, "ZeroDivisionError: alpha cannot be 0 for CELU");
  expect_error(
      [&] {
        Tensor y = x.clone();
        celu_(y, 0);
      },
      "ZeroDivisionError: alpha cannot be 0 for CELU");
  EXPECT_TRUE(softshrink(x, 0).equal(x)) << "nothing is taken off";
  expect_error([&] { softshrink(x, -1); },
               "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1");
  expect_error([&] { gelu(x, "none of these"); }, "approximate argument must be either none or tanh");
}

TEST(BinaryRows, GiveTheValuesOfPyTorch) {
  for (const Binary& row : binary_rows()) {
    EXPECT_TRUE(row.function(row.a, row.b).allclose(row.y, 1e-12, 1e-13)) << row.name << "\n" << row.y;
  }
}

void expect_forms_agree(const std::vector<Binary>& rows) {
  for (const Binary& row : rows) {
    SCOPED_TRACE(row.name);
    const Tensor wanted = row.function(row.a, row.b);
    EXPECT_TRUE(row.method(row.a, row.b).equal(wanted));
    Tensor written = row.a.clone();
    row.inplace(written, row.b);
    EXPECT_TRUE(written.equal(wanted.to(kFloat64))) << "in place";
    Tensor out = empty({0}, wanted.scalar_type());
    row.out(out, row.a, row.b);
    EXPECT_TRUE(out.equal(wanted)) << "out";

    const Tensor by_number = row.function(row.a, full({}, 1.5, kFloat64));
    EXPECT_TRUE(row.number(row.a, 1.5).allclose(by_number, 1e-15, 0)) << "a number";
    written = row.a.clone();
    row.inplace_number(written, 1.5);
    EXPECT_TRUE(written.equal(row.number(row.a, 1.5).to(kFloat64))) << "a number, in place";
    row.out_number(out, row.a, 1.5);
    EXPECT_TRUE(out.equal(row.number(row.a, 1.5))) << "a number, out";
  }
}

TEST(BinaryRows, HaveFormsThatAgree) { expect_forms_agree(binary_rows()); }
TEST(ComparisonRows, HaveFormsThatAgree) { expect_forms_agree(comparison_rows()); }

TEST(BinaryRows, HaveTheSameGradientInPlace) {
  for (const Binary& row : binary_rows()) {
    SCOPED_TRACE(row.name);
    std::vector<Tensor> leaves;
    for (const Tensor& operand : {row.a, row.b, row.a, row.b})
      leaves.push_back(operand.clone().set_requires_grad(true));
    row.function(leaves[0] * 1, leaves[1]).square().sum().backward();
    Tensor written = leaves[2] * 1;
    row.inplace(written, leaves[3]);
    written.square().sum().backward();
    EXPECT_TRUE(leaves[2].grad().equal(leaves[0].grad()));
    EXPECT_TRUE(leaves[3].grad().equal(leaves[1].grad()));
  }
}

TEST(BinaryRows, HypotHasAGradientWhereSquaresOverflow) {
  const Tensor a = tensor({3e200}, kFloat64).set_requires_grad(true);
  hypot(a, tensor({4e200}, kFloat64)).backward();
  EXPECT_NEAR(a.grad().item<double>(), 0.6, 1e-15);
}

TEST(PredicateRows, HaveFormsThatAgree) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({0.0, -0.0, 1.5, -1.5, infinity, -infinity, std::nan("")}, kFloat64);
  Tensor out = empty({0}, kBool);
#define TENON_PREDICATE(Row, f, ...)           \
  EXPECT_TRUE(x.f().equal(tenon::f(x))) << #f; \
  f##_out(out, x);                             \
  EXPECT_TRUE(out.equal(x.f())) << #f;
#include <tenon/kernel/rows/relations.inl>
  EXPECT_TRUE(x.signbit().equal(tensor({false, true, false, true, false, true, false})));
}

TEST(BitwiseRows, HaveFormsThatAgree) {
  const Tensor a = tensor({12, 10, -1}), b = tensor({10, 3, 5});
  Tensor out = empty({0}, kInt64);
#define TENON_BITWISE(Row, f, ...)                      \
  {                                                     \
    const Tensor wanted = tenon::f(a, b);               \
    EXPECT_TRUE(a.f(b).equal(wanted)) << #f;            \
    EXPECT_TRUE(a.clone().f##_(b).equal(wanted)) << #f; \
    EXPECT_TRUE(a.clone().f##_(6).equal(a.f(6))) << #f; \
    f##_out(out, a, b);                                 \
    EXPECT_TRUE(out.equal(wanted)) << #f;               \
    f##_out(out, a, 6);                                 \
    EXPECT_TRUE(out.equal(a.f(6))) << #f;               \
  }
#include <tenon/kernel/rows/relations.inl>
}

}  // namespace
}  // namespace tenon::test
