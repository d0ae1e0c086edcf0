// Convolutions of random shapes, strides, paddings, dilations and groups, and transposed ones, held against loops in
// float64, gradients included.
#include <tenon/autograd/autograd.h>

#include "draws.h"

namespace tenon::test {
namespace {

struct Case {
  std::int64_t rank, batch, groups, in_channels, out_channels;  ///< channels of one group
  Sizes size, kernel, stride, padding, dilation;

  std::string text() const {
    return "size " + text_of(size) + ", kernel " + text_of(kernel) + ", stride " + text_of(stride) + ", padding " +
           text_of(padding) + ", dilation " + text_of(dilation) + ", groups " + std::to_string(groups);
  }
};

Case draw(Draws& draws) {
  const std::int64_t rank = draws.integer(1, 3);
  return {.rank = rank,
          .batch = draws.one_in(12) ? 0 : draws.integer(1, 3),
          .groups = draws.integer(1, 3),
          .in_channels = draws.integer(1, 3),
          .out_channels = draws.integer(1, 3),
          .size = draws.sizes(rank, 1, rank == 3 ? 5 : 8),
          .kernel = draws.sizes(rank, 1, 3),
          .stride = draws.sizes(rank, 1, 3),
          .padding = draws.sizes(rank, 0, 3),
          .dilation = draws.sizes(rank, 1, 3)};
}

Sizes with(std::initializer_list<std::int64_t> front, const Sizes& rest) {
  Sizes sizes(front);
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return sizes;
}

/// visit(place of the narrow side, place of the wide side, place of the weight) for each product of a convolution from
/// `wide` (N, groups * wide_channels, size…) to `narrow` (N, groups * narrow_channels, windows…), whose weight is
/// (groups * narrow_channels, wide_channels, kernel…).
void for_each_product(const Case& c, std::int64_t wide_channels, std::int64_t narrow_channels, const Sizes& size,
                      const Sizes& windows,
                      const std::function<void(const Sizes&, const Sizes&, const Sizes&)>& visit) {
  for_each_place(with({c.batch, c.groups * narrow_channels}, windows), [&](const Sizes& narrow) {
    const std::int64_t group = narrow[1] / narrow_channels;
    for_each_place(with({wide_channels}, c.kernel), [&](const Sizes& k) {
      Sizes wide = {narrow[0], group * wide_channels + k[0]};
      Sizes weight = {narrow[1], k[0]};
      for (std::size_t d = 0; d < c.kernel.size(); ++d) {
        const std::int64_t at = narrow[d + 2] * c.stride[d] - c.padding[d] + k[d + 1] * c.dilation[d];
        if (at < 0 || at >= size[d]) return;
        wide.push_back(at);
        weight.push_back(k[d + 1]);
      }
      visit(narrow, wide, weight);
    });
  });
}

TEST(GeneratedConvolution, ValuesAndGradients) {
  for_each_case(19, 250, [](Draws& draws) {
    const Case c = draw(draws);
    SCOPED_TRACE(c.text());
    const Array x(draws.tensor(with({c.batch, c.groups * c.in_channels}, c.size)));
    const Array w(draws.tensor(with({c.groups * c.out_channels, c.in_channels}, c.kernel)));
    const bool has_bias = draws.one_in(2);
    const Array b(draws.tensor({c.groups * c.out_channels}));
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const Tensor weight = draws.laid_out(w).set_requires_grad(true);
    const Tensor bias = has_bias ? draws.laid_out(b).set_requires_grad(true) : Tensor();
    const auto convolve = [&] {
      if (c.rank == 1) return conv1d(input, weight, bias, c.stride, c.padding, c.dilation, c.groups);
      if (c.rank == 2) return conv2d(input, weight, bias, c.stride, c.padding, c.dilation, c.groups);
      return conv3d(input, weight, bias, c.stride, c.padding, c.dilation, c.groups);
    };
    Sizes windows;
    for (std::size_t d = 0; d < c.size.size(); ++d) {
      const std::int64_t room = c.size[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1;
      if (room < 0) {
        EXPECT_ANY_THROW(convolve());
        return;
      }
      windows.push_back(room / c.stride[d] + 1);
    }
    const Sizes out = with({c.batch, c.groups * c.out_channels}, windows);
    const Tensor scale = draws.tensor(out);
    const Array scales(scale);
    Array want(out), of_x(x.sizes), of_w(w.sizes), of_b(b.sizes);
    for_each_product(c, c.in_channels, c.out_channels, c.size, windows,
                     [&](const Sizes& o, const Sizes& i, const Sizes& k) {
                       want[o] += x[i] * w[k];
                       of_x[i] += scales[o] * w[k];
                       of_w[k] += scales[o] * x[i];
                     });
    for_each_place(out, [&](const Sizes& o) {
      if (has_bias) want[o] += b[{o[1]}];
      of_b[{o[1]}] += scales[o];
    });
    const Tensor y = convolve();
    expect_near(y, want);
    (y * scale).sum().backward();
    expect_near(input.grad(), of_x);
    expect_near(weight.grad(), of_w);
    if (has_bias) expect_near(bias.grad(), of_b);
    // In float32 another implementation may serve it.
    const auto in_float32 = [&](const Tensor& of) {
      return draws.in_some_layout(of.detach().to(kFloat32)).set_requires_grad(true);
    };
    const Tensor i = in_float32(input), k = in_float32(weight), shift = has_bias ? in_float32(bias) : Tensor();
    const Tensor single = [&] {
      if (c.rank == 1) return conv1d(i, k, shift, c.stride, c.padding, c.dilation, c.groups);
      if (c.rank == 2) return conv2d(i, k, shift, c.stride, c.padding, c.dilation, c.groups);
      return conv3d(i, k, shift, c.stride, c.padding, c.dilation, c.groups);
    }();
    expect_near(single, want, 1e-4);
    (single * scale.to(kFloat32)).sum().backward();
    expect_near(i.grad(), of_x, 1e-4);
    expect_near(k.grad(), of_w, 1e-4);
    if (has_bias) expect_near(shift.grad(), of_b, 1e-4);
  });
}

/// The weights are large beside the pictures, as at the end of a network: their gradient is then found channels by
/// channels, and not picture by picture.
TEST(GeneratedConvolution, WeightGradientsOfManyChannelsOverSmallPictures) {
  for_each_case(29, 12, [](Draws& draws) {
    const std::int64_t channels = draws.integer(16, 40), out_channels = 16 * draws.integer(8, 20),
                       size = draws.integer(3, 6);
    const Tensor x = draws.tensor({draws.integer(1, 2), channels, size, size});
    const Tensor w = draws.tensor({out_channels, channels, 3, 3}),
                 scale = draws.tensor({x.size(0), out_channels, size, size});
    const auto gradient = [&](const Tensor& input, const Tensor& given) {
      const Tensor weight = given.detach().contiguous().set_requires_grad(true);
      conv2d(input, weight, Tensor(), 1, 1).backward(scale.to(weight.scalar_type()));
      return weight.grad();
    };
    const Array want(gradient(x.contiguous(), w));
    const Tensor single = x.to(kFloat32).contiguous();
    expect_near(gradient(single, w.to(kFloat32)), want, 1e-4);
    const Tensor last = single.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
    expect_near(gradient(last, w.to(kFloat32)), want, 1e-4);
  });
}

TEST(GeneratedConvolution, TransposedValuesAndGradients) {
  for_each_case(23, 250, [](Draws& draws) {
    const Case c = draw(draws);
    Sizes extra, size;
    for (std::size_t d = 0; d < c.size.size(); ++d) {
      extra.push_back(draws.integer(0, std::max(c.stride[d], c.dilation[d]) - 1));
      size.push_back((c.size[d] - 1) * c.stride[d] - 2 * c.padding[d] + c.dilation[d] * (c.kernel[d] - 1) + extra[d] +
                     1);
    }
    SCOPED_TRACE(c.text() + ", output padding " + text_of(extra));
    const Array x(draws.tensor(with({c.batch, c.groups * c.in_channels}, c.size)));
    const Array w(draws.tensor(with({c.groups * c.in_channels, c.out_channels}, c.kernel)));
    const Array b(draws.tensor({c.groups * c.out_channels}));
    const bool has_bias = draws.one_in(2);
    const Tensor input = draws.laid_out(x).set_requires_grad(true);
    const Tensor weight = draws.laid_out(w).set_requires_grad(true);
    const Tensor bias = has_bias ? draws.laid_out(b).set_requires_grad(true) : Tensor();
    const auto convolve = [&] {
      if (c.rank == 1) return conv_transpose1d(input, weight, bias, c.stride, c.padding, extra, c.groups, c.dilation);
      if (c.rank == 2) return conv_transpose2d(input, weight, bias, c.stride, c.padding, extra, c.groups, c.dilation);
      return conv_transpose3d(input, weight, bias, c.stride, c.padding, extra, c.groups, c.dilation);
    };
    for (const std::int64_t length : size) {
      if (length > 0) continue;
      EXPECT_ANY_THROW(convolve());
      return;
    }
    const Sizes out = with({c.batch, c.groups * c.out_channels}, size);
    const Tensor scale = draws.tensor(out);
    const Array scales(scale);
    Array want(out), of_x(x.sizes), of_w(w.sizes), of_b(b.sizes);
    // Its input is the narrow side of the convolution that it transposes.
    for_each_product(c, c.out_channels, c.in_channels, size, c.size,
                     [&](const Sizes& i, const Sizes& o, const Sizes& k) {
                       want[o] += x[i] * w[k];
                       of_x[i] += scales[o] * w[k];
                       of_w[k] += scales[o] * x[i];
                     });
    for_each_place(out, [&](const Sizes& o) {
      if (has_bias) want[o] += b[{o[1]}];
      of_b[{o[1]}] += scales[o];
    });
    const Tensor y = convolve();
    expect_near(y, want);
    (y * scale).sum().backward();
    expect_near(input.grad(), of_x);
    expect_near(weight.grad(), of_w);
    if (has_bias) expect_near(bias.grad(), of_b);
  });
}

}  // namespace
}  // namespace tenon::test
