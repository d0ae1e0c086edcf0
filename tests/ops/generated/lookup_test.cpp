// Rows looked up in tables, and bags of them, held against loops; gradients by linearity, frequencies and padding
// included.
#include <tenon/autograd/autograd.h>
#include <tenon/core/error.h>
#include <tenon/ops/indexing/embedding.h>
#include <tenon/ops/indexing/embedding_bag.h>

#include "draws.h"

namespace tenon::test {
namespace {

struct Table {
  Array weight;
  std::int64_t rows, features;
};

Table draw_table(Draws& draws) {
  const std::int64_t rows = draws.integer(1, 6),
                     features = draws.one_in(4) ? draws.integer(16, 40) : draws.integer(1, 4);
  return {Array(draws.tensor({rows, features})), rows, features};
}

std::vector<std::int64_t> draw_rows(Draws& draws, std::int64_t count, std::int64_t rows) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  for (std::int64_t& number : numbers) number = draws.integer(0, rows - 1);
  return numbers;
}

Tensor as_index(Draws& draws, const std::vector<std::int64_t>& numbers, const Sizes& sizes) {
  const Tensor whole =
      numbers.empty() ? empty(sizes, TensorOptions(kInt64)) : tenon::tensor(numbers, TensorOptions(kInt64)).view(sizes);
  return draws.in_some_layout(draws.one_in(2) ? whole : whole.to(kInt32));
}

TEST(GeneratedLookup, RowsAndTheirGradients) {
  for_each_case(293, 300, [](Draws& draws) {
    const Table table = draw_table(draws);
    const Sizes sizes = draws.sizes(draws.integer(0, 3), draws.one_in(10) ? 0 : 1, 5);
    const std::vector<std::int64_t> rows = draw_rows(draws, product(sizes), table.rows);
    const std::int64_t padding = draws.integer(-1, table.rows - 1);
    const bool by_frequency = draws.one_in(2);
    SCOPED_TRACE(text_of(table.weight.sizes) + " at " + text_of(sizes) + ", padding " + std::to_string(padding) +
                 (by_frequency ? ", by frequency" : ""));
    Sizes out = sizes;
    out.push_back(table.features);
    const Tensor scale = draws.tensor(out);
    const Array scales(scale);
    Array want(out), gradient(table.weight.sizes), of_scale(out);
    const Array other(draws.tensor(table.weight.sizes));  // what the gradient's gradient comes from
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::int64_t f = 0; f < table.features; ++f) {
        const std::size_t at = i * static_cast<std::size_t>(table.features) + static_cast<std::size_t>(f);
        want.values[at] = table.weight[{rows[i], f}];
        if (rows[i] == padding) continue;
        const auto times = by_frequency ? static_cast<double>(std::ranges::count(rows, rows[i])) : 1;
        gradient[{rows[i], f}] += scales.values[at] / times;
        of_scale.values[at] = other[{rows[i], f}] / times;
      }
    }
    const Tensor index = as_index(draws, rows, sizes);
    const Tensor weight = draws.laid_out(table.weight).set_requires_grad(true);
    const Tensor factor = draws.laid_out(scales).set_requires_grad(true);
    const Tensor got = embedding(weight, index, padding, by_frequency);
    expect_near(got, want);
    const Tensor first = autograd::grad({(got * factor).sum()}, {weight}, {}, std::nullopt, /*create_graph=*/true)[0];
    expect_near(first, gradient);
    (first * draws.laid_out(other)).sum().backward();
    expect_near(factor.grad(), of_scale);
    for (const std::int64_t wrong : {table.rows, std::int64_t{-1}}) {
      EXPECT_THROW(embedding(weight.detach(), tenon::tensor({wrong}, TensorOptions(kInt64))), IndexError);
    }
  });
}

/// Bags of rows: where each begins and ends, which elements count.
struct Bags {
  std::vector<std::int64_t> rows, offsets;
  std::vector<std::vector<std::size_t>> elements;  ///< positions that count
  std::vector<std::int64_t> of_element;
};

Bags draw_bags(Draws& draws, std::int64_t table_rows, std::int64_t padding) {
  Bags bags;
  const std::int64_t count = draws.integer(1, 4);
  for (std::int64_t bag = 0; bag < count; ++bag) {
    bags.offsets.push_back(static_cast<std::int64_t>(bags.rows.size()));
    bags.elements.emplace_back();
    for (std::int64_t i = draws.integer(0, 4); i > 0; --i) {
      bags.rows.push_back(draws.integer(0, table_rows - 1));
      bags.of_element.push_back(bag);
      if (bags.rows.back() != padding) bags.elements.back().push_back(bags.rows.size() - 1);
    }
  }
  return bags;
}

TEST(GeneratedLookup, BagsOfEveryModeAndTheirGradients) {
  for_each_case(307, 300, [](Draws& draws) {
    const Table table = draw_table(draws);
    const std::int64_t padding = draws.one_in(2) ? draws.integer(0, table.rows - 1) : -1;
    const Bags bags = draw_bags(draws, table.rows, padding);
    const std::int64_t mode = draws.integer(0, 2);
    const bool has_last = draws.one_in(2), is_weighted = mode == 0 && draws.one_in(2);
    const bool by_frequency = mode != 2 && draws.one_in(3);
    const auto count = static_cast<std::int64_t>(bags.offsets.size());
    SCOPED_TRACE(text_of(table.weight.sizes) + ", offsets " + text_of(bags.offsets) + ", rows " + text_of(bags.rows) +
                 ", mode " + std::to_string(mode) + ", padding " + std::to_string(padding));
    Array weight = table.weight;  // no two rows alike, so that each maximum is one row's
    for (std::size_t i = 0; i < weight.values.size(); ++i) weight.values[i] += 1e-4 * static_cast<double>(i);
    const Array factors(draws.tensor({static_cast<std::int64_t>(bags.rows.size())}));
    std::vector<double> times(static_cast<std::size_t>(table.rows), 0);
    for (const auto& elements : bags.elements)
      for (const std::size_t i : elements) ++times[static_cast<std::size_t>(bags.rows[i])];
    const Sizes out{count, table.features};
    const Tensor scale = draws.tensor(out);
    const Array scales(scale);
    Array want(out), gradient(weight.sizes), of_factors(factors.sizes), sizes({count}), places(out, -1);
    for (std::int64_t bag = 0; bag < count; ++bag) {
      const auto& elements = bags.elements[static_cast<std::size_t>(bag)];
      sizes[{bag}] = static_cast<double>(elements.size());
      for (std::int64_t f = 0; f < table.features; ++f) {
        std::size_t best = 0;
        for (std::size_t k = 0; k < elements.size(); ++k) {
          const std::int64_t row = bags.rows[elements[k]];
          if (weight[{row, f}] > weight[{bags.rows[elements[best]], f}]) best = k;
          const double factor = is_weighted ? factors.values[elements[k]] : 1;
          const double share = mode == 1 ? 1 / static_cast<double>(elements.size()) : 1;
          if (mode == 2) continue;
          want[{bag, f}] += factor * share * weight[{row, f}];
          gradient[{row, f}] +=
              scales[{bag, f}] * factor * share / (by_frequency ? times[static_cast<std::size_t>(row)] : 1);
          of_factors.values[elements[k]] += scales[{bag, f}] * weight[{row, f}];
        }
        if (mode != 2 || elements.empty()) continue;
        const std::int64_t row = bags.rows[elements[best]];
        want[{bag, f}] = weight[{row, f}];
        places[{bag, f}] = static_cast<double>(row);
        gradient[{row, f}] += scales[{bag, f}];
      }
    }
    std::vector<std::int64_t> offsets = bags.offsets;
    if (has_last) offsets.push_back(static_cast<std::int64_t>(bags.rows.size()));
    const auto list = [&](const std::vector<std::int64_t>& numbers) {
      return as_index(draws, numbers, {static_cast<std::int64_t>(numbers.size())});
    };
    const Tensor leaf = draws.laid_out(weight).set_requires_grad(true);
    const Tensor own = is_weighted ? draws.laid_out(factors).set_requires_grad(true) : Tensor();
    std::optional<std::int64_t> given;
    if (padding >= 0) given = draws.one_in(2) ? padding : padding - table.rows;
    const auto [got, of_element, counts, from] =
        embedding_bag(leaf, list(bags.rows), list(offsets), by_frequency, mode, false, own, has_last, given);
    expect_near(got, want);
    expect_near(counts, sizes);
    if (mode == 2) expect_near(from, places);
    Array elements({static_cast<std::int64_t>(bags.rows.size())});
    for (std::size_t i = 0; i < bags.rows.size(); ++i) elements.values[i] = static_cast<double>(bags.of_element[i]);
    expect_near(of_element, elements);
    if (bags.rows.empty()) return;
    (got * scale).sum().backward();
    if (leaf.grad().defined()) expect_near(leaf.grad(), gradient);
    if (is_weighted) expect_near(own.grad(), of_factors);
  });
}

TEST(GeneratedLookup, OffsetsThatFallOrLeaveTheIndicesAreRefused) {
  const Tensor weight = ones({3, 2}), rows = tenon::tensor({0, 1, 2, 0}, TensorOptions(kInt64));
  const auto call = [&](std::vector<std::int64_t> offsets, bool has_last = false,
                        std::optional<std::int64_t> padding = std::nullopt) {
    return embedding_bag(weight, rows, tenon::tensor(offsets, TensorOptions(kInt64)), false, 0, false, {}, has_last,
                         padding);
  };
  EXPECT_NO_THROW(call({0, 4}));
  EXPECT_NO_THROW(call({0, 2, 2}));
  EXPECT_THROW(call({1, 2}), Error);
  EXPECT_THROW(call({0, 3, 2}), Error);
  EXPECT_THROW(call({0, 5}), Error);
  EXPECT_NO_THROW(call({0, 2}, true, 2));
  EXPECT_NO_THROW(call({0, 2}, false, -3));
  EXPECT_THROW(call({0, 2}, false, 3), Error);
  EXPECT_THROW(call({0, 2}, false, -4), Error);
  EXPECT_THROW(embedding_bag(weight, rows, rows.narrow(0, 0, 0), false, 0, false, {}, true), Error);
  EXPECT_THROW(embedding_bag(weight, rows, rows.narrow(0, 0, 1), false, 3), Error);
  EXPECT_THROW(embedding_bag(weight, rows, rows.narrow(0, 0, 1), false, -1), Error);
  EXPECT_THROW(embedding_bag(weight, rows, rows.narrow(0, 0, 1), false, 1, false, ones({4})), Error);
  EXPECT_THROW(embedding_bag(weight, rows, rows.narrow(0, 0, 1), false, 0, false, ones({3})), Error);
}

TEST(GeneratedLookup, RowsThatAreNamedAreScaledDownToTheMostTheyMayMeasure) {
  for_each_case(311, 150, [](Draws& draws) {
    Table table = draw_table(draws);
    const std::vector<std::int64_t> rows = draw_rows(draws, draws.integer(0, 4), table.rows);
    const double p = static_cast<double>(draws.integer(1, 3)), most = draws.of(std::vector<double>{0.3, 1, 4});
    SCOPED_TRACE(text_of(table.weight.sizes) + " at " + text_of(rows) + ", p " + std::to_string(p));
    Tensor weight = draws.laid_out(table.weight).clone();
    embedding_renorm_(weight, as_index(draws, rows, {static_cast<std::int64_t>(rows.size())}), most, p);
    for (std::int64_t row = 0; row < table.rows; ++row) {
      if (std::ranges::find(rows, row) == rows.end()) continue;
      double norm = 0;
      for (std::int64_t f = 0; f < table.features; ++f) norm += std::pow(std::abs(table.weight[{row, f}]), p);
      norm = std::pow(norm, 1 / p);
      if (norm <= most) continue;
      for (std::int64_t f = 0; f < table.features; ++f) table.weight[{row, f}] *= most / (norm + 1e-7);
    }
    expect_near(weight, table.weight);
  });
}

}  // namespace
}  // namespace tenon::test
