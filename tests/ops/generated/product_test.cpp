// Products of vectors, matrices and batches in random layouts, and sums of products by equations, held against loops in
// float64; gradients against differences.
#include <tenon/core/error.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/linalg/products.h>

#include "differences.h"

#include <map>

namespace tenon::test {
namespace {

/// The sum over all letters that the result lacks, of the products of the operands' elements. Each operand's letters
/// name its dims; an operand whose dim is 1 where another's is larger is repeated.
Array sum_of_products(const std::vector<std::string>& letters, const std::vector<Array>& operands,
                      const std::string& result) {
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t d = 0; d < letters[i].size(); ++d)
      sizes[letters[i][d]] = std::max(sizes[letters[i][d]], operands[i].sizes[d]);
  std::string all = result;
  for (const auto& [letter, size] : sizes)
    if (all.find(letter) == std::string::npos) all += letter;
  Sizes of_all, of_result;
  for (const char letter : all) of_all.push_back(sizes[letter]);
  for (const char letter : result) of_result.push_back(sizes[letter]);
  Array sum(of_result);
  for_each_place(of_all, [&](const Sizes& at) {
    double term = 1;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Sizes own;
      for (std::size_t d = 0; d < letters[i].size(); ++d) {
        const std::int64_t place = at[all.find(letters[i][d])];
        own.push_back(operands[i].sizes[d] == 1 ? 0 : place);
      }
      term *= operands[i][own];
    }
    sum[Sizes(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(of_result.size()))] += term;
  });
  return sum;
}

/// Lengths that fill vectors of the processor, some that do not, and 0.
std::int64_t draw_length(Draws& draws) {
  return draws.one_in(6) ? draws.integer(15, 40) : draws.one_in(15) ? 0 : draws.integer(1, 7);
}

void expect_values(Draws& draws, const std::vector<Array>& operands, const Array& want,
                   const std::function<Tensor(const std::vector<Tensor>&)>& function) {
  std::vector<Tensor> wide, single;
  for (const Array& operand : operands) {
    wide.push_back(draws.laid_out(operand));
    single.push_back(draws.in_some_layout(draws.laid_out(operand).to(kFloat32)));
  }
  expect_near(function(wide), want);
  expect_near(function(single), want, 1e-4);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].values.size() > 60) continue;
    expect_gradient(draws, operands[i], [&](const Tensor& t) {
      std::vector<Tensor> moved = wide;
      moved[i] = t;
      return function(moved);
    });
  }
}

TEST(GeneratedProduct, OfVectorsMatricesAndBatches) {
  for_each_case(263, 250, [](Draws& draws) {
    const std::int64_t n = draw_length(draws), k = draw_length(draws), m = draw_length(draws);
    const bool is_row = draws.one_in(5), is_column = draws.one_in(5);
    Sizes left = is_row ? Sizes{k} : Sizes{n, k}, right = is_column ? Sizes{k} : Sizes{k, m};
    std::string of_left = is_row ? "k" : "nk", of_right = is_column ? "k" : "km";
    std::string batch = std::string("abc").substr(static_cast<std::size_t>(draws.integer(0, 3)));
    std::string in_result;
    for (const char letter : batch) {
      const std::int64_t size = draws.integer(1, 3);
      const bool in_left = !is_row && draws.one_in(2), in_right = !is_column && (!in_left || draws.one_in(2));
      // Leading dims are matched from the end: an operand that begins later lacks the first ones.
      const bool has_left = of_left.size() > 2 || in_left, has_right = of_right.size() > 2 || in_right;
      if (is_row && is_column) break;
      if (has_left && !is_row) {
        left.insert(left.end() - 2, in_left ? size : 1);
        of_left.insert(of_left.end() - 2, letter);
      }
      if (has_right && !is_column) {
        right.insert(right.end() - 2, in_right ? size : 1);
        of_right.insert(of_right.end() - 2, letter);
      }
      if ((has_left && !is_row) || (has_right && !is_column)) in_result += letter;
    }
    if (!is_row) in_result += 'n';
    if (!is_column) in_result += 'm';
    SCOPED_TRACE(text_of(left) + " times " + text_of(right));
    const Array a(draws.tensor(left)), b(draws.tensor(right));
    expect_values(draws, {a, b}, sum_of_products({of_left, of_right}, {a, b}, in_result),
                  [](const std::vector<Tensor>& x) { return matmul(x[0], x[1]); });
    Sizes longer = right;
    ++longer[longer.size() - (is_column ? 1 : 2)];
    EXPECT_THROW(matmul(draws.laid_out(a), draws.tensor(longer)), Error);
    EXPECT_THROW(matmul(draws.laid_out(a), draws.laid_out(b).to(kFloat32)), Error);
  });
}

TEST(GeneratedProduct, AddedToWhatIsGiven) {
  for_each_case(269, 200, [](Draws& draws) {
    const std::int64_t n = draw_length(draws), k = draw_length(draws), m = draw_length(draws),
                       batch = draws.integer(1, 3);
    const double alpha = draws.of(std::vector<double>{1, -0.5, 2}), beta = draws.of(std::vector<double>{1, 0, -1.5});
    SCOPED_TRACE(text_of({batch, n, k, m}) + ", beta " + std::to_string(beta) + ", alpha " + std::to_string(alpha));
    const auto blend = [&](const Array& given, Array sum) {
      Array want = sum;
      for_each_place(sum.sizes, [&](const Sizes& at) {
        const std::size_t missing = at.size() - given.sizes.size();
        Sizes own(at.begin() + static_cast<std::ptrdiff_t>(missing), at.end());
        for (std::size_t d = 0; d < own.size(); ++d) own[d] = given.sizes[d] == 1 ? 0 : own[d];
        want[at] = beta * given[own] + alpha * sum[at];
      });
      return want;
    };
    const auto narrowed = [&](Sizes sizes) {
      for (std::int64_t& size : sizes)
        if (draws.one_in(4)) size = 1;
      while (!sizes.empty() && draws.one_in(4)) sizes.erase(sizes.begin());
      return Array(draws.tensor(sizes));
    };
    const Array a(draws.tensor({n, k})), b(draws.tensor({k, m})), v(draws.tensor({k})), w(draws.tensor({m}));
    const Array as(draws.tensor({batch, n, k})), bs(draws.tensor({batch, k, m})), u(draws.tensor({n}));
    const Array self = narrowed({n, m}), each = narrowed({batch, n, m});
    using List = const std::vector<Tensor>&;
    expect_values(draws, {self, a, b}, blend(self, sum_of_products({"nk", "km"}, {a, b}, "nm")),
                  [&](List x) { return addmm(x[0], x[1], x[2], beta, alpha); });
    expect_values(draws, {each, as, bs}, blend(each, sum_of_products({"bnk", "bkm"}, {as, bs}, "bnm")),
                  [&](List x) { return baddbmm(x[0], x[1], x[2], beta, alpha); });
    expect_values(draws, {self, as, bs}, blend(self, sum_of_products({"bnk", "bkm"}, {as, bs}, "nm")),
                  [&](List x) { return addbmm(x[0], x[1], x[2], beta, alpha); });
    expect_values(draws, {u, a, v}, blend(u, sum_of_products({"nk", "k"}, {a, v}, "n")),
                  [&](List x) { return addmv(x[0], x[1], x[2], beta, alpha); });
    expect_values(draws, {self, u, w}, blend(self, sum_of_products({"n", "m"}, {u, w}, "nm")),
                  [&](List x) { return addr(x[0], x[1], x[2], beta, alpha); });
    expect_values(draws, {a, b}, sum_of_products({"nk", "km"}, {a, b}, "nm"), [](List x) { return mm(x[0], x[1]); });
    expect_values(draws, {as, bs}, sum_of_products({"bnk", "bkm"}, {as, bs}, "bnm"),
                  [](List x) { return bmm(x[0], x[1]); });
    expect_values(draws, {a, v}, sum_of_products({"nk", "k"}, {a, v}, "n"), [](List x) { return mv(x[0], x[1]); });
    expect_values(draws, {v, v}, sum_of_products({"k", "k"}, {v, v}, ""), [](List x) { return dot(x[0], x[1]); });
    expect_values(draws, {u, w}, sum_of_products({"n", "m"}, {u, w}, "nm"), [](List x) { return outer(x[0], x[1]); });
  });
}

TEST(GeneratedProduct, LinearLayersOfAnyRank) {
  for_each_case(271, 200, [](Draws& draws) {
    const std::int64_t in = draw_length(draws), out = draw_length(draws);
    Sizes sizes = draws.sizes(draws.integer(0, 3), 1, 4);
    const std::string leading = std::string("abc").substr(0, sizes.size());
    sizes.push_back(in);
    SCOPED_TRACE(text_of(sizes) + " to " + std::to_string(out));
    const Array x(draws.tensor(sizes)), w(draws.tensor({out, in})), b(draws.tensor({out}));
    Array want = sum_of_products({leading + "i", "oi"}, {x, w}, leading + "o");
    using List = const std::vector<Tensor>&;
    expect_values(draws, {x, w}, want, [](List t) { return linear(t[0], t[1]); });
    for_each_place(want.sizes, [&](const Sizes& at) { want[at] += b[{at.back()}]; });
    expect_values(draws, {x, w, b}, want, [](List t) { return linear(t[0], t[1], t[2]); });
    Sizes wrong = sizes;
    ++wrong.back();
    EXPECT_THROW(linear(draws.tensor(wrong), draws.laid_out(w)), Error);
    if (in > 6 || out > 6) return;
    Sizes second(sizes.begin(), sizes.end() - 1);
    const std::int64_t other = draws.integer(1, 4);
    second.push_back(other);
    const Array y(draws.tensor(second)), three(draws.tensor({out, in, other}));
    Array both = sum_of_products({leading + "i", "oij", leading + "j"}, {x, three, y}, leading + "o");
    expect_values(draws, {x, y, three}, both, [](List t) { return bilinear(t[0], t[1], t[2]); });
    for_each_place(both.sizes, [&](const Sizes& at) { both[at] += b[{at.back()}]; });
    expect_values(draws, {x, y, three, b}, both, [](List t) { return bilinear(t[0], t[1], t[2], t[3]); });
  });
}

TEST(GeneratedProduct, ByAnEquation) {
  for_each_case(277, 250, [](Draws& draws) {
    const std::string letters = "abcdeXY";
    std::map<char, std::int64_t> sizes;
    for (const char letter : letters) sizes[letter] = draws.integer(1, 4);
    const std::int64_t count = draws.integer(1, 3);
    std::vector<std::string> operands;
    std::vector<Array> arrays;
    std::string present;
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<char> own(letters.begin(), letters.end());
      draws.shuffle(own);
      own.resize(static_cast<std::size_t>(draws.integer(1, 3)));
      operands.emplace_back(own.begin(), own.end());
      Sizes shape;
      for (const char letter : own) {
        shape.push_back(draws.one_in(8) ? 1 : sizes[letter]);
        if (present.find(letter) == std::string::npos) present += letter;
      }
      arrays.emplace_back(draws.tensor(shape));
    }
    std::vector<char> kept;
    for (const char letter : present)
      if (draws.one_in(2)) kept.push_back(letter);
    draws.shuffle(kept);
    const std::string result(kept.begin(), kept.end());
    std::string equation;
    for (const std::string& operand : operands) equation += (equation.empty() ? "" : ",") + operand;
    SCOPED_TRACE(equation + "->" + result);
    using List = const std::vector<Tensor>&;
    expect_values(draws, arrays, sum_of_products(operands, arrays, result),
                  [&](List x) { return einsum(equation + "->" + result, x); });
    // Without an arrow: the letters that occur once, capitals first.
    std::string once;
    std::string joined;
    for (const std::string& operand : operands) joined += operand;
    for (const char letter : std::string("XYabcde"))
      if (std::ranges::count(joined, letter) == 1) once += letter;
    expect_values(draws, arrays, sum_of_products(operands, arrays, once), [&](List x) { return einsum(equation, x); });
    EXPECT_THROW(einsum(equation + "->" + result + "z", {draws.laid_out(arrays[0])}), Error);
    EXPECT_THROW(einsum(equation + ",a", {draws.laid_out(arrays[0])}), Error);
  });
}

TEST(GeneratedProduct, OverNamedDims) {
  for_each_case(281, 200, [](Draws& draws) {
    const std::int64_t shared = draws.integer(0, 3), of_a = draws.integer(0, 2), of_b = draws.integer(0, 2);
    std::string a = std::string("xyz").substr(0, static_cast<std::size_t>(shared)), b = a;
    const std::string common = a;
    a += std::string("ab").substr(0, static_cast<std::size_t>(of_a));
    b += std::string("cd").substr(0, static_cast<std::size_t>(of_b));
    std::vector<char> left(a.begin(), a.end()), right(b.begin(), b.end());
    draws.shuffle(left);
    draws.shuffle(right);
    std::map<char, std::int64_t> sizes;
    for (const char letter : std::string("xyzabcd")) sizes[letter] = draws.integer(1, 4);
    Sizes shape_a, shape_b, dims_a, dims_b;
    std::string result;
    for (const char letter : left) {
      shape_a.push_back(sizes[letter]);
      if (common.find(letter) == std::string::npos) result += letter;
    }
    for (const char letter : right) {
      shape_b.push_back(sizes[letter]);
      if (common.find(letter) == std::string::npos) result += letter;
    }
    for (const char letter : common) {
      dims_a.push_back(std::ranges::find(left, letter) - left.begin());
      dims_b.push_back(std::ranges::find(right, letter) - right.begin());
      if (draws.one_in(2)) dims_a.back() -= static_cast<std::int64_t>(left.size());
    }
    SCOPED_TRACE(text_of(shape_a) + " and " + text_of(shape_b) + " over " + text_of(dims_a) + " and " +
                 text_of(dims_b));
    const Array x(draws.tensor(shape_a)), y(draws.tensor(shape_b));
    const std::vector<std::string> letters{std::string(left.begin(), left.end()),
                                           std::string(right.begin(), right.end())};
    expect_values(draws, {x, y}, sum_of_products(letters, {x, y}, result),
                  [&](const std::vector<Tensor>& t) { return tensordot(t[0], t[1], dims_a, dims_b); });
    if (dims_a.empty()) return;
    dims_a.pop_back();
    EXPECT_THROW(tensordot(draws.laid_out(x), draws.laid_out(y), dims_a, dims_b), Error);
  });
}

TEST(GeneratedProduct, KroneckersAndInnerOnes) {
  for_each_case(283, 150, [](Draws& draws) {
    const Array a(draws.tensor(draws.sizes(draws.integer(0, 3), 1, 3)));
    const Array b(draws.tensor(draws.sizes(draws.integer(0, 3), 1, 3)));
    SCOPED_TRACE(text_of(a.sizes) + " and " + text_of(b.sizes));
    const auto padded = [](Sizes sizes, std::size_t rank) {
      sizes.insert(sizes.begin(), rank - sizes.size(), 1);
      return sizes;
    };
    const std::size_t rank = std::max(a.sizes.size(), b.sizes.size());
    const Sizes of_a = padded(a.sizes, rank), of_b = padded(b.sizes, rank);
    Sizes out = of_a;
    for (std::size_t d = 0; d < rank; ++d) out[d] *= of_b[d];
    Array want(out);
    for_each_place(out, [&](const Sizes& at) {
      Sizes i(at), j(at);
      for (std::size_t d = 0; d < rank; ++d) {
        i[d] /= of_b[d];
        j[d] %= of_b[d];
      }
      Array wide_a(of_a), wide_b(of_b);
      want[at] = a.values[wide_a.index(i)] * b.values[wide_b.index(j)];
    });
    expect_values(draws, {a, b}, want, [](const std::vector<Tensor>& x) { return kron(x[0], x[1]); });
    if (a.sizes.empty() || b.sizes.empty()) return;
    Sizes other = b.sizes;
    other.back() = a.sizes.back();
    const Array c(draws.tensor(other));
    const std::string left = std::string("abc").substr(0, a.sizes.size() - 1);
    const std::string right = std::string("def").substr(0, other.size() - 1);
    expect_values(draws, {a, c}, sum_of_products({left + "k", right + "k"}, {a, c}, left + right),
                  [](const std::vector<Tensor>& x) { return inner(x[0], x[1]); });
    other.back() += 1;
    EXPECT_THROW(inner(draws.laid_out(a), draws.tensor(other)), Error);
  });
}

}  // namespace
}  // namespace tenon::test
