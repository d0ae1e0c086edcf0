// Pools of random shapes, strides, paddings, dilations and rounding, held against loops in float64, gradients included.
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

/// (N, C, …) as the windows want it; sizes that no window fits are drawn too.
Sizes draw_input(Draws& draws, std::int64_t rank) {
  Sizes sizes = draws.sizes(rank, 1, rank == 3 ? 6 : 9);
  sizes.insert(sizes.begin(), {draws.integer(1, 2), draws.integer(1, 3)});
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

TEST(GeneratedPooling, MaximaTheirPlacesAndGradients) {
  for_each_case(11, 400, [](Draws& draws) {
    const Windows w = draw_windows(draws, draws.integer(1, 3), true);
    Array x(draw_input(draws, w.rank));
    const bool has_nans = draws.one_in(3);
    for (double& value : x.values) value = has_nans && draws.one_in(6) ? NAN : draws.number();
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
    if (!has_a_window(out)) {
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

}  // namespace
}  // namespace tenon::test
