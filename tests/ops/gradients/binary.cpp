// Rows of the gradient table: binary and ternary pointwise operators. The binary ones come from kernel/rows/binary.inl,
// with the range that each row names.
#include "gradient_case.h"

namespace tenon::test {
namespace {

struct Binary {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> function;
  double low;
  double high;
};

}  // namespace

std::vector<GradientCase> binary_gradients() {
  const std::vector<Binary> operators{
#define TENON_BINARY(Row, name, reads, integers, value, slope_a, slope_b, low, high, ...) \
  {#name, [](const Tensor& a, const Tensor& b) { return tenon::name(a, b); }, low, high},
#include <tenon/kernel/rows/binary.inl>
      {"add", [](const Tensor& a, const Tensor& b) { return a.add(b); }, -2, 2},
      {"sub", [](const Tensor& a, const Tensor& b) { return a.sub(b); }, -2, 2},
      {"add alpha", [](const Tensor& a, const Tensor& b) { return a.add(b, 2.5); }, -2, 2},
      {"sub alpha", [](const Tensor& a, const Tensor& b) { return a.sub(b, 2.5); }, -2, 2},
      {"where", [](const Tensor& a, const Tensor& b) { return tenon::where(a.detach().gt(b.detach()), a * 2, b); }, -2,
       2},
      {"lerp", [](const Tensor& a, const Tensor& b) { return a.lerp(b, 0.3); }, -2, 2},
      {"lerp tensor", [](const Tensor& a, const Tensor& b) { return a.lerp(b, a.sigmoid()); }, -2, 2},
      {"addcmul", [](const Tensor& a, const Tensor& b) { return a.addcmul(a, b, 0.7); }, -2, 2},
      {"addcdiv", [](const Tensor& a, const Tensor& b) { return a.addcdiv(a, b, 0.7); }, 0.5, 2},
  };
  std::vector<GradientCase> rows;
  for (const Binary& one : operators) {
    const Function function = [f = one.function](const std::vector<Tensor>& x) { return f(x[0], x[1]); };
    const auto of_sizes = [&](const char* what, std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
      return of_tensors(std::string(one.name) + what, function, {{a, one.low, one.high}, {b, one.low, one.high}});
    };
    rows.push_back(of_sizes("", {2, 3}, {2, 3}).empty({{0, 3}, {0, 3}}));
    rows.push_back(of_sizes(" of sizes that broadcast", {2, 1}, {3}).empty({{0, 3}, {3}}));
    rows.push_back(of_sizes(" of a number and a matrix", {}, {2, 3}).empty({{}, {0, 3}}));
  }
  // Whole quotients have no slope but 0; between them they jump, so only the first operand moves here.
  for (const char* mode : {"floor", "trunc"}) {
    rows.push_back(of_tensors(std::string("div ") + mode,
                              [mode](const std::vector<Tensor>& x) { return x[0].div(x[1], mode); },
                              {{{2, 3}, 2.2, 2.8}, {{2, 3}, 1.0, 1.05}})
                       .empty({{0, 3}, {3}}));
  }
  return rows;
}

}  // namespace tenon::test
