// Sequences of random lengths padded to one tensor, packed without gaps and padded again, held against loops.
#include <tenon/core/error.h>
#include <tenon/ops/nn/recurrent/packing.h>

#include "draws.h"

namespace tenon::test {
namespace {

TEST(GeneratedPacking, PaddedPackedAndPaddedAgain) {
  for_each_case(379, 200, [](Draws& draws) {
    const std::int64_t batch = draws.integer(1, 4), steps = draws.integer(1, 5);
    const Sizes trailing = draws.sizes(draws.integer(0, 2), 1, 3);
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < batch; ++b) lengths.push_back(draws.integer(1, steps));
    std::ranges::sort(lengths, std::greater<>());
    const bool batch_first = draws.one_in(2);
    SCOPED_TRACE("lengths " + text_of(lengths) + " of " + std::to_string(steps) + ", each " + text_of(trailing) +
                 (batch_first ? ", batch first" : ""));
    const auto with = [&](std::initializer_list<std::int64_t> front) {
      Sizes sizes(front);
      sizes.insert(sizes.end(), trailing.begin(), trailing.end());
      return sizes;
    };
    const auto place = [&](std::int64_t step, std::int64_t b, const Sizes& rest) {
      Sizes at{step, b};
      if (batch_first) std::swap(at[0], at[1]);
      at.insert(at.end(), rest.begin(), rest.end());
      return at;
    };
    const Array x(draws.tensor(batch_first ? with({batch, steps}) : with({steps, batch})));
    std::int64_t total = 0;
    for (const std::int64_t length : lengths) total += length;
    const Tensor scale = draws.tensor(with({total}));
    const Array scales(scale);
    Array want(with({total})), gradient(x.sizes), counts({lengths.front()}), own({batch});
    const double filler = draws.number();
    const std::int64_t asked = draws.integer(0, 7);
    const std::int64_t padded_steps = std::max(asked, lengths.front());
    Array again(batch_first ? with({batch, padded_steps}) : with({padded_steps, batch}), filler);
    std::int64_t row = 0;
    for (std::int64_t step = 0; step < lengths.front(); ++step) {
      for (std::int64_t b = 0; b < batch; ++b) {
        if (lengths[static_cast<std::size_t>(b)] <= step) continue;
        ++counts[{step}];
        own[{b}] = static_cast<double>(lengths[static_cast<std::size_t>(b)]);
        for_each_place(trailing, [&](const Sizes& rest) {
          Sizes at{row};
          at.insert(at.end(), rest.begin(), rest.end());
          want[at] = x[place(step, b, rest)];
          gradient[place(step, b, rest)] = scales[at];
          again[place(step, b, rest)] = want[at];
        });
        ++row;
      }
    }
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const Tensor index = tenon::tensor(lengths, TensorOptions(kInt64));
    const auto [data, batch_sizes] = _pack_padded_sequence(input, index, batch_first);
    expect_near(data, want);
    expect_near(batch_sizes, counts);
    (data * scale).sum().backward();
    expect_near(input.grad(), gradient);
    const auto [padded, read] = _pad_packed_sequence(data.detach(), batch_sizes, batch_first, filler, asked);
    expect_near(padded, again);
    expect_near(read, own);
    const auto pack = [&](std::vector<std::int64_t> given) {
      return _pack_padded_sequence(input, tenon::tensor(given, TensorOptions(kInt64)), batch_first);
    };
    std::vector<std::int64_t> wrong = lengths;
    wrong.front() = steps + 1;
    EXPECT_THROW(pack(wrong), Error);
    wrong = lengths;
    wrong.back() = 0;
    EXPECT_THROW(pack(wrong), Error);
    wrong = lengths;
    wrong.push_back(1);
    EXPECT_THROW(pack(wrong), Error);
    if (batch > 1) {
      wrong = Sizes(static_cast<std::size_t>(batch), 1);
      wrong.back() = 2;
      EXPECT_THROW(pack(wrong), Error);
    }
  });
}

TEST(GeneratedPacking, SequencesSideBySide) {
  for_each_case(383, 150, [](Draws& draws) {
    const Sizes trailing = draws.sizes(draws.integer(0, 2), 1, 3);
    const std::int64_t count = draws.integer(1, 4);
    const bool batch_first = draws.one_in(2);
    const double filler = draws.number();
    std::vector<Array> arrays;
    std::vector<Tensor> sequences;
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      Sizes sizes = trailing;
      sizes.insert(sizes.begin(), draws.integer(0, 4));
      longest = std::max(longest, sizes[0]);
      arrays.emplace_back(draws.tensor(sizes));
      sequences.push_back(draws.laid_out(arrays.back()));
    }
    Sizes out{longest, count};
    if (batch_first) std::swap(out[0], out[1]);
    out.insert(out.end(), trailing.begin(), trailing.end());
    Array want(out, filler);
    for_each_place(out, [&](const Sizes& at) {
      const Array& own = arrays[static_cast<std::size_t>(at[batch_first ? 0 : 1])];
      Sizes from(at.begin() + 1, at.end());
      from[0] = at[batch_first ? 1 : 0];
      if (from[0] < own.sizes[0]) want[at] = own[from];
    });
    SCOPED_TRACE(std::to_string(count) + " to " + text_of(out));
    expect_near(pad_sequence(sequences, batch_first, filler), want);
    Sizes other = trailing;
    other.insert(other.begin(), 2);
    other.push_back(1);
    sequences.push_back(draws.tensor(other));
    EXPECT_THROW(pad_sequence(sequences), Error);
    if (trailing.empty()) return;
    other.pop_back();
    ++other.back();
    sequences.back() = draws.tensor(other);
    EXPECT_THROW(pad_sequence(sequences), Error);
  });
  EXPECT_THROW(pad_sequence(std::vector<Tensor>{}), Error);
  EXPECT_THROW(pad_sequence({ones({})}), Error);
}

}  // namespace
}  // namespace tenon::test
