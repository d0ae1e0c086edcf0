// Pixel shuffles are views and a copy. Sampling at a grid gathers the neighbours of each point and weighs them.
#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/nn/vision.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/recording.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <vector>

namespace tenon {

using namespace ops;

namespace {

void check_pixels(const char* op, const char* factor_name, const Tensor& input, std::int64_t factor) {
  if (input.dim() < 3) {
    throw Error(fmt::format("{} expects input to have at least 3 dimensions, but got input with {} dimension(s)", op,
                            input.dim()));
  }
  if (factor <= 0) throw Error(fmt::format("{} expects a positive {}, but got {}", op, factor_name, factor));
}

/// The product of all sizes before the last three; reshape() could not find it by -1 for an empty batch.
std::int64_t leading(const Tensor& input) {
  std::int64_t count = 1;
  for (std::int64_t d = 0; d < input.dim() - 3; ++d) count *= input.size(d);
  return count;
}

Tensor with_planes(const Tensor& input, const Tensor& planes, std::int64_t c, std::int64_t h, std::int64_t w) {
  Dims sizes;
  for (std::int64_t d = 0; d < input.dim() - 3; ++d) sizes.push_back(input.size(d));
  sizes.push_back(c);
  sizes.push_back(h);
  sizes.push_back(w);
  const MemoryFormat format = input.suggest_memory_format();
  const Tensor result = planes.reshape(sizes);
  // A factor of 1 moves nothing.
  return as_owned(result.is_alias_of(input) ? result.clone(format) : result.contiguous(format));
}

}  // namespace

Tensor pixel_shuffle(const Tensor& input, std::int64_t r) {
  TENON_SCOPE(pixel_shuffle, input, r)
  check_pixels("pixel_shuffle", "upscale_factor", input, r);
  const std::int64_t c = input.size(-3), h = input.size(-2), w = input.size(-1);
  if (c % (r * r) != 0) {
    throw Error(
        fmt::format("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                    "upscale_factor, but input.size(-3)={} is not divisible by {}",
                    c, r * r));
  }
  const Tensor split = input.reshape({leading(input), c / (r * r), r, r, h, w}).permute({0, 1, 4, 2, 5, 3});
  return with_planes(input, split, c / (r * r), h * r, w * r);
}

Tensor pixel_unshuffle(const Tensor& input, std::int64_t r) {
  TENON_SCOPE(pixel_unshuffle, input, r)
  check_pixels("pixel_unshuffle", "downscale_factor", input, r);
  const std::int64_t c = input.size(-3), h = input.size(-2), w = input.size(-1);
  if (h % r != 0) {
    throw Error(
        fmt::format("pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)={} is not "
                    "divisible by {}",
                    h, r));
  }
  if (w % r != 0) {
    throw Error(
        fmt::format("pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)={} is not "
                    "divisible by {}",
                    w, r));
  }
  const Tensor split = input.reshape({leading(input), c, h / r, r, w / r, r}).permute({0, 1, 3, 5, 2, 4});
  return with_planes(input, split, c * r * r, h / r, w / r);
}

Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners) {
  TENON_SCOPE(affine_grid_generator, theta, size, align_corners)
  check_floating("affine_grid", theta);
  const std::size_t spatial = size.size() - 2;
  if (size.size() < 4 || size.size() > 5) {
    throw Error(
        fmt::format("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got "
                    "size {}",
                    to_string(size)));
  }
  // Coordinates (x, y[, z], 1) of every output position, the last dimension being x.
  std::vector<Tensor> coordinates;
  Dims out;
  for (std::size_t d = 0; d < spatial; ++d) out.push_back(size[d + 2]);
  for (std::size_t d = spatial; d-- > 0;) {
    const std::int64_t n = out[static_cast<int>(d)];
    Tensor line = n > 1 ? tenon::linspace(-1, 1, n, theta.options()) : tenon::zeros({1}, theta.options());
    if (!align_corners) line = line * (static_cast<double>(n - 1) / static_cast<double>(n));
    Dims shape;
    for (std::size_t e = 0; e < spatial; ++e) shape.push_back(e == d ? n : 1);
    coordinates.push_back(line.view(shape).expand(out));
  }
  coordinates.push_back(tenon::ones(out, theta.options()));
  const Tensor base = tenon::stack(coordinates, -1).flatten(0, static_cast<std::int64_t>(spatial) - 1);
  Dims sizes;
  sizes.push_back(theta.size(0));
  for (std::size_t d = 0; d < spatial; ++d) sizes.push_back(out[static_cast<int>(d)]);
  sizes.push_back(static_cast<std::int64_t>(spatial));
  return as_owned(tenon::matmul(base.unsqueeze(0), theta.transpose(1, 2)).view(sizes));
}

namespace {

/// Mirrors at low and high (given doubled), so that the result lies between them.
Tensor reflected(const Tensor& x, std::int64_t twice_low, std::int64_t twice_high) {
  if (twice_low == twice_high) return x * 0;
  const double low = static_cast<double>(twice_low) / 2, span = static_cast<double>(twice_high - twice_low) / 2;
  const Tensor distance = (x - low).abs();
  Tensor flips, even;
  {
    NoGradGuard no_grad;
    flips = (distance / span).floor();
    even = (flips - (flips / 2).floor() * 2).eq(0);
  }
  const Tensor rest = distance - flips * span;
  return tenon::where(even, rest + low, -rest + (span + low));
}

/// A point outside is moved inside, and a NaN to the first place, except with kZeros.
Tensor padded(const Tensor& x, std::int64_t size, GridPadding padding, bool align_corners) {
  const auto last = static_cast<double>(size - 1);
  const auto bounded = [last](const Tensor& place) { return tenon::where(place.isnan(), 0.0, place.clamp(0.0, last)); };
  if (padding == GridPadding::kBorder) return bounded(x);
  if (padding == GridPadding::kReflection) {
    return bounded(align_corners ? reflected(x, 0, 2 * (size - 1)) : reflected(x, -1, 2 * size - 1));
  }
  return x;
}

/// What one dimension contributes to one neighbour of every point; (N, points) each.
struct Neighbour {
  Tensor index;   ///< int64, inside
  Tensor inside;  ///< bool
  Tensor weight;  ///< undefined: 1
};

Neighbour neighbour(const Tensor& position, std::int64_t size, Tensor weight) {
  NoGradGuard no_grad;
  const Tensor inside = tenon::logical_and(position.ge(0), position.le(static_cast<double>(size - 1)));
  return {tenon::where(inside, position, 0.0).to(kInt64), inside, std::move(weight)};
}

/// value(t), whose slope is slope(t): that of the products of a polynomial, one by one, has lost digits.
template <class Value, class Slope>
Tensor weight_at(const Tensor& t, Value value, Slope slope) {
  Recording recording =
      record<1>("BicubicWeightBackward0", {&t}, [slope](Backward& b) { b.set(0, b.grad() * slope(b.saved(0))); });
  if (recording) recording.save(0, t);
  Tensor result;
  {
    NoGradGuard no_grad;
    result = value(t);
  }
  recording.output(result);
  return result;
}

/// Of a point t behind the second of four places (Keys, 1981): a (d^3 - 5 d^2 + 8 d - 4) of the outer ones, at a
/// distance of d, and (a + 2) d^3 - (a + 3) d^2 + 1 of the inner ones.
std::vector<Tensor> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto rest = [](const Tensor& u) { return -u + 1; };
  const auto near = [](const Tensor& d) { return ((d * (a + 2) - (a + 3)) * d) * d + 1; };
  const auto near_slope = [](const Tensor& d) { return (d * (3 * (a + 2)) - 2 * (a + 3)) * d; };
  return {weight_at(
              t, [rest](const Tensor& u) { return u * rest(u) * rest(u) * a; },
              [rest](const Tensor& u) { return rest(u) * (rest(u) - u * 2) * a; }),
          weight_at(t, near, near_slope),
          weight_at(
              t, [=](const Tensor& u) { return near(rest(u)); }, [=](const Tensor& u) { return -near_slope(rest(u)); }),
          weight_at(
              t, [rest](const Tensor& u) { return rest(u) * u * u * a; },
              [rest](const Tensor& u) { return u * (rest(u) * 2 - u) * a; })};
}

/// The neighbours of every point along one dimension.
std::vector<Neighbour> neighbours(const Tensor& coordinate, std::int64_t size, GridInterpolation mode,
                                  GridPadding padding, bool align_corners) {
  const Tensor x = align_corners ? (coordinate + 1) * (static_cast<double>(size - 1) / 2)
                                 : ((coordinate + 1) * static_cast<double>(size) - 1) / 2;
  if (mode == GridInterpolation::kBicubic) {
    const Tensor base = x.detach().floor();
    const std::vector<Tensor> weights = cubic_weights(x - base);
    std::vector<Neighbour> all;
    for (int k = 0; k < 4; ++k) {
      all.push_back(
          neighbour(padded(base + (k - 1), size, padding, align_corners), size, weights[static_cast<std::size_t>(k)]));
    }
    return all;
  }
  const Tensor position = padded(x, size, padding, align_corners);
  if (mode == GridInterpolation::kNearest) return {neighbour(position.detach().round(), size, Tensor())};
  const Tensor base = position.detach().floor();
  const Tensor t = position - base;
  return {neighbour(base, size, -t + 1), neighbour(base + 1, size, t)};
}

}  // namespace

Tensor grid_sampler(const Tensor& input, const Tensor& grid, std::int64_t interpolation_mode, std::int64_t padding_mode,
                    bool align_corners) {
  TENON_AUTOCAST(grid_sampler, input, grid, interpolation_mode, padding_mode, align_corners)
  check_floating("grid_sampler", input);
  check_same_device("grid_sampler", {&input, &grid});
  check_same_dtype("grid_sampler", {&input, &grid});
  const std::int64_t spatial = input.dim() - 2;
  if ((spatial != 2 && spatial != 3) || grid.dim() != input.dim()) {
    throw Error(
        fmt::format("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input "
                    "with sizes {} and grid with sizes {}",
                    to_string(input.sizes()), to_string(grid.sizes())));
  }
  if (input.size(0) != grid.size(0)) {
    throw Error(
        fmt::format("grid_sampler(): expected grid and input to have same batch size, but got input with sizes {} and "
                    "grid with sizes {}",
                    to_string(input.sizes()), to_string(grid.sizes())));
  }
  if (grid.size(-1) != spatial) {
    throw Error(
        fmt::format("grid_sampler(): expected grid to have size {} in last dimension, but got grid with sizes {}",
                    spatial, to_string(grid.sizes())));
  }
  for (std::int64_t d = 2; d < input.dim(); ++d) {
    if (input.size(d) < 1) {
      throw Error(fmt::format(
          "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {} with "
          "dimension {} being empty",
          to_string(input.sizes()), d));
    }
  }
  const auto mode = static_cast<GridInterpolation>(interpolation_mode);
  if (mode == GridInterpolation::kBicubic && spatial == 3) {
    throw Error("grid_sampler(): bicubic interpolation only supports 4D input");
  }

  std::vector<std::vector<Neighbour>> along;  // by dimension, outermost first; the grid holds the innermost first
  std::size_t corners = 1;
  for (std::int64_t d = 0; d < spatial; ++d) {
    along.push_back(neighbours(grid.select(-1, spatial - 1 - d).flatten(1), input.size(d + 2), mode,
                               static_cast<GridPadding>(padding_mode), align_corners));
    corners *= along.back().size();
  }
  const Tensor planes = input.flatten(2);
  const std::int64_t n = input.size(0), c = input.size(1), points = along[0][0].index.size(1);
  Tensor sum;
  for (std::size_t corner = 0; corner < corners; ++corner) {
    Tensor index, inside, weight;
    std::size_t rest = corner;
    for (std::int64_t d = 0; d < spatial; ++d) {
      const auto& choices = along[static_cast<std::size_t>(d)];
      const Neighbour& choice = choices[rest % choices.size()];
      rest /= choices.size();
      index = index.defined() ? index * input.size(d + 2) + choice.index : choice.index;
      inside = inside.defined() ? tenon::logical_and(inside, choice.inside) : choice.inside;
      if (choice.weight.defined()) weight = weight.defined() ? weight * choice.weight : choice.weight;
    }
    // A product, not where(): a NaN coordinate lies outside, and its NaN weight must reach the result.
    const Tensor share = weight.defined() ? weight * inside : inside.to(input.scalar_type());
    const Tensor values = planes.gather(2, index.unsqueeze(1).expand({n, c, points}));
    const Tensor part = values * share.unsqueeze(1);
    sum = sum.defined() ? sum + part : part;
  }
  Dims sizes{n, c};
  for (std::int64_t d = 1; d <= spatial; ++d) sizes.push_back(grid.size(d));
  return as_owned(sum.view(sizes));
}

}  // namespace tenon
