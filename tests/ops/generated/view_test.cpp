// Views of random tensors held against where each element of the result comes from: values, memory that is shared, and
// gradients.
#include "selection.h"

namespace tenon::test {
namespace {

TEST(GeneratedView, PartsOfADimension) {
  for_each_case(193, 400, [](Draws& draws) {
    const Array x = draw_array(draws);
    const Dim dim = draw_dim(draws, rank_of(x.sizes));
    const std::int64_t length = x.sizes[dim.at];
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(dim.given));
    // A slice counts from the end where negative, and is cut at both ends.
    const auto bound = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
      std::int64_t at = given.value_or(otherwise);
      if (at < 0) at += length;
      return std::clamp<std::int64_t>(at, 0, length);
    };
    std::optional<std::int64_t> first, last;
    if (!draws.one_in(4)) first = draws.integer(-length - 2, length + 2);
    if (!draws.one_in(4)) last = draws.integer(-length - 2, length + 2);
    const std::int64_t step = draws.integer(1, 3), start = bound(first, 0), end = bound(last, length);
    Sizes out = x.sizes;
    out[dim.at] = std::max<std::int64_t>(0, (end - start + step - 1) / step);
    if (end < start) out[dim.at] = 0;
    expect_selection(
        draws, x, out, [&](const Tensor& t) { return t.slice(dim.given, first, last, step); },
        [&](Sizes at) {
          at[dim.at] = start + at[dim.at] * step;
          return std::optional(at);
        },
        Kind::kView);
    const std::int64_t number = draws.integer(-length, length - 1);
    out = x.sizes;
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(dim.at));
    expect_selection(
        draws, x, out, [&](const Tensor& t) { return t.select(dim.given, number); },
        [&](Sizes at) {
          at.insert(at.begin() + static_cast<std::ptrdiff_t>(dim.at), number < 0 ? number + length : number);
          return std::optional(at);
        },
        Kind::kView);
    const std::int64_t from = draws.integer(-length, length), begin = from < 0 ? from + length : from;
    out = x.sizes;
    out[dim.at] = draws.integer(0, length - begin);
    expect_selection(
        draws, x, out, [&](const Tensor& t) { return t.narrow(dim.given, from, out[dim.at]); },
        [&](Sizes at) {
          at[dim.at] += begin;
          return std::optional(at);
        },
        Kind::kView);
    const Tensor whole = draws.laid_out(x);
    EXPECT_THROW(whole.select(dim.given, length), IndexError);
    EXPECT_THROW(whole.select(dim.given, -length - 1), IndexError);
    EXPECT_THROW(whole.narrow(dim.given, from, length - begin + 1), Error);
    EXPECT_THROW(whole.narrow(dim.given, length + 1, 0), Error);
    EXPECT_THROW(whole.narrow(dim.given, -length - 1, 1), Error);
    EXPECT_THROW(whole.narrow(dim.given, 0, -1), Error);
    EXPECT_THROW(whole.slice(dim.given, 0, 1, 0), Error);
    EXPECT_THROW(whole.select(rank_of(x.sizes), 0), Error);
    EXPECT_THROW(whole.select(-rank_of(x.sizes) - 1, 0), Error);
  });
}

TEST(GeneratedView, WindowsAndDiagonals) {
  for_each_case(197, 400, [](Draws& draws) {
    const Array x = draw_array(draws, 2);
    const Dim dim = draw_dim(draws, rank_of(x.sizes));
    const std::int64_t length = x.sizes[dim.at], size = draws.integer(0, length), step = draws.integer(1, 4);
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(dim.given));
    Sizes out = x.sizes;
    out[dim.at] = (length - size) / step + 1;
    out.push_back(size);
    expect_selection(
        draws, x, out, [&](const Tensor& t) { return t.unfold(dim.given, size, step); },
        [&](Sizes at) {
          at[dim.at] = at[dim.at] * step + at.back();
          at.pop_back();
          return std::optional(at);
        },
        Kind::kView);
    Dim other = draw_dim(draws, rank_of(x.sizes));
    while (other.at == dim.at) other = draw_dim(draws, rank_of(x.sizes));
    const std::int64_t rows = length, columns = x.sizes[other.at];
    const std::int64_t offset = draws.integer(-rows - 1, columns + 1);
    const std::int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
    out.clear();
    for (std::size_t d = 0; d < x.sizes.size(); ++d)
      if (d != dim.at && d != other.at) out.push_back(x.sizes[d]);
    out.push_back(std::max<std::int64_t>(0, std::min(rows - down, columns - right)));
    expect_selection(
        draws, x, out, [&](const Tensor& t) { return t.diagonal(offset, dim.given, other.given); },
        [&](const Sizes& at) {
          Sizes from(x.sizes.size());
          std::size_t next = 0;
          for (std::size_t d = 0; d < from.size(); ++d)
            if (d != dim.at && d != other.at) from[d] = at[next++];
          from[dim.at] = at.back() + down;
          from[other.at] = at.back() + right;
          return std::optional(from);
        },
        Kind::kView);
    const Tensor whole = draws.laid_out(x);
    EXPECT_THROW(whole.unfold(dim.given, length + 1, 1), Error);
    EXPECT_THROW(whole.unfold(dim.given, 1, 0), Error);
    EXPECT_THROW(whole.diagonal(0, dim.given, static_cast<std::int64_t>(dim.at)), Error);
  });
}

TEST(GeneratedView, AnyStridesInAStorage) {
  for_each_case(199, 300, [](Draws& draws) {
    // Of a contiguous tensor, so that a place in its storage is a place of the tensor; parts may overlap.
    const Array x(draws.tensor(draws.sizes(1, 4, 30)));
    const std::int64_t length = x.sizes[0];
    const Sizes sizes = draws.sizes(draws.integer(0, 3), 1, 3);
    Sizes strides = draws.sizes(rank_of(sizes), 0, 5);
    std::int64_t reach = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) reach += (sizes[d] - 1) * strides[d];
    if (reach >= length) return;
    const std::int64_t offset = draws.integer(0, length - 1 - reach);
    SCOPED_TRACE(text_of(sizes) + " by " + text_of(strides) + " from " + std::to_string(offset));
    const Tensor base = Tensor(draws.laid_out(x).clone()).contiguous().set_requires_grad(true);
    const auto place = [&](const Sizes& at) {
      std::int64_t from = offset;
      for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * strides[d];
      return Sizes{from};
    };
    const Tensor weight = draws.tensor(sizes);
    const Array weights(weight);
    Array want(sizes), gradient(x.sizes);
    for_each_place(sizes, [&](const Sizes& at) {
      want[at] = x[place(at)];
      gradient[place(at)] += weights[at];
    });
    const Tensor got = base.as_strided(sizes, strides, offset);
    expect_near(got, want);
    (got * weight).sum().backward();
    expect_near(base.grad(), gradient);
    EXPECT_THROW(base.as_strided(sizes, strides, length - reach), Error);
    EXPECT_THROW(base.as_strided(sizes, strides, -1), Error);
  });
}

TEST(GeneratedView, OrdersOfDimensions) {
  for_each_case(211, 300, [](Draws& draws) {
    const Array x = draw_array(draws);
    const std::int64_t rank = rank_of(x.sizes);
    std::vector<std::int64_t> order(x.sizes.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<std::int64_t>(d);
    draws.shuffle(order);
    SCOPED_TRACE(text_of(x.sizes) + " in order " + text_of(order));
    const auto permuted = [&](const std::vector<std::int64_t>& by, const Rearrangement& function) {
      Sizes out;
      for (const std::int64_t d : by) out.push_back(x.sizes[index_of(d)]);
      expect_selection(
          draws, x, out, function,
          [&](const Sizes& at) {
            Sizes from(at.size());
            for (std::size_t d = 0; d < at.size(); ++d) from[index_of(by[d])] = at[d];
            return std::optional(from);
          },
          Kind::kView);
    };
    std::vector<std::int64_t> given = order;
    for (std::int64_t& d : given)
      if (draws.one_in(2)) d -= rank;
    permuted(order, [&](const Tensor& t) { return t.permute(given); });
    const Dim a = draw_dim(draws, rank), b = draw_dim(draws, rank);
    std::vector<std::int64_t> swapped(x.sizes.size());
    for (std::size_t d = 0; d < swapped.size(); ++d) swapped[d] = static_cast<std::int64_t>(d);
    std::vector<std::int64_t> moved = swapped;
    std::swap(swapped[a.at], swapped[b.at]);
    permuted(swapped, [&](const Tensor& t) { return t.transpose(a.given, b.given); });
    moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(a.at));
    moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(b.at), static_cast<std::int64_t>(a.at));
    permuted(moved, [&](const Tensor& t) { return t.movedim(a.given, b.given); });
    // Several at once: the dimension `sources[i]` goes to `targets[i]`, the others keep their order.
    std::vector<std::int64_t> sources = order, targets = order;
    draws.shuffle(targets);
    const auto count = index_of(draws.integer(1, rank));
    sources.resize(count);
    targets.resize(count);
    std::vector<std::int64_t> several(x.sizes.size(), -1);
    for (std::size_t i = 0; i < count; ++i) several[index_of(targets[i])] = sources[i];
    std::int64_t next = 0;
    for (std::int64_t& d : several) {
      if (d != -1) continue;
      while (std::ranges::find(sources, next) != sources.end()) ++next;
      d = next++;
    }
    permuted(several, [&](const Tensor& t) { return t.movedim(sources, targets); });
    const Tensor whole = draws.laid_out(x);
    std::vector<std::int64_t> twice = order;
    twice.back() = twice.front();
    if (rank > 1) {
      EXPECT_THROW(whole.permute(twice), Error);
    }
    twice.push_back(0);
    EXPECT_THROW(whole.permute(twice), Error);
    EXPECT_THROW(whole.transpose(0, rank), Error);
  });
}

TEST(GeneratedView, OtherSizesOfTheSameElements) {
  for_each_case(223, 400, [](Draws& draws) {
    const Array x = draw_array(draws, 0);
    const std::int64_t rank = rank_of(x.sizes);
    // Random sizes of as many elements.
    Sizes out;
    std::int64_t rest = product(x.sizes);
    while (rest > 1) {
      std::int64_t size = out.size() < 6 ? draws.integer(1, rest) : rest;
      while (rest % size != 0) --size;
      out.push_back(size);
      rest /= size;
    }
    if (draws.one_in(3)) out.insert(out.begin() + draws.integer(0, rank_of(out)), 1);
    Sizes given = out;
    if (!given.empty() && draws.one_in(2)) given[index_of(draws.integer(0, rank_of(out) - 1))] = -1;
    SCOPED_TRACE(text_of(x.sizes) + " as " + text_of(given));
    const auto in_row_major_order = [&](const Sizes& shape) -> Source {
      return [&, shape](const Sizes& at) {
        auto index = static_cast<std::int64_t>(Array(shape).index(at));
        Sizes from(x.sizes.size());
        for (std::size_t d = from.size(); d-- > 0; index /= x.sizes[d]) from[d] = index % x.sizes[d];
        return std::optional(from);
      };
    };
    const auto as = [&](const Sizes& shape, const Rearrangement& function, Kind kind = Kind::kEither) {
      expect_selection(draws, x, shape, function, in_row_major_order(shape), kind);
    };
    as(out, [&](const Tensor& t) { return t.reshape(given); });
    as(out, [&](const Tensor& t) { return t.contiguous().view(given); });
    as({product(x.sizes)}, [](const Tensor& t) { return t.ravel(); });
    Sizes without, with = x.sizes;
    for (const std::int64_t size : x.sizes)
      if (size != 1) without.push_back(size);
    as(
        without, [](const Tensor& t) { return t.squeeze(); }, Kind::kView);
    const std::int64_t place = draws.integer(0, rank);
    with.insert(with.begin() + place, 1);
    as(
        with, [&](const Tensor& t) { return t.unsqueeze(draws.one_in(2) ? place : place - rank - 1); }, Kind::kView);
    EXPECT_THROW(draws.laid_out(x).unsqueeze(rank + 1), Error);
    EXPECT_THROW(draws.laid_out(x).reshape({product(x.sizes) + 1}), Error);
    EXPECT_THROW(draws.laid_out(x).reshape({-1, -1}), Error);
    if (rank == 0) return;
    const Dim one = draw_dim(draws, rank), two = draw_dim(draws, rank);
    Sizes squeezed = x.sizes;
    if (squeezed[one.at] == 1) squeezed.erase(squeezed.begin() + static_cast<std::ptrdiff_t>(one.at));
    as(
        squeezed, [&](const Tensor& t) { return t.squeeze(one.given); }, Kind::kView);
    const Dim first = one.at <= two.at ? one : two, last = one.at <= two.at ? two : one;
    Sizes flat(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(first.at));
    std::int64_t run = 1;
    for (std::size_t d = first.at; d <= last.at; ++d) run *= x.sizes[d];
    flat.push_back(run);
    flat.insert(flat.end(), x.sizes.begin() + static_cast<std::ptrdiff_t>(last.at) + 1, x.sizes.end());
    as(flat, [&](const Tensor& t) { return t.flatten(first.given, last.given); });
    if (first.at != last.at) {
      EXPECT_THROW(draws.laid_out(x).flatten(last.given, first.given), Error);
    }
    std::int64_t factor = draws.integer(1, x.sizes[one.at]);
    while (x.sizes[one.at] % factor != 0) --factor;
    Sizes split = x.sizes;
    split[one.at] = factor;
    split.insert(split.begin() + static_cast<std::ptrdiff_t>(one.at) + 1, x.sizes[one.at] / factor);
    const std::int64_t inferred = draws.one_in(2) ? -1 : x.sizes[one.at] / factor;
    as(
        split,
        [&](const Tensor& t) {
          return t.unflatten(one.given, {factor, inferred});
        },
        Kind::kView);
    EXPECT_THROW(draws.laid_out(x).unflatten(one.given, {factor, x.sizes[one.at] / factor + 1}), Error);
  });
}

}  // namespace
}  // namespace tenon::test
