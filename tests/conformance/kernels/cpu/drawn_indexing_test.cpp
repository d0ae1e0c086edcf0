// Indexing of drawn operands beside loops.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using DrawnIndexing = CpuCase;

Tensor places(Draw& draw, const Sizes& sizes, i64 low, i64 high) {
  return draw.fill(draw.room(Dtype::kInt64, sizes), low, high);
}
/// The element of `self` whose first coordinates are those that the index tensors name at `lead`, and the others
/// `rest`.
i64 place_of(const Sizes& self, const std::vector<Tensor>& indices, i64 lead, const Sizes& rest) {
  i64 place = 0;
  for (std::size_t d = 0; d < self.size(); ++d) {
    i64 at = d < indices.size() ? indices[d].integer(lead) : rest[d - indices.size()];
    if (at < 0) at += self[d];
    place = place * self[d] + at;
  }
  return place;
}

struct Indexed {
  Sizes self, lead, rest, result;
  std::vector<Tensor> indices;
};
Indexed any_indices(Draw& draw) {
  Indexed all;
  const int rank = static_cast<int>(draw.number(1, 4));
  do {
    all.self = draw.sizes(rank, 1500);
  } while (product_of_sizes(all.self) == 0);
  all.lead = draw.sizes(static_cast<int>(draw.number(0, 2)), draw.one_in(15) ? 6000 : 60);
  const auto count = static_cast<std::size_t>(draw.number(1, rank));
  for (std::size_t k = 0; k < count; ++k) all.indices.push_back(places(draw, all.lead, -all.self[k], all.self[k] - 1));
  all.rest.assign(all.self.begin() + static_cast<std::ptrdiff_t>(count), all.self.end());
  while (product_of_sizes(all.lead) * product_of_sizes(all.rest) > 40000) {
    all.lead = {draw.number(1, 8)};
    for (std::size_t k = 0; k < count; ++k) all.indices[k] = places(draw, all.lead, -all.self[k], all.self[k] - 1);
  }
  all.result = all.lead;
  all.result.insert(all.result.end(), all.rest.begin(), all.rest.end());
  return all;
}

TEST_F(DrawnIndexing, IndexTakesTheRestOfEachPlace) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    const Indexed c = any_indices(draw);
    const Dtype dtype = draw.any_of(kAllTypes);
    const Tensor self = draw.spread(dtype, c.self), y = draw.room(dtype, c.result);
    const IndexAttributes a;
    std::vector<Tensor> inputs{self};
    inputs.insert(inputs.end(), c.indices.begin(), c.indices.end());
    bench.run("index", {y}, inputs, &a);
    Wanted wanted(dtype, c.result);
    const i64 rest = product_of_sizes(c.rest);
    for (i64 i = 0; i < y.count(); ++i)
      wanted.set(i, self.real(place_of(c.self, c.indices, i / rest, coordinates(i % rest, c.rest))));
    wanted.expect(y, "index");
  });
}

TEST_F(DrawnIndexing, IndexPutWritesOrAddsInTheOrderOfTheIndices) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    const Indexed c = any_indices(draw);
    const Dtype dtype = draw.any_of(kAllTypes);
    const Tensor self = draw.operand(dtype, c.self), values = draw.spread(dtype, c.result);
    const IndexAttributes a{.accumulate = dtype != Dtype::kBool && draw.one_in(2)};
    Tensor sums(Dtype::kFloat64, c.self);
    for (i64 i = 0; i < self.count(); ++i) sums.set(i, self.real(i));
    const i64 rest = product_of_sizes(c.rest);
    for (i64 i = 0; i < values.count(); ++i) {
      const i64 to = place_of(c.self, c.indices, i / rest, coordinates(i % rest, c.rest));
      sums.set(to, (a.accumulate ? sums.real(to) : 0) + values.real(i));
    }
    std::vector<Tensor> inputs{values};
    inputs.insert(inputs.end(), c.indices.begin(), c.indices.end());
    bench.run("index_put", {self}, inputs, &a);
    if (a.accumulate && size_of(dtype) == 2 && dtype >= Dtype::kFloat16) return;  // each sum is rounded
    Wanted wanted(dtype, c.self);
    for (i64 i = 0; i < self.count(); ++i) wanted.set(i, sums.real(i));
    wanted.expect(self, a.accumulate ? "sums" : "values");
  });
}

struct Along {
  Sizes sizes, selected;
  int dim = 0;
  i64 size = 1;
  Tensor index;
};
Along any_along(Draw& draw) {
  Along c;
  do {
    c.sizes = draw.sizes(static_cast<int>(draw.number(1, 4)), 2000);
  } while (product_of_sizes(c.sizes) == 0);
  c.dim = static_cast<int>(draw.number(0, static_cast<i64>(c.sizes.size()) - 1));
  const auto at = static_cast<std::size_t>(c.dim);
  c.size = c.sizes[at];
  const i64 beside = product_of_sizes(c.sizes) / c.size;
  const i64 count = draw.one_in(12) ? 0 : draw.number(1, std::max<i64>(1, std::min<i64>(40, 20000 / beside)));
  c.index = places(draw, {count}, 0, c.size - 1);
  c.selected = c.sizes;
  c.selected[at] = count;
  return c;
}
/// Where element i of (selected) lies in (sizes).
i64 along_place(const Along& c, i64 i) {
  Sizes at = coordinates(i, c.selected);
  const auto dim = static_cast<std::size_t>(c.dim);
  at[dim] = c.index.integer(at[dim]);
  i64 place = 0;
  for (std::size_t d = 0; d < at.size(); ++d) place = place * c.sizes[d] + at[d];
  return place;
}

TEST_F(DrawnIndexing, SelectedSlicesAreThoseOfTheirNumbersAndAreAdded) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    const Along c = any_along(draw);
    const Dtype dtype = draw.any_of(kAllTypes);
    const Tensor self = draw.spread(dtype, c.sizes), y = draw.room(dtype, c.selected);
    const DimAttributes a{.dim = c.dim};
    bench.run("index_select", {y}, {self, c.index}, &a);
    Wanted wanted(dtype, c.selected);
    for (i64 i = 0; i < y.count(); ++i) wanted.set(i, self.real(along_place(c, i)));
    wanted.expect(y, "index_select");

    const Dtype added[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64, Dtype::kUInt8};
    const Dtype of = draw.any_of(added);
    const Tensor sums = draw.operand(of, c.sizes), source = draw.spread(of, c.selected);
    const IndexAddAttributes add{.dim = c.dim, .alpha = static_cast<double>(draw.number(1, 3))};
    Tensor total(Dtype::kFloat64, c.sizes);
    for (i64 i = 0; i < sums.count(); ++i) total.set(i, sums.real(i));
    for (i64 i = 0; i < source.count(); ++i) {
      const i64 to = along_place(c, i);
      total.set(to, total.real(to) + add.alpha * source.real(i));
    }
    bench.run("index_add", {sums}, {c.index, source}, &add);
    Wanted all(of, c.sizes);
    for (i64 i = 0; i < sums.count(); ++i) all.set(i, total.real(i));
    all.expect(sums, "index_add");
  });
}

TEST_F(DrawnIndexing, GatheredAndScatteredElementsLieWhereTheirIndexSays) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    Sizes table;
    do {
      table = draw.sizes(static_cast<int>(draw.number(1, 4)), 2000);
    } while (product_of_sizes(table) == 0);
    const int dim = static_cast<int>(draw.number(0, static_cast<i64>(table.size()) - 1));
    const auto along = static_cast<std::size_t>(dim);
    Sizes chosen = table;
    for (i64& size : chosen) size = draw.number(1, size);
    chosen[along] = draw.number(0, 9);
    const Tensor index = places(draw, chosen, 0, table[along] - 1);
    const auto place = [&](i64 i) {
      Sizes at = coordinates(i, chosen);
      at[along] = index.integer(i);
      i64 result = 0;
      for (std::size_t d = 0; d < at.size(); ++d) result = result * table[d] + at[d];
      return result;
    };
    const Dtype dtype = draw.any_of(kAllTypes);
    const Tensor self = draw.spread(dtype, table), y = draw.room(dtype, chosen);
    const DimAttributes a{.dim = dim};
    bench.run("gather", {y}, {self, index}, &a);
    Wanted wanted(dtype, chosen);
    for (i64 i = 0; i < y.count(); ++i) wanted.set(i, self.real(place(i)));
    wanted.expect(y, "gather");

    const Dtype added[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt16, Dtype::kInt64, Dtype::kInt8};
    const Dtype of = draw.any_of(added);
    const ScatterAttributes scatter{.dim = dim, .add = draw.one_in(2)};
    const Tensor into = draw.operand(of, table), source = draw.spread(of, chosen);
    Tensor total(Dtype::kFloat64, table);
    for (i64 i = 0; i < into.count(); ++i) total.set(i, into.real(i));
    for (i64 i = 0; i < source.count(); ++i)
      total.set(place(i), (scatter.add ? total.real(place(i)) : 0) + source.real(i));
    bench.run("scatter", {into}, {index, source}, &scatter);
    Wanted all(of, table);
    for (i64 i = 0; i < into.count(); ++i) all.set(i, total.real(i));
    all.expect(into, scatter.add ? "sums" : "scatter");
  });
}

TEST_F(DrawnIndexing, RowsOfATableGetTheGradientsOfTheirUses) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const i64 vocabulary = draw.number(1, 9), count = draw.number(0, 40), width = draw.sizes(1, 600)[0];
    const Dtype dtype = draw.one_in(2) ? Dtype::kFloat32 : Dtype::kFloat64;
    const Tensor dy = draw.spread(dtype, {count, width}, -8, 8), index = places(draw, {count}, 0, vocabulary - 1);
    const EmbeddingBackwardAttributes a{.padding_index = draw.number(-1, vocabulary - 1),
                                        .scale_by_frequency = draw.one_in(2)};
    const Tensor dw = draw.room(dtype, {vocabulary, width});
    bench.run("embedding_backward", {dw}, {dy, index}, &a);
    for (i64 row = 0; row < vocabulary; ++row) {
      for (i64 column = 0; column < width; ++column) {
        double sum = 0, uses = 0;
        for (i64 i = 0; i < count; ++i) {
          if (index.integer(i) != row) continue;
          ++uses;
          sum += dy.real(i * width + column);
        }
        if (row == a.padding_index) sum = 0;
        if (a.scale_by_frequency && uses > 0) sum /= uses;
        ASSERT_NEAR(dw.real(row * width + column), sum, 1e-5) << row << ", " << column;
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
