// Tensors repeated, turned, padded, joined and cut, held against where each element of the result comes from.
#include "selection.h"

namespace tenon::test {
namespace {

TEST(GeneratedShape, LargerSizesByRepeating) {
  for_each_case(227, 300, [](Draws& draws) {
    Array x = draw_array(draws, 0);
    for (std::int64_t& size : x.sizes)
      if (draws.one_in(2)) size = 1;
    x = Array(draws.tensor(x.sizes));
    const std::int64_t added = draws.integer(0, 2);
    SCOPED_TRACE(text_of(x.sizes) + " and " + std::to_string(added) + " more dimensions");
    Sizes out = draws.sizes(added, 1, 3), repeats = draws.sizes(added + rank_of(x.sizes), 0, 3);
    for (const std::int64_t size : x.sizes) out.push_back(size == 1 ? draws.integer(0, 3) : size);
    Sizes given = out;
    for (std::size_t d = 0; d < x.sizes.size(); ++d)
      if (out[index_of(added) + d] == x.sizes[d] && draws.one_in(3)) given[index_of(added) + d] = -1;
    const auto wrapped = [&](const Sizes& at) {
      Sizes from(at.begin() + added, at.end());
      for (std::size_t d = 0; d < from.size(); ++d) from[d] %= x.sizes[d];
      return std::optional(from);
    };
    expect_selection(
        draws, x, out, [&](const Tensor& t) { return t.expand(given); }, wrapped, Kind::kView);
    Sizes repeated = repeats;
    for (std::size_t d = 0; d < x.sizes.size(); ++d) repeated[index_of(added) + d] *= x.sizes[d];
    expect_selection(
        draws, x, repeated, [&](const Tensor& t) { return t.repeat(repeats); }, wrapped, Kind::kCopy);
    Sizes fewer(repeats.begin() + added, repeats.end()), tiled = x.sizes;
    if (!fewer.empty() && draws.one_in(2)) fewer.erase(fewer.begin());
    const std::size_t missing = tiled.size() - fewer.size();
    for (std::size_t d = 0; d < fewer.size(); ++d) tiled[missing + d] *= fewer[d];
    expect_selection(
        draws, x, tiled, [&](const Tensor& t) { return t.tile(fewer); },
        [&](Sizes at) {
          for (std::size_t d = 0; d < at.size(); ++d) at[d] %= x.sizes[d];
          return std::optional(at);
        });
    if (x.sizes.empty()) return;
    const Dim dim = draw_dim(draws, rank_of(x.sizes));
    const std::int64_t times = draws.integer(0, 3);
    Sizes interleaved = x.sizes;
    interleaved[dim.at] *= times;
    expect_selection(
        draws, x, interleaved, [&](const Tensor& t) { return t.repeat_interleave(times, dim.given); },
        [&](Sizes at) {
          at[dim.at] /= times;
          return std::optional(at);
        },
        Kind::kCopy);
    Sizes wrong = x.sizes;
    wrong[dim.at] += 1;
    if (x.sizes[dim.at] != 1) {
      EXPECT_THROW(draws.laid_out(x).expand(wrong), Error);
    }
    EXPECT_THROW(draws.laid_out(x).repeat(Sizes(x.sizes.size() - 1, 1)), Error);
  });
}

TEST(GeneratedShape, TurnedAndMirrored) {
  for_each_case(229, 300, [](Draws& draws) {
    const Array x = draw_array(draws, 2);
    const std::int64_t rank = rank_of(x.sizes);
    const Dim one = draw_dim(draws, rank);
    Dim two = draw_dim(draws, rank);
    while (two.at == one.at) two = draw_dim(draws, rank);
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(one.given) + " and " + std::to_string(two.given));
    expect_selection(
        draws, x, x.sizes,
        [&](const Tensor& t) {
          return t.flip({one.given, two.given});
        },
        [&](Sizes at) {
          for (const std::size_t d : {one.at, two.at}) at[d] = x.sizes[d] - 1 - at[d];
          return std::optional(at);
        },
        Kind::kCopy);
    const std::int64_t shift = draws.integer(-7, 7), other = draws.integer(-7, 7);
    const auto rolled = [](std::int64_t at, std::int64_t by, std::int64_t size) {
      return ((at - by) % size + size) % size;
    };
    expect_selection(
        draws, x, x.sizes,
        [&](const Tensor& t) {
          return t.roll({shift, other}, {one.given, two.given});
        },
        [&](Sizes at) {
          at[one.at] = rolled(at[one.at], shift, x.sizes[one.at]);
          at[two.at] = rolled(at[two.at], other, x.sizes[two.at]);
          return std::optional(at);
        },
        Kind::kCopy);
    expect_selection(
        draws, x, x.sizes, [&](const Tensor& t) { return t.roll({shift}); },
        [&](Sizes at) {
          std::int64_t index = rolled(static_cast<std::int64_t>(x.index(at)), shift, product(x.sizes));
          for (std::size_t d = at.size(); d-- > 0; index /= x.sizes[d]) at[d] = index % x.sizes[d];
          return std::optional(at);
        });
    const std::int64_t turns = draws.integer(-5, 5), quarter = (turns % 4 + 4) % 4;
    Sizes out = x.sizes;
    if (quarter % 2 == 1) std::swap(out[one.at], out[two.at]);
    // A quarter turn takes the first dimension towards the second.
    expect_selection(
        draws, x, out,
        [&](const Tensor& t) {
          return t.rot90(turns, {one.given, two.given});
        },
        [&](Sizes at) {
          const std::int64_t i = at[one.at], j = at[two.at], rows = x.sizes[one.at], columns = x.sizes[two.at];
          if (quarter == 1) at[one.at] = j, at[two.at] = columns - 1 - i;
          if (quarter == 2) at[one.at] = rows - 1 - i, at[two.at] = columns - 1 - j;
          if (quarter == 3) at[one.at] = rows - 1 - j, at[two.at] = i;
          return std::optional(at);
        },
        Kind::kCopy);
    const Tensor whole = draws.laid_out(x);
    EXPECT_THROW(whole.flip({one.given, static_cast<std::int64_t>(one.at)}), Error);
    EXPECT_THROW(whole.roll({1, 2}, {one.given}), Error);
    EXPECT_THROW(whole.rot90(1, {one.given, static_cast<std::int64_t>(one.at)}), Error);
  });
}

TEST(GeneratedShape, TrianglesAndMatricesOfDiagonals) {
  for_each_case(233, 300, [](Draws& draws) {
    const Array x = draw_array(draws, 2);
    const std::size_t row = x.sizes.size() - 2, column = x.sizes.size() - 1;
    const std::int64_t diagonal = draws.integer(-x.sizes[row] - 1, x.sizes[column] + 1);
    SCOPED_TRACE(text_of(x.sizes) + ", diagonal " + std::to_string(diagonal));
    expect_selection(
        draws, x, x.sizes, [&](const Tensor& t) { return t.tril(diagonal); },
        [&](const Sizes& at) { return at[column] - at[row] <= diagonal ? std::optional(at) : std::nullopt; },
        Kind::kCopy);
    expect_selection(
        draws, x, x.sizes, [&](const Tensor& t) { return t.triu(diagonal); },
        [&](const Sizes& at) { return at[column] - at[row] >= diagonal ? std::optional(at) : std::nullopt; },
        Kind::kCopy);
    const Array line = draw_array(draws);
    const std::int64_t rank = rank_of(line.sizes) + 1, offset = draws.integer(-3, 3);
    const Dim a = draw_dim(draws, rank);
    Dim b = draw_dim(draws, rank);
    while (b.at == a.at) b = draw_dim(draws, rank);
    Sizes out(line.sizes.begin(), line.sizes.end() - 1);
    for (const std::size_t d : {std::min(a.at, b.at), std::max(a.at, b.at)})
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(d), line.sizes.back() + std::abs(offset));
    expect_selection(
        draws, line, out, [&](const Tensor& t) { return t.diag_embed(offset, a.given, b.given); },
        [&](const Sizes& at) -> std::optional<Sizes> {
          const std::int64_t i = at[a.at], j = at[b.at];
          if (j - i != offset) return std::nullopt;
          Sizes from;
          for (std::size_t d = 0; d < at.size(); ++d)
            if (d != a.at && d != b.at) from.push_back(at[d]);
          from.push_back(offset >= 0 ? i : j);
          return from;
        },
        Kind::kCopy);
    const std::int64_t side = product(line.sizes) + std::abs(offset);
    expect_selection(
        draws, line, {side, side}, [&](const Tensor& t) { return t.diagflat(offset); },
        [&](const Sizes& at) -> std::optional<Sizes> {
          if (at[1] - at[0] != offset) return std::nullopt;
          std::int64_t index = offset >= 0 ? at[0] : at[1];
          Sizes from(line.sizes.size());
          for (std::size_t d = from.size(); d-- > 0; index /= line.sizes[d]) from[d] = index % line.sizes[d];
          return from;
        },
        Kind::kCopy);
    EXPECT_THROW(draws.laid_out(line).diag_embed(0, a.given, static_cast<std::int64_t>(a.at)), Error);
  });
}

TEST(GeneratedShape, FilledDiagonals) {
  for_each_case(239, 200, [](Draws& draws) {
    Array x(draws.tensor(draws.one_in(3) ? Sizes(3, draws.integer(1, 4)) : draws.sizes(2, 1, 9)));
    const bool wraps = draws.one_in(2);
    SCOPED_TRACE(text_of(x.sizes) + (wraps ? ", wrapped" : ""));
    const Tensor target = draws.laid_out(x).clone();
    for_each_place(x.sizes, [&](const Sizes& at) {
      std::int64_t row = at[0];
      if (wraps && at.size() == 2) row %= x.sizes[1] + 1;
      bool is_equal = true;
      for (std::size_t d = 1; d < at.size(); ++d) is_equal = is_equal && at[d] == row;
      if (is_equal) x[at] = 9;
    });
    target.fill_diagonal_(9, wraps);
    expect_near(target, x);
  });
}

TEST(GeneratedShape, PaddedInEveryMode) {
  for_each_case(241, 400, [](Draws& draws) {
    const Array x = draw_array(draws);
    const std::int64_t count = draws.integer(1, rank_of(x.sizes));
    const std::string mode = draws.of(std::vector<std::string>{"constant", "replicate", "reflect", "circular"});
    Sizes amounts, out = x.sizes, before(x.sizes.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t d = x.sizes.size() - 1 - index_of(i);
      const std::int64_t length = x.sizes[d];
      const std::int64_t most = mode == "reflect" ? length - 1 : mode == "circular" ? length : 4;
      const std::int64_t left = draws.integer(mode == "constant" ? -(length / 2) : 0, most);
      const std::int64_t right = draws.integer(mode == "constant" ? -(length / 2) : 0, most);
      amounts.insert(amounts.end(), {left, right});
      out[d] += left + right;
      before[d] = left;
    }
    if (*std::ranges::min_element(out) < 0) return;
    SCOPED_TRACE(text_of(x.sizes) + ", " + mode + " by " + text_of(amounts));
    expect_selection(
        draws, x, out, [&](const Tensor& t) { return pad(t, amounts, mode); },
        [&](Sizes at) -> std::optional<Sizes> {
          for (std::size_t d = 0; d < at.size(); ++d) {
            const std::int64_t size = x.sizes[d];
            at[d] -= before[d];
            if (mode == "replicate") at[d] = std::clamp<std::int64_t>(at[d], 0, size - 1);
            if (mode == "circular") at[d] = (at[d] + size) % size;
            if (mode == "reflect") {
              at[d] = std::abs(at[d]);
              if (at[d] >= size) at[d] = 2 * (size - 1) - at[d];
            }
            if (at[d] < 0 || at[d] >= size) return std::nullopt;
          }
          return at;
        });
    if (mode == "constant") {
      const Tensor sevens = pad(draws.laid_out(x), amounts, mode, 7.5);
      const Tensor mask = pad(ones(x.sizes, TensorOptions(kFloat64)), amounts, mode).eq(0);
      EXPECT_TRUE(sevens.masked_select(mask).eq(7.5).all().item<bool>());
    }
    const Tensor whole = draws.laid_out(x);
    const std::int64_t last = x.sizes.back();
    EXPECT_THROW(pad(whole, {last, 0}, "reflect"), Error);
    EXPECT_THROW(pad(whole, {0, last}, "reflect"), Error);
    EXPECT_THROW(pad(whole, {last + 1, 0}, "circular"), Error);
    EXPECT_THROW(pad(whole, {0, last + 1}, "circular"), Error);
    EXPECT_THROW(pad(whole, {-last - 1, 0}), Error);
    EXPECT_THROW(pad(whole, {1, 1, 1}), Error);
    EXPECT_THROW(pad(whole, Sizes(2 * x.sizes.size() + 2, 1)), Error);
    EXPECT_THROW(pad(whole, {1, 1}, "mirror"), NotImplementedError);
  });
}

TEST(GeneratedShape, JoinedAndCutAgain) {
  for_each_case(251, 300, [](Draws& draws) {
    const Sizes sizes = draws.sizes(draws.integer(1, 3), 1, 4);
    const Dim dim = draw_dim(draws, rank_of(sizes));
    const std::int64_t count = draws.integer(1, 4);
    std::vector<Array> arrays;
    std::vector<Tensor> tensors;
    Sizes lengths, out = sizes;
    out[dim.at] = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      Sizes own = sizes;
      own[dim.at] = draws.integer(sizes.size() == 1 ? 1 : 0, 3);
      lengths.push_back(own[dim.at]);
      out[dim.at] += own[dim.at];
      arrays.emplace_back(draws.tensor(own));
      tensors.push_back(draws.laid_out(arrays.back()).set_requires_grad(true));
    }
    SCOPED_TRACE(text_of(sizes) + " along " + std::to_string(dim.given) + " of lengths " + text_of(lengths));
    const Tensor weight = draws.tensor(out);
    const Array weights(weight);
    Array want(out);
    std::vector<Array> gradients = arrays;
    for_each_place(out, [&](const Sizes& at) {
      Sizes from = at;
      std::size_t part = 0;
      while (from[dim.at] >= lengths[part]) from[dim.at] -= lengths[part++];
      want[at] = arrays[part][from];
      gradients[part][from] = weights[at];
    });
    const Tensor joined = cat(tensors, dim.given);
    expect_near(joined, want);
    (joined * weight).sum().backward();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (lengths[i] > 0) expect_near(tensors[i].grad(), gradients[i]);
    // Cut where it was joined.
    const Tensor whole = draws.laid_out(want).set_requires_grad(true);
    const std::vector<Tensor> parts = whole.split(lengths, dim.given);
    ASSERT_EQ(parts.size(), arrays.size());
    Tensor sum;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      expect_near(parts[i], arrays[i]);
      if (i % 2 == 1) continue;  // some parts get no gradient
      const Tensor term = (parts[i] * draws.laid_out(gradients[i])).sum();
      sum = sum.defined() ? sum + term : term;
    }
    sum.backward();
    Array of_whole(out);
    for_each_place(out, [&](const Sizes& at) {
      Sizes from = at;
      std::size_t part = 0;
      while (from[dim.at] >= lengths[part]) from[dim.at] -= lengths[part++];
      of_whole[at] = part % 2 == 1 ? 0 : gradients[part][from];
    });
    expect_near(whole.grad(), of_whole);
    ++lengths.back();
    EXPECT_THROW(whole.split(lengths, dim.given), Error);
    lengths.back() -= 2;
    EXPECT_THROW(whole.split(lengths, dim.given), Error);
  });
}

/// The lengths of the parts, which follow one another.
void expect_parts(const std::vector<Tensor>& parts, const Array& x, std::size_t dim, const Sizes& lengths) {
  ASSERT_EQ(parts.size(), lengths.size());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Array want = [&] {
      Sizes sizes = x.sizes;
      sizes[dim] = lengths[i];
      return Array(sizes);
    }();
    for_each_place(want.sizes, [&](Sizes at) {
      double& element = want[at];
      at[dim] += start;
      element = x[at];
    });
    expect_near(parts[i], want);
    start += lengths[i];
  }
}

TEST(GeneratedShape, CutIntoParts) {
  for_each_case(257, 300, [](Draws& draws) {
    const Array x = draw_array(draws, 1, 0);
    const Dim dim = draw_dim(draws, rank_of(x.sizes));
    const std::int64_t length = x.sizes[dim.at], count = draws.integer(1, 7);
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(dim.given) + " by " + std::to_string(count));
    const Tensor whole = draws.laid_out(x);
    const auto pieces = [&](std::int64_t size) {
      Sizes lengths;
      for (std::int64_t start = 0; start < length; start += size) lengths.push_back(std::min(size, length - start));
      return lengths.empty() ? Sizes{0} : lengths;
    };
    expect_parts(whole.split(count, dim.given), x, dim.at, pieces(count));
    const std::int64_t size = (length + count - 1) / count;
    expect_parts(whole.chunk(count, dim.given), x, dim.at, length == 0 ? Sizes(index_of(count), 0) : pieces(size));
    Sizes even;
    for (std::int64_t i = 0; i < count; ++i) even.push_back(length / count + (i < length % count ? 1 : 0));
    expect_parts(whole.tensor_split(count, dim.given), x, dim.at, even);
    // At the indices: what ends before it begins is empty.
    const std::int64_t first = draws.integer(0, length), second = draws.integer(first, length);
    expect_parts(whole.tensor_split({first, second}, dim.given), x, dim.at, {first, second - first, length - second});
    const std::vector<Tensor> rows = whole.unbind(dim.given);
    ASSERT_EQ(rows.size(), index_of(length));
    for (std::int64_t i = 0; i < length; ++i)
      EXPECT_TRUE(rows[index_of(i)].equal(whole.select(dim.given, i))) << "row " << i;
    if (length > 0) {
      EXPECT_TRUE(stack(rows, dim.given).equal(whole));
      EXPECT_THROW(whole.split(0, dim.given), Error);
    }
    EXPECT_THROW(whole.split(-1, dim.given), Error);
    EXPECT_THROW(whole.chunk(0, dim.given), Error);
    EXPECT_THROW(whole.tensor_split(0, dim.given), Error);
  });
}

}  // namespace
}  // namespace tenon::test
