// Every row of kernel/rows at ordinary points, edges, infinities and NaN: values and gradients as PyTorch gives them.
#include "support/row_checks.h"

#include <tenon/ops/all_ops.h>

#include "pytorch_values/recorded.h"

#include <functional>
#include <map>

namespace tenon::test {
namespace {

using nlohmann::json;
using Unary = std::function<Tensor(const Tensor&)>;
using Binary = std::function<Tensor(const Tensor&, const Tensor&)>;

std::map<std::string, Unary> unary_rows() {
  std::map<std::string, Unary> rows;
#define TENON_UNARY(Row, f, ...) rows[#f] = [](const Tensor& x) { return tenon::f(x); };
#define TENON_UNARY_WITH(Row, f, saves, integers, asks, count, parameters, ...) \
  rows[#f] = [](const Tensor& x) { return tenon::f(x, TENON_CHECKED_##count parameters); };
#include <tenon/kernel/rows/unary.inl>
#define TENON_PREDICATE(Row, f, ...) rows[#f] = [](const Tensor& x) { return tenon::f(x); };
#include <tenon/kernel/rows/relations.inl>
  return rows;
}

std::map<std::string, Binary> binary_rows() {
  std::map<std::string, Binary> rows;
#define TENON_BINARY(Row, f, ...) rows[#f] = [](const Tensor& a, const Tensor& b) { return tenon::f(a, b); };
#include <tenon/kernel/rows/binary.inl>
#define TENON_COMPARISON(Row, f, ...) rows[#f] = [](const Tensor& a, const Tensor& b) { return tenon::f(a, b); };
#include <tenon/kernel/rows/relations.inl>
  return rows;
}

Tensor leaf_of(const json& values) {
  return tenon::tensor(numbers_of(values), TensorOptions(kFloat64)).set_requires_grad(true);
}

/// Where Tenon differs from PyTorch, and why.
struct Difference {
  const char* row;
  double tolerance;                                   ///< of gradients, in place of kTolerance
  std::function<bool(double point)> is_incomparable;  ///< points whose gradients are not compared
};
constexpr double kTolerance = 1e-11;
const Difference kDifferences[] = {
    {"hardsigmoid", 1e-7, [](double) { return false; }},  // PyTorch's sixth is a float in every dtype
    // PyTorch's trigamma has nine digits, and noise of 1e25 to 1e32 at the poles.
    {"digamma", 2e-9, [](double x) { return x <= 0 && x == std::floor(x); }},
    // PyTorch composes it, which gives NaN where both tails are flat.
    {"softsign", kTolerance, [](double x) { return std::isinf(x); }},
};

/// One row: its value, and the gradient of the sum of its value in each input.
void expect_row(const json& row, const Tensor& value, const std::vector<Tensor>& inputs) {
  expect_recorded(value, row["value"], kTolerance);
  if (row["gradients"].is_null()) return;  // PyTorch has none
  ASSERT_EQ(value.requires_grad(), !row["gradients"].empty());
  if (!value.requires_grad()) return;
  value.sum().backward();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("gradient of operand " + std::to_string(i));
    Tensor gradient = inputs[i].grad().defined() ? inputs[i].grad() : zeros_like(inputs[i]);
    json want = row["gradients"][i];
    double tolerance = kTolerance;
    for (const Difference& difference : kDifferences) {
      if (row["row"] != difference.row) continue;
      tolerance = difference.tolerance;
      for (std::size_t k = 0; k < want.size(); ++k) {
        const auto at = static_cast<std::int64_t>(k);
        if (difference.is_incomparable(inputs[i][at].item<double>())) want[k] = gradient[at].item<double>();
      }
    }
    expect_recorded(gradient, want, tolerance);
  }
}

TEST(PyTorchValues, OfEveryUnaryRow) {
  const json file = recorded("pointwise");
  auto rows = unary_rows();
  for (const char* kind : {"unary", "predicates"}) {
    for (const json& row : file[kind]) {
      SCOPED_TRACE(row["row"].get<std::string>());
      const Tensor x = leaf_of(file["points"]);
      expect_row(row, rows.at(row["row"])(x), {x});
      rows.erase(row["row"].get<std::string>());
    }
  }
  for (const auto& [name, function] : rows) ADD_FAILURE() << name << " has no recorded values: run make.py";
}

TEST(PyTorchValues, OfEveryBinaryRow) {
  const json file = recorded("pointwise");
  auto rows = binary_rows();
  for (const char* kind : {"binary", "comparisons"}) {
    for (const json& row : file[kind]) {
      SCOPED_TRACE(row["row"].get<std::string>());
      const Tensor a = leaf_of(file["a"]), b = leaf_of(file["b"]);
      expect_row(row, rows.at(row["row"])(a, b), {a, b});
      rows.erase(row["row"].get<std::string>());
    }
  }
  for (const auto& [name, function] : rows) ADD_FAILURE() << name << " has no recorded values: run make.py";
}

}  // namespace
}  // namespace tenon::test
