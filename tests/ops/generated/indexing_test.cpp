// Reads and writes by index tensors of random shapes, strides and signs, held against loops; what lies one past either
// end is refused.
#include <tenon/core/error.h>

#include "draws.h"

#include <algorithm>

namespace tenon::test {
namespace {

/// Numbers in [-size, size), as int64.
Tensor draw_index(Draws& draws, const Sizes& sizes, std::int64_t size) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(product(sizes)));
  for (std::int64_t& value : values) value = draws.integer(-size, size - 1);
  return draws.in_some_layout(tenon::tensor(values, TensorOptions(kInt64)).view(sizes));
}

std::int64_t number_at(const Array& index, const Sizes& at, std::int64_t size) {
  const auto number = static_cast<std::int64_t>(index[at]);
  return number < 0 ? number + size : number;
}

/// x[i0, :, i2, …]: which dimensions have an index, and where each element of the result lies in x.
struct Expression {
  std::vector<std::optional<Tensor>> indices;
  Sizes result;
  std::function<Sizes(const Sizes&)> place;
};

Expression draw_expression(Draws& draws, const Sizes& sizes) {
  Expression e;
  Sizes shape = draws.sizes(draws.integer(0, 2), 1, 4);      // what the indices broadcast to
  if (!shape.empty() && draws.one_in(10)) shape.back() = 0;  // of nothing, nothing
  std::vector<std::size_t> indexed;
  std::vector<Array> numbers;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (draws.one_in(2) && !(d + 1 == sizes.size() && indexed.empty())) {
      e.indices.emplace_back();
      continue;
    }
    Sizes own = shape;
    for (std::int64_t& size : own)
      if (draws.one_in(4) && !(size == 0 && numbers.empty())) size = 1;  // one of them has the nothing
    while (!numbers.empty() && !own.empty() && own.front() == 1 && draws.one_in(2)) own.erase(own.begin());
    const Tensor index = draw_index(draws, own, sizes[d]);
    e.indices.emplace_back(index);
    indexed.push_back(d);
    numbers.emplace_back(index.expand(shape).contiguous());
  }
  // An axis of the shape that all indices leave at 1 is 1.
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    bool is_one = true;
    for (const auto& index : e.indices) {
      if (!index) continue;
      const std::int64_t from_end = static_cast<std::int64_t>(shape.size() - axis);
      is_one = is_one && (index->dim() < from_end || index->size(-from_end) == 1);
    }
    if (!is_one) continue;
    shape[axis] = 1;
    for (Array& array : numbers) {
      Array narrow(shape);
      for_each_place(shape, [&](const Sizes& at) { narrow[at] = array[at]; });
      array = narrow;
    }
  }
  // Neighbouring indices leave their axes where they are, separated ones put them in front.
  bool are_neighbours = true;
  for (std::size_t i = 1; i < indexed.size(); ++i) are_neighbours = are_neighbours && indexed[i] == indexed[i - 1] + 1;
  const std::size_t front = are_neighbours ? indexed.front() : 0;
  std::vector<std::size_t> kept;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (std::ranges::find(indexed, d) == indexed.end()) kept.push_back(d);
  for (std::size_t i = 0; i < front; ++i) e.result.push_back(sizes[kept[i]]);
  e.result.insert(e.result.end(), shape.begin(), shape.end());
  for (std::size_t i = front; i < kept.size(); ++i) e.result.push_back(sizes[kept[i]]);
  e.place = [=](const Sizes& at) {
    Sizes place(sizes.size());
    const auto first = at.begin() + static_cast<std::ptrdiff_t>(front);
    const Sizes of_index(first, first + static_cast<std::ptrdiff_t>(shape.size()));
    for (std::size_t i = 0; i < indexed.size(); ++i)
      place[indexed[i]] = number_at(numbers[i], of_index, sizes[indexed[i]]);
    for (std::size_t i = 0; i < kept.size(); ++i) place[kept[i]] = at[i < front ? i : i + shape.size()];
    return place;
  };
  return e;
}

TEST(GeneratedIndexing, ReadsByTensorsAndTheirGradients) {
  for_each_case(29, 400, [](Draws& draws) {
    const Array x(draws.tensor(draws.sizes(draws.integer(1, 4), 1, 5)));
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const Expression e = draw_expression(draws, x.sizes);
    SCOPED_TRACE("from " + text_of(x.sizes) + " to " + text_of(e.result));
    const Tensor scale = draws.tensor(e.result);
    const Array scales(scale);
    Array want(e.result), gradient(x.sizes);
    for_each_place(e.result, [&](const Sizes& at) {
      want[at] = x[e.place(at)];
      gradient[e.place(at)] += scales[at];
    });
    const Tensor got = index(input, e.indices);
    expect_near(got, want);
    (got * scale).sum().backward();
    expect_near(input.grad(), gradient);
  });
}

TEST(GeneratedIndexing, WritesAndAdditionsByTensors) {
  for_each_case(31, 400, [](Draws& draws) {
    Array x(draws.tensor(draws.sizes(draws.integer(1, 4), 1, 5)));
    Tensor target = draws.laid_out(x).clone();
    target = draws.in_some_layout(target);
    const Expression e = draw_expression(draws, x.sizes);
    SCOPED_TRACE("into " + text_of(x.sizes) + " of " + text_of(e.result));
    const bool adds = draws.one_in(2);
    Sizes given = e.result;
    for (std::int64_t& size : given)
      if (draws.one_in(4)) size = 1;
    // Written without adding, an element that is named twice takes either value: all are equal then.
    const Tensor values = adds ? draws.tensor(given) : full(given, draws.number(), TensorOptions(kFloat64));
    const Array all(values.expand(e.result).contiguous());
    for_each_place(e.result, [&](const Sizes& at) {
      double& element = x[e.place(at)];
      element = adds ? element + all[at] : all[at];
    });
    index_put_(target, e.indices, values, adds);
    expect_near(target, x);
  });
}

TEST(GeneratedIndexing, OnePastEitherEndIsRefusedAndNothingIsWritten) {
  for_each_case(37, 150, [](Draws& draws) {
    const Sizes sizes = draws.sizes(draws.integer(1, 3), 1, 5);
    const Array x(draws.tensor(sizes));
    Tensor target = draws.laid_out(x);
    const auto dim = static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(sizes.size()) - 1));
    const std::int64_t wrong = draws.one_in(2) ? sizes[dim] : -sizes[dim] - 1;
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(draws.integer(1, 6)), 0);
    numbers[static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(numbers.size()) - 1))] = wrong;
    const Tensor bad = tenon::tensor(numbers, TensorOptions(kInt64));
    std::vector<std::optional<Tensor>> indices(dim);
    indices.emplace_back(bad);
    SCOPED_TRACE("index " + std::to_string(wrong) + " along " + std::to_string(dim) + " of " + text_of(sizes));
    EXPECT_THROW(index(target, indices), IndexError);
    EXPECT_THROW(index_put_(target, indices, ones({1}, TensorOptions(kFloat64))), IndexError);
    EXPECT_THROW(index_put_(target, indices, ones({1}, TensorOptions(kFloat64)), true), IndexError);
    if (wrong > 0) {
      EXPECT_ANY_THROW(index_select(target, static_cast<std::int64_t>(dim), bad));
    }
    expect_near(target, x);
  });
}

TEST(GeneratedIndexing, GatherScatterAndTheirGradients) {
  for_each_case(41, 300, [](Draws& draws) {
    const Sizes sizes = draws.sizes(draws.integer(1, 3), 1, 6);
    const auto dim = static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(sizes.size()) - 1));
    const auto along = static_cast<std::int64_t>(dim);
    Sizes shape;
    for (const std::int64_t size : sizes) shape.push_back(draws.integer(draws.one_in(12) ? 0 : 1, size));
    shape[dim] = draws.integer(0, 7);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(product(shape)));
    for (std::int64_t& number : numbers) number = draws.integer(0, sizes[dim] - 1);
    const Tensor index = draws.in_some_layout(tenon::tensor(numbers, TensorOptions(kInt64)).view(shape));
    const Array places(index);
    SCOPED_TRACE("index of " + text_of(shape) + " along " + std::to_string(dim) + " of " + text_of(sizes));
    const auto place = [&](Sizes at) {
      at[dim] = static_cast<std::int64_t>(places[at]);
      return at;
    };
    const Array x(draws.tensor(sizes)), s(draws.tensor(shape));
    const Tensor input = draws.laid_out(x).set_requires_grad(true), source = draws.laid_out(s).set_requires_grad(true);

    Array want(shape), gradient(sizes);
    for_each_place(shape, [&](const Sizes& at) {
      want[at] = x[place(at)];
      gradient[place(at)] += s[at];
    });
    const Tensor got = gather(input, along, index);
    expect_near(got, want);
    (got * source.detach()).sum().backward();
    expect_near(input.grad(), gradient);

    Array added = x, of_source(shape);
    const Tensor scale = draws.tensor(sizes);
    const Array scales(scale);
    for_each_place(shape, [&](const Sizes& at) {
      added[place(at)] += s[at];
      of_source[at] = scales[place(at)];
    });
    const Tensor sum = scatter_add(input.detach(), along, index, source);
    expect_near(sum, added);
    (sum * scale).sum().backward();
    expect_near(source.grad(), of_source);
  });
}

TEST(GeneratedIndexing, RowsSelectedAndAdded) {
  for_each_case(43, 300, [](Draws& draws) {
    const Sizes sizes = draws.sizes(draws.integer(1, 4), 1, 6);
    const auto dim = static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(sizes.size()) - 1));
    const auto along = static_cast<std::int64_t>(dim);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(draws.integer(0, 8)));
    for (std::int64_t& row : rows) row = draws.integer(0, sizes[dim] - 1);
    Sizes shape = sizes;
    shape[dim] = static_cast<std::int64_t>(rows.size());
    SCOPED_TRACE(std::to_string(rows.size()) + " rows along " + std::to_string(dim) + " of " + text_of(sizes));
    const Tensor index = rows.empty() ? empty({0}, TensorOptions(kInt64))
                                      : draws.in_some_layout(tenon::tensor(rows, TensorOptions(kInt64)));
    const Array x(draws.tensor(sizes)), s(draws.tensor(shape));
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const auto place = [&](Sizes at) {
      at[dim] = rows[static_cast<std::size_t>(at[dim])];
      return at;
    };
    Array want(shape), gradient(sizes), added = x;
    const double factor = draws.number();
    for_each_place(shape, [&](const Sizes& at) {
      want[at] = x[place(at)];
      gradient[place(at)] += s[at];
      added[place(at)] += factor * s[at];
    });
    const Tensor source = draws.laid_out(s);
    const Tensor got = index_select(input, along, index);
    expect_near(got, want);
    (got * source).sum().backward();
    expect_near(input.grad(), gradient);
    expect_near(index_add(input.detach(), along, index, source, factor), added);
  });
}

}  // namespace
}  // namespace tenon::test
