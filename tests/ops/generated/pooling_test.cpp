// Pools of random shapes, strides, paddings, dilations and rounding, held against loops in float64, gradients included.
#include <tenon/autograd/autograd.h>

#include "draws.h"

namespace tenon::test {
namespace {

/// A window's settings for each of `rank` dimensions.
struct Windows {
  std::int64_t rank;
  Sizes kernel, stride, padding, dilation;
  bool ceil_mode;

  /// How many windows there are along a dimension: PyTorch's rule. The last begins inside the input or its left
  /// padding.
  std::int64_t count(std::size_t d, std::int64_t size) const {
    const std::int64_t room = size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    if (room < 0 && !ceil_mode) return 0;
    const double steps = static_cast<double>(room) / static_cast<double>(stride[d]);
    auto count = static_cast<std::int64_t>(ceil_mode ? std::ceil(steps) : std::floor(steps)) + 1;
    if (ceil_mode && (count - 1) * stride[d] >= size + padding[d]) --count;
    return count;
  }
  std::string text() const {
    return "kernel " + text_of(kernel) + ", stride " + text_of(stride) + ", padding " + text_of(padding) +
           ", dilation " + text_of(dilation) + (ceil_mode ? ", ceil_mode" : "");
  }
};

Windows draw_windows(Draws& draws, std::int64_t rank, bool has_dilation) {
  Windows w{rank,
            draws.sizes(rank, 1, 4),
            draws.sizes(rank, 1, 4),
            Sizes(static_cast<std::size_t>(rank)),
            has_dilation ? draws.sizes(rank, 1, 3) : Sizes(static_cast<std::size_t>(rank), 1),
            draws.one_in(2)};
  for (std::size_t d = 0; d < w.padding.size(); ++d) w.padding[d] = draws.integer(0, w.kernel[d] / 2);
  return w;
}

/// (N, C, …) as the windows want it; sizes that no window fits are drawn too, and batches of nothing.
Sizes draw_input(Draws& draws, std::int64_t rank) {
  Sizes sizes = draws.sizes(rank, 1, rank == 3 ? 6 : 9);
  sizes.insert(sizes.begin(), {draws.one_in(12) ? 0 : draws.integer(1, 2), draws.integer(1, 3)});
  return sizes;
}

Sizes output_of(const Sizes& input, const Windows& w) {
  Sizes sizes = {input[0], input[1]};
  for (std::size_t d = 0; d < w.kernel.size(); ++d) sizes.push_back(w.count(d, input[d + 2]));
  return sizes;
}

bool has_a_window(const Sizes& output) {
  for (std::size_t d = 2; d < output.size(); ++d)
    if (output[d] < 1) return false;
  return true;
}

/// visit(place of the input) for each element of a window that lies inside the input.
void for_each_of_window(const Sizes& input, const Windows& w, const Sizes& out,
                        const std::function<void(const Sizes&)>& visit) {
  for_each_place(w.kernel, [&](const Sizes& k) {
    Sizes at = {out[0], out[1]};
    for (std::size_t d = 0; d < k.size(); ++d) {
      const std::int64_t place = out[d + 2] * w.stride[d] - w.padding[d] + k[d] * w.dilation[d];
      if (place < 0 || place >= input[d + 2]) return;
      at.push_back(place);
    }
    visit(at);
  });
}

std::tuple<Tensor, Tensor> max_pool(const Tensor& x, const Windows& w) {
  if (w.rank == 1) return max_pool1d_with_indices(x, w.kernel, w.stride, w.padding, w.dilation, w.ceil_mode);
  if (w.rank == 2) return max_pool2d_with_indices(x, w.kernel, w.stride, w.padding, w.dilation, w.ceil_mode);
  return max_pool3d_with_indices(x, w.kernel, w.stride, w.padding, w.dilation, w.ceil_mode);
}

void expect_maxima(Draws& draws, const Windows& w, const Array& x, bool has_nans) {
  SCOPED_TRACE("input " + text_of(x.sizes) + ", " + w.text());
  const Tensor input = draws.laid_out(x).set_requires_grad(true);
  const Sizes out = output_of(x.sizes, w);
  if (!has_a_window(out)) {
    EXPECT_ANY_THROW(max_pool(input, w));
    return;
  }
  const auto [pooled, places] = max_pool(input, w);
  const Tensor weight = draws.tensor(out);
  const Array weights(weight);
  Array want(out), want_places(out), gradient(x.sizes);
  for_each_place(out, [&](const Sizes& o) {
    double best = -kInfinity;
    Sizes from;
    for_each_of_window(x.sizes, w, o, [&](const Sizes& at) {
      if (!(x[at] > best || std::isnan(x[at]) || from.empty())) return;
      best = x[at];
      from = at;
    });
    want[o] = best;
    want_places[o] = -1;
    if (from.empty()) return;  // a window rounded up, its elements apart, may lie in the padding alone
    std::int64_t place = 0;
    for (std::size_t d = 2; d < from.size(); ++d) place = place * x.sizes[d] + from[d];
    want_places[o] = static_cast<double>(place);
    gradient[from] += weights[o];
  });
  expect_near(pooled, want);
  expect_near(places, want_places);
  (pooled * weight).sum().backward();
  if (!has_nans) expect_near(input.grad(), gradient);
}

TEST(GeneratedPooling, MaximaTheirPlacesAndGradients) {
  for_each_case(11, 400, [](Draws& draws) {
    const Windows w = draw_windows(draws, draws.integer(1, 3), true);
    Array x(draw_input(draws, w.rank));
    const bool has_nans = draws.one_in(3);
    for (double& value : x.values) value = has_nans && draws.one_in(6) ? NAN : draws.number();
    expect_maxima(draws, w, x, has_nans);
  });
}

// The window of most small networks may have a way of its own: all that differ from it by one setting.
TEST(GeneratedPooling, MaximaOfWindowsNextToTwoByTwo) {
  const std::vector<Sizes> kernels{{2, 2}, {1, 2}, {2, 1}, {3, 2}, {2, 3}}, strides = kernels;
  const std::vector<Sizes> paddings{{0, 0}, {1, 0}, {0, 1}}, dilations{{1, 1}, {2, 1}, {1, 2}};
  for_each_case(389, 1, [&](Draws& draws) {
    for (const Sizes& kernel : kernels)
      for (const Sizes& stride : strides)
        for (const Sizes& padding : paddings)
          for (const Sizes& dilation : dilations)
            for (const Sizes& size : {Sizes{4, 4}, Sizes{5, 6}, Sizes{6, 5}})
              for (const bool ceil_mode : {false, true}) {
                const bool is_allowed = 2 * padding[0] <= kernel[0] && 2 * padding[1] <= kernel[1];
                if (!is_allowed || ::testing::Test::HasFailure()) continue;
                const Array x(draws.tensor({1, 2, size[0], size[1]}));
                expect_maxima(draws, {2, kernel, stride, padding, dilation, ceil_mode}, x, false);
              }
  });
  // In three dimensions the first may be what differs.
  for_each_case(397, 60, [&](Draws& draws) {
    const Windows w{3,         {draws.integer(1, 2), 2, 2}, {draws.integer(1, 2), 2, 2},
                    {0, 0, 0}, {draws.integer(1, 2), 1, 1}, draws.one_in(2)};
    expect_maxima(draws, w, Array(draws.tensor({1, 2, draws.integer(1, 4), 4, draws.integer(4, 5)})), false);
  });
}

TEST(GeneratedPooling, MeansAndTheirGradients) {
  for_each_case(13, 400, [](Draws& draws) {
    const Windows w = draw_windows(draws, draws.integer(1, 3), false);
    const bool counts_padding = draws.one_in(2);
    std::optional<std::int64_t> divisor;
    if (w.rank > 1 && draws.one_in(4)) divisor = draws.integer(1, 5);
    const Array x(draws.tensor(draw_input(draws, w.rank)));
    SCOPED_TRACE("input " + text_of(x.sizes) + ", " + w.text() + (counts_padding ? ", padding counts" : ""));
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const auto pool = [&] {
      if (w.rank == 1) return avg_pool1d(input, w.kernel, w.stride, w.padding, w.ceil_mode, counts_padding);
      if (w.rank == 2) return avg_pool2d(input, w.kernel, w.stride, w.padding, w.ceil_mode, counts_padding, divisor);
      return avg_pool3d(input, w.kernel, w.stride, w.padding, w.ceil_mode, counts_padding, divisor);
    };
    const Sizes out = output_of(x.sizes, w);
    // In three dimensions PyTorch has no window that is larger than the input, whatever the padding.
    bool is_covered = true;
    for (std::size_t d = 0; d < 3 && w.rank == 3; ++d) {
      is_covered = is_covered && w.kernel[d] <= x.sizes[x.sizes.size() - 3 + d];
    }
    if (!is_covered || !has_a_window(out)) {
      EXPECT_ANY_THROW(pool());
      return;
    }
    const Tensor weight = draws.tensor(out);
    const Array weights(weight);
    Array want(out), gradient(x.sizes);
    for_each_place(out, [&](const Sizes& o) {
      // The padding on the right counts as far as one padding reaches, not as far as a rounded-up window does.
      double whole = 1, inside = 0, sum = 0;
      for (std::size_t d = 0; d < w.kernel.size(); ++d) {
        const std::int64_t start = o[d + 2] * w.stride[d] - w.padding[d];
        whole *= static_cast<double>(std::min(start + w.kernel[d], x.sizes[d + 2] + w.padding[d]) - start);
      }
      for_each_of_window(x.sizes, w, o, [&](const Sizes& at) {
        ++inside;
        sum += x[at];
      });
      if (inside == 0) return;
      const double by = divisor ? static_cast<double>(*divisor) : counts_padding ? whole : inside;
      want[o] = sum / by;
      for_each_of_window(x.sizes, w, o, [&](const Sizes& at) { gradient[at] += weights[o] / by; });
    });
    const Tensor pooled = pool();
    expect_near(pooled, want);
    (pooled * weight).sum().backward();
    expect_near(input.grad(), gradient);
  });
}

TEST(GeneratedPooling, AdaptiveMeansAndMaxima) {
  for_each_case(17, 200, [](Draws& draws) {
    const std::int64_t rank = draws.integer(1, 3);
    const Array x(draws.tensor(draw_input(draws, rank)));
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const Sizes wanted = draws.sizes(rank, 1, 7);
    SCOPED_TRACE("input " + text_of(x.sizes) + " to " + text_of(wanted));
    Sizes out = {x.sizes[0], x.sizes[1]};
    out.insert(out.end(), wanted.begin(), wanted.end());
    const Tensor weight = draws.tensor(out);
    const Array weights(weight);
    Array mean(out), most(out, -kInfinity), gradient(x.sizes), gradient_of_most(x.sizes);
    for_each_place(out, [&](const Sizes& o) {
      Sizes from, length;
      for (std::size_t d = 2; d < o.size(); ++d) {
        const std::int64_t in = x.sizes[d];
        from.push_back(o[d] * in / out[d]);
        length.push_back(((o[d] + 1) * in + out[d] - 1) / out[d] - from.back());
      }
      Sizes best;
      const auto by = static_cast<double>(product(length));
      for_each_place(length, [&](const Sizes& k) {
        Sizes at = {o[0], o[1]};
        for (std::size_t d = 0; d < k.size(); ++d) at.push_back(from[d] + k[d]);
        mean[o] += x[at] / by;
        gradient[at] += weights[o] / by;
        if (x[at] <= most[o]) return;
        most[o] = x[at];
        best = at;
      });
      gradient_of_most[best] += weights[o];
    });
    const auto pool = [&](const Tensor& t) {
      return rank == 1   ? adaptive_avg_pool1d(t, wanted)
             : rank == 2 ? adaptive_avg_pool2d(t, wanted)
                         : adaptive_avg_pool3d(t, wanted);
    };
    const auto most_of = [&](const Tensor& t) {
      return std::get<0>(rank == 1   ? adaptive_max_pool1d(t, wanted)
                         : rank == 2 ? adaptive_max_pool2d(t, wanted)
                                     : adaptive_max_pool3d(t, wanted));
    };
    expect_near(pool(input), mean);
    (pool(input) * weight).sum().backward();
    expect_near(input.grad(), gradient);
    const Tensor again = draws.laid_out(x).set_requires_grad(true);
    expect_near(most_of(again), most);
    (most_of(again) * weight).sum().backward();
    expect_near(again.grad(), gradient_of_most);
  });
}

TEST(GeneratedPooling, WithoutABatchIsThatOfABatchOfOne) {
  for_each_case(359, 150, [](Draws& draws) {
    const Windows w = draw_windows(draws, draws.integer(1, 3), true);
    Array x(draw_input(draws, w.rank));
    x.sizes[0] = 1;
    x = Array(draws.tensor(x.sizes));
    SCOPED_TRACE("input " + text_of(x.sizes) + ", " + w.text());
    if (!has_a_window(output_of(x.sizes, w))) return;
    const Tensor batch = draws.laid_out(x), one = draws.in_some_layout(batch[0]).detach().set_requires_grad(true);
    const auto [pooled, places] = max_pool(batch, w);
    const auto [alone, own_places] = max_pool(one, w);
    EXPECT_TRUE(alone.equal(pooled[0]));
    EXPECT_TRUE(own_places.equal(places[0]));
    alone.sum().backward();
    EXPECT_EQ(one.grad().sizes(), one.sizes());
    const Tensor whole = batch.detach().clone().set_requires_grad(true);
    std::get<0>(max_pool(whole, w)).sum().backward();
    EXPECT_TRUE(one.grad().equal(whole.grad()[0]));
    const auto twice = [&](const Tensor& x_of) {  // the gradient of the gradient
      const Tensor first =
          autograd::grad({std::get<0>(max_pool(x_of, w)).square().sum()}, {x_of}, {}, std::nullopt, true)[0];
      return autograd::grad({first.sum()}, {x_of})[0];
    };
    EXPECT_TRUE(twice(one).equal(twice(whole)[0]));
    const Sizes wanted = draws.sizes(w.rank, 1, 5);
    const auto mean_of = [&](const Tensor& t) {
      return w.rank == 1   ? adaptive_avg_pool1d(t, wanted)
             : w.rank == 2 ? adaptive_avg_pool2d(t, wanted)
                           : adaptive_avg_pool3d(t, wanted);
    };
    EXPECT_TRUE(mean_of(one.detach()).equal(mean_of(batch)[0]));
    const auto most_of = [&](const Tensor& t) {
      return w.rank == 1   ? adaptive_max_pool1d(t, wanted)
             : w.rank == 2 ? adaptive_max_pool2d(t, wanted)
                           : adaptive_max_pool3d(t, wanted);
    };
    EXPECT_TRUE(std::get<1>(most_of(one.detach())).equal(std::get<1>(most_of(batch))[0]));
    EXPECT_ANY_THROW(max_pool(one.detach()[0], w));
    EXPECT_ANY_THROW(max_pool(batch.unsqueeze(0), w));
  });
}

TEST(GeneratedPooling, SettingsBeyondTheirBoundsAreRefusedAndTheBoundsAreNot) {
  for_each_case(367, 100, [](Draws& draws) {
    const std::int64_t rank = draws.integer(1, 3);
    Windows w = draw_windows(draws, rank, true);
    Sizes sizes(static_cast<std::size_t>(rank), 20);
    sizes.insert(sizes.begin(), {1, 2});
    const Tensor x = draws.tensor(sizes);
    const auto d = static_cast<std::size_t>(draws.integer(0, rank - 1));
    SCOPED_TRACE(w.text() + ", dimension " + std::to_string(d));
    const auto pool_all = [&](const Windows& c, bool is_max) {
      if (is_max) return std::get<0>(max_pool(x, c));
      if (rank == 1) return avg_pool1d(x, c.kernel, c.stride, c.padding, c.ceil_mode);
      if (rank == 2) return avg_pool2d(x, c.kernel, c.stride, c.padding, c.ceil_mode);
      return avg_pool3d(x, c.kernel, c.stride, c.padding, c.ceil_mode);
    };
    for (const bool is_max : {true, false}) {
      const auto with = [&](Sizes Windows::*setting, std::int64_t value) {
        Windows changed = w;
        (changed.*setting)[d] = value;
        return pool_all(changed, is_max);
      };
      EXPECT_NO_THROW(with(&Windows::padding, w.kernel[d] / 2));
      EXPECT_ANY_THROW(with(&Windows::padding, w.kernel[d] / 2 + 1));
      EXPECT_ANY_THROW(with(&Windows::padding, -1));
      EXPECT_ANY_THROW(with(&Windows::stride, 0));
      EXPECT_ANY_THROW(with(&Windows::kernel, 0));
      if (is_max) {
        EXPECT_ANY_THROW(with(&Windows::dilation, 0));
      }
    }
    Windows one = w;  // one number stands for all dimensions, and no stride for the kernel
    one.kernel = {2};
    one.stride = {};
    one.padding = {1};
    one.dilation = {1};
    Windows all = w;
    all.kernel = all.stride = Sizes(static_cast<std::size_t>(rank), 2);
    all.padding = all.dilation = Sizes(static_cast<std::size_t>(rank), 1);
    EXPECT_TRUE(pool_all(one, true).equal(pool_all(all, true)));
    EXPECT_TRUE(pool_all(one, false).equal(pool_all(all, false)));
    one.kernel = Sizes(static_cast<std::size_t>(rank) + 1, 2);
    EXPECT_ANY_THROW(pool_all(one, true));
  });
}

TEST(GeneratedPooling, ColumnsOfWindowsAndTheirSum) {
  for_each_case(373, 200, [](Draws& draws) {
    const Windows w{2,
                    draws.sizes(2, 1, 3),
                    draws.sizes(2, 1, 3),
                    draws.sizes(2, 0, 2),
                    draws.sizes(2, 1, 3),
                    /*ceil_mode=*/false};
    Sizes sizes = draw_input(draws, 2);
    const Array x(draws.tensor(sizes));
    SCOPED_TRACE("input " + text_of(sizes) + ", " + w.text());
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const auto columns_of = [&](const Tensor& t) { return im2col(t, w.kernel, w.dilation, w.padding, w.stride); };
    const std::int64_t rows = w.count(0, sizes[2]), along = w.count(1, sizes[3]);
    if (rows < 1 || along < 1) {
      EXPECT_ANY_THROW(columns_of(input));
      return;
    }
    const std::int64_t elements = w.kernel[0] * w.kernel[1];
    Array want({sizes[0], sizes[1] * elements, rows * along});
    const Tensor scale = draws.tensor(want.sizes);
    const Array scales(scale);
    Array sums(sizes);
    for_each_place(want.sizes, [&](const Sizes& at) {
      const std::int64_t element = at[1] % elements;
      const std::int64_t i = at[2] / along * w.stride[0] - w.padding[0] + element / w.kernel[1] * w.dilation[0];
      const std::int64_t j = at[2] % along * w.stride[1] - w.padding[1] + element % w.kernel[1] * w.dilation[1];
      if (i < 0 || j < 0 || i >= sizes[2] || j >= sizes[3]) return;
      want[at] = x[{at[0], at[1] / elements, i, j}];
      sums[{at[0], at[1] / elements, i, j}] += scales[at];
    });
    const Tensor columns = columns_of(input);
    expect_near(columns, want);
    (columns * scale).sum().backward();
    expect_near(input.grad(), sums);
    const auto image_of = [&](const Tensor& t) {
      return col2im(t, {sizes[2], sizes[3]}, w.kernel, w.dilation, w.padding, w.stride);
    };
    const Tensor given = draws.laid_out(scales).set_requires_grad(true);
    const Tensor image = image_of(given);
    expect_near(image, sums);
    (image * draws.laid_out(x)).sum().backward();
    expect_near(given.grad(), want);
    if (sizes[0] != 0) {  // without a batch
      EXPECT_TRUE(columns_of(input.detach()[0]).equal(columns.detach()[0]));
      EXPECT_TRUE(image_of(given.detach()[0]).equal(image.detach()[0]));
    }
    EXPECT_ANY_THROW(image_of(draws.tensor({sizes[0], sizes[1] * elements, rows * along + 1})));
    const std::int64_t too_many = elements > 1 ? 0 : 1;  // columns: any channels divide by one element
    EXPECT_ANY_THROW(image_of(draws.tensor({sizes[0], sizes[1] * elements + 1, rows * along + too_many})));
    for (int setting = 0; setting < 4; ++setting) {
      Sizes k = w.kernel, dilation = w.dilation, p = w.padding, stride = w.stride;
      Sizes& wrong = setting == 0 ? k : setting == 1 ? dilation : setting == 2 ? p : stride;
      wrong[static_cast<std::size_t>(draws.integer(0, 1))] = setting == 2 ? -1 : 0;
      EXPECT_ANY_THROW(im2col(input, k, dilation, p, stride)) << "setting " << setting;
      EXPECT_ANY_THROW(col2im(given, {sizes[2], sizes[3]}, k, dilation, p, stride)) << "setting " << setting;
    }
  });
}

}  // namespace
}  // namespace tenon::test
