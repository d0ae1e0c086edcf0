// Convolution of integers: windows are a view of the padded input, and one product per group sums over them.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/nn/whole_convolution.h>
#include <tenon/ops/shape/padding.h>
#include <tenon/ops/support/support.h>

#include <string>

namespace tenon::ops {
namespace {

void check_summed(const ConvAttributes& attributes, Dtype dtype) {
  if (dtype != kBool) return;
  throw NotImplementedError("\"slow_conv" + std::to_string(attributes.spatial) + "d_cpu\" not implemented for 'Bool'");
}

/// (N, C, …) to the windows of each group, (N, groups, C / groups * window, places): a copy.
Tensor windows_of(const Tensor& x, const Dims& kernel, const Dims& places, const ConvAttributes& attributes) {
  const std::int64_t groups = attributes.groups, channels = x.size(1) / groups;
  Dims sizes{x.size(0), groups, channels}, strides{x.stride(0), channels * x.stride(1), x.stride(1)};
  for (int d = 0; d < attributes.spatial; ++d) {
    sizes.push_back(kernel[d]);
    strides.push_back(attributes.dilation[d] * x.stride(d + 2));
  }
  for (int d = 0; d < attributes.spatial; ++d) {
    sizes.push_back(places[d]);
    strides.push_back(attributes.stride[d] * x.stride(d + 2));
  }
  return x.as_strided(sizes, strides).reshape({x.size(0), groups, channels * kernel.product(), places.product()});
}

/// x, padded already, with w (O, C / groups, …) to (N, O, places).
Tensor products(const Tensor& x, const Tensor& w, const Dims& places, const ConvAttributes& attributes) {
  const std::int64_t groups = attributes.groups;
  Dims kernel, sizes{x.size(0), w.size(0)};
  for (int d = 0; d < attributes.spatial; ++d) {
    kernel.push_back(w.size(d + 2));
    sizes.push_back(places[d]);
  }
  const Tensor rows = w.reshape({1, groups, w.size(0) / groups, w.size(1) * kernel.product()});
  return rows.matmul(windows_of(x, kernel, places, attributes)).reshape(sizes);
}

/// Zeros (or, where negative, less) at both ends of each spatial dimension.
Tensor padded(const Tensor& x, const std::int64_t* before, const std::int64_t* after, int spatial) {
  std::vector<std::int64_t> amounts;
  for (int d = spatial - 1; d >= 0; --d) {
    amounts.push_back(before[d]);
    amounts.push_back(after[d]);
  }
  return constant_pad_nd(x, amounts, 0).contiguous();
}

}  // namespace

Tensor whole_convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvAttributes& attributes) {
  check_summed(attributes, x.scalar_type());
  NoGradGuard no_grad;
  const Tensor wide = padded(x, attributes.padding, attributes.padding, attributes.spatial);
  Dims places, per_channel{w.size(0)};
  for (int d = 0; d < attributes.spatial; ++d) {
    const std::int64_t reach = attributes.dilation[d] * (w.size(d + 2) - 1) + 1;
    places.push_back((wide.size(d + 2) - reach) / attributes.stride[d] + 1);
    per_channel.push_back(1);
  }
  const Tensor y = products(wide, w, places, attributes);
  return bias.defined() ? y.add(bias.view(per_channel)) : y;
}

Tensor whole_convolution_input(const Tensor& y, const Tensor& w, const Dims& x_sizes,
                               const ConvAttributes& attributes) {
  check_summed(attributes, y.scalar_type());
  NoGradGuard no_grad;
  const int spatial = attributes.spatial;
  // Elements of y stand `stride` apart, and are seen through the mirrored window.
  Dims apart{y.size(0), y.size(1)}, places, flipped;
  std::int64_t before[3], after[3];
  for (int d = 0; d < spatial; ++d) {
    const std::int64_t reach = attributes.dilation[d] * (w.size(d + 2) - 1);
    apart.push_back((y.size(d + 2) - 1) * attributes.stride[d] + 1);
    places.push_back(x_sizes[d + 2]);
    flipped.push_back(d + 2);
    before[d] = reach - attributes.padding[d];
    after[d] = x_sizes[d + 2] + reach - before[d] - apart.back();
  }
  const Tensor spread = y.new_zeros(apart);
  Tensor into = spread;
  for (int d = 0; d < spatial; ++d) into = into.slice(d + 2, 0, std::nullopt, attributes.stride[d]);
  into.copy_(y);
  // (O, C / groups, …) to (C, O / groups, …).
  const std::int64_t groups = attributes.groups;
  Dims grouped{groups, w.size(0) / groups}, swapped{groups * w.size(1), w.size(0) / groups};
  for (int d = 1; d < spatial + 2; ++d) grouped.push_back(w.size(d));
  for (int d = 0; d < spatial; ++d) swapped.push_back(w.size(d + 2));
  const Tensor mirrored = w.flip(flipped).view(grouped).transpose(1, 2).reshape(swapped);
  ConvAttributes plain = attributes;
  for (std::int64_t& step : plain.stride) step = 1;
  return products(padded(spread, before, after, spatial), mirrored, places, plain);
}

}  // namespace tenon::ops
