// Functional pooling: what the operators do not have is composed of ones they do have.
#include <tenon/nn/functional/pooling.h>

#include <tenon/ops/ops.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::nn::functional {
namespace {

template <std::size_t D>
std::vector<std::int64_t> adaptive_size(const Tensor& input, const AdaptivePoolOptions<D>& options) {
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < D; ++d) {
    const std::optional<std::int64_t> wanted = options.output_size()[d];
    sizes.push_back(wanted ? *wanted : input.size(-static_cast<std::int64_t>(D - d)));
  }
  return sizes;
}

/// Writes each value to the place its index names in the spatial plane; everything else is zero.
template <std::size_t D>
Tensor unpool(const Tensor& input, const Tensor& indices, const MaxUnpoolFuncOptions<D>& options) {
  if (indices.sizes() != input.sizes()) {
    throw Error("max_unpool: the shape of indices must be the same as input size");
  }
  std::vector<std::int64_t> spatial;
  if (options.output_size()) {
    const auto& given = *options.output_size();
    if (given.size() != D && given.size() != D + 2) {
      throw Error(
          fmt::format("output_size should be a sequence containing {} or {} elements, but it has a length of '{}'", D,
                      D + 2, given.size()));
    }
    spatial.assign(given.end() - static_cast<std::ptrdiff_t>(D), given.end());
  } else {
    for (std::size_t d = 0; d < D; ++d) {
      spatial.push_back((input.size(-static_cast<std::int64_t>(D - d)) - 1) * options.stride()[d] +
                        options.kernel_size()[d] - 2 * options.padding()[d]);
    }
  }
  std::vector<std::int64_t> sizes = input.sizes().vec();
  std::int64_t plane = 1;
  for (std::size_t d = 0; d < D; ++d) {
    sizes[sizes.size() - D + d] = spatial[d];
    plane *= spatial[d];
  }
  const std::int64_t first = input.dim() - static_cast<std::int64_t>(D);
  std::vector<std::int64_t> flat(sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(D));
  flat.push_back(plane);
  return tenon::zeros(flat, input.options()).scatter(-1, indices.flatten(first), input.flatten(first)).view(sizes);
}

Tensor to_power(const Tensor& mean, double norm_type, std::int64_t count) {
  // sum = mean * count; the sign is kept as in PyTorch, so that an all-zero window has no infinite slope.
  return (mean.sign() * tenon::relu(mean.abs())).mul(count).pow(1.0 / norm_type);
}

template <std::size_t D>
std::vector<std::int64_t> fractional_size(const Tensor& input, const FractionalMaxPoolOptions<D>& options) {
  if (options.output_size()) return options.output_size()->vec();
  if (!options.output_ratio())
    throw Error("fractional_max_pool requires specifying either an output_size or an output_ratio");
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < D; ++d) {
    sizes.push_back(static_cast<std::int64_t>(static_cast<double>(input.size(-static_cast<std::int64_t>(D - d))) *
                                              (*options.output_ratio())[d]));
  }
  return sizes;
}

/// Where the windows of one dimension begin: a pseudo-random sequence with steps of floor and ceil of `alpha`.
std::vector<std::int64_t> fractional_starts(double sample, std::int64_t input, std::int64_t output,
                                            std::int64_t kernel) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(output));
  if (output > 1) {
    const double alpha = static_cast<double>(input - kernel) / static_cast<double>(output - 1);
    for (std::int64_t i = 0; i + 1 < output; ++i) {
      starts[static_cast<std::size_t>(i)] = static_cast<std::int64_t>((static_cast<double>(i) + sample) * alpha) -
                                            static_cast<std::int64_t>(sample * alpha);
    }
  }
  starts[static_cast<std::size_t>(output - 1)] = input - kernel;
  return starts;
}

/// Where the elements of every window lie in their plane, (batch, channels, outputs, window), on the host.
template <std::size_t D>
Tensor window_positions(const Tensor& samples, const std::vector<std::int64_t>& in,
                        const std::vector<std::int64_t>& out, const std::vector<std::int64_t>& kernel,
                        IntArrayRef sizes) {
  Tensor index = tenon::empty(sizes, TensorOptions(kInt64));
  std::int64_t* to = index.data_ptr<std::int64_t>();
  const double* sample = samples.data_ptr<double>();
  for (std::int64_t plane_number = 0; plane_number < sizes[0] * sizes[1]; ++plane_number, sample += D) {
    std::vector<std::vector<std::int64_t>> starts(D);
    for (std::size_t d = 0; d < D; ++d) {
      // The samples are given innermost dimension first, as in PyTorch.
      starts[d] = fractional_starts(sample[D == 2 ? 1 - d : d], in[d], out[d], kernel[d]);
    }
    for (std::int64_t o = 0; o < sizes[2]; ++o) {
      for (std::int64_t k = 0; k < sizes[3]; ++k) {
        std::int64_t position = 0, rest_o = o, rest_k = k, scale = 1;
        for (std::size_t d = D; d-- > 0;) {
          position += scale * (starts[d][static_cast<std::size_t>(rest_o % out[d])] + rest_k % kernel[d]);
          rest_o /= out[d];
          rest_k /= kernel[d];
          scale *= in[d];
        }
        *to++ = position;
      }
    }
  }
  return index;
}

/// Windows are gathered (…, outputs, kernel elements), then reduced: differentiable by gather and max.
template <std::size_t D>
std::tuple<Tensor, Tensor> fractional_max_pool(const Tensor& input, const FractionalMaxPoolOptions<D>& options) {
  const bool batched = input.dim() == static_cast<std::int64_t>(D) + 2;
  const Tensor x = batched ? input : input.unsqueeze(0);
  const std::vector<std::int64_t> out = fractional_size<D>(x, options);
  const std::int64_t batch = x.size(0), channels = x.size(1);
  std::int64_t outputs = 1, plane = 1, window = 1;
  std::vector<std::int64_t> in(D), kernel = options.kernel_size().vec();
  for (std::size_t d = 0; d < D; ++d) {
    in[d] = x.size(static_cast<std::int64_t>(d) + 2);
    if (out[d] < 1 || out[d] + kernel[d] - 1 > in[d]) {
      throw Error(
          fmt::format("fractional_max_pool{}d: kernel size {} with output size {} is too large for an input of {}", D,
                      kernel[d], out[d], in[d]));
    }
    outputs *= out[d];
    plane *= in[d];
    window *= kernel[d];
  }
  Tensor samples = options._random_samples();
  if (!samples.defined()) samples = tenon::rand({batch, channels, static_cast<std::int64_t>(D)}, x.options());
  const std::vector<std::int64_t> places{batch, channels, outputs, window};
  const Tensor index = ops::has_values(x) ? window_positions<D>(samples.to(TensorOptions(kFloat64)).cpu().contiguous(),
                                                                in, out, kernel, places)
                                                .to(x.device())
                                          : tenon::empty(places, x.options().dtype(kInt64));
  const Tensor windows = x.reshape({batch, channels, plane})
                             .gather(2, index.view({batch, channels, outputs * window}))
                             .view(index.sizes());
  const auto [values, where] = windows.max(-1);
  std::vector<std::int64_t> sizes{batch, channels};
  sizes.insert(sizes.end(), out.begin(), out.end());
  const Tensor y = values.view(sizes);
  const Tensor indices = index.gather(3, where.unsqueeze(-1)).squeeze(-1).view(sizes);
  return batched ? std::make_tuple(y, indices) : std::make_tuple(y.squeeze(0), indices.squeeze(0));
}

}  // namespace

#define TENON_POOL_FUNCTIONS(D)                                                                                     \
  Tensor max_pool##D##d(const Tensor& input, const MaxPoolOptions<D>& o) {                                          \
    return tenon::max_pool##D##d(input, *o.kernel_size(), *o.stride(), *o.padding(), *o.dilation(), o.ceil_mode()); \
  }                                                                                                                 \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input, const MaxPoolOptions<D>& o) {         \
    return tenon::max_pool##D##d_with_indices(input, *o.kernel_size(), *o.stride(), *o.padding(), *o.dilation(),    \
                                              o.ceil_mode());                                                       \
  }                                                                                                                 \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& o) {                            \
    return tenon::adaptive_avg_pool##D##d(input, adaptive_size<D>(input, o));                                       \
  }                                                                                                                 \
  Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& o) {                            \
    return std::get<0>(tenon::adaptive_max_pool##D##d(input, adaptive_size<D>(input, o)));                          \
  }                                                                                                                 \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(const Tensor& input,                              \
                                                                  const AdaptivePoolOptions<D>& o) {                \
    return tenon::adaptive_max_pool##D##d(input, adaptive_size<D>(input, o));                                       \
  }                                                                                                                 \
  Tensor max_unpool##D##d(const Tensor& input, const Tensor& indices, const MaxUnpoolFuncOptions<D>& o) {           \
    return unpool<D>(input, indices, o);                                                                            \
  }
TENON_POOL_FUNCTIONS(1)
TENON_POOL_FUNCTIONS(2)
TENON_POOL_FUNCTIONS(3)
#undef TENON_POOL_FUNCTIONS

Tensor avg_pool1d(const Tensor& input, const AvgPoolOptions<1>& o) {
  return tenon::avg_pool1d(input, *o.kernel_size(), *o.stride(), *o.padding(), o.ceil_mode(), o.count_include_pad());
}
Tensor avg_pool2d(const Tensor& input, const AvgPoolOptions<2>& o) {
  return tenon::avg_pool2d(input, *o.kernel_size(), *o.stride(), *o.padding(), o.ceil_mode(), o.count_include_pad(),
                           o.divisor_override());
}
Tensor avg_pool3d(const Tensor& input, const AvgPoolOptions<3>& o) {
  return tenon::avg_pool3d(input, *o.kernel_size(), *o.stride(), *o.padding(), o.ceil_mode(), o.count_include_pad(),
                           o.divisor_override());
}

Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& o) {
  const Tensor mean = tenon::avg_pool1d(input.pow(o.norm_type()), *o.kernel_size(), *o.stride(), {0}, o.ceil_mode());
  return to_power(mean, o.norm_type(), o.kernel_size()[0]);
}
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& o) {
  const Tensor mean = tenon::avg_pool2d(input.pow(o.norm_type()), *o.kernel_size(), *o.stride(), {0, 0}, o.ceil_mode());
  return to_power(mean, o.norm_type(), o.kernel_size()[0] * o.kernel_size()[1]);
}

std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool2dFuncOptions& options) {
  return fractional_max_pool<2>(input, options);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool3dFuncOptions& options) {
  return fractional_max_pool<3>(input, options);
}
Tensor fractional_max_pool2d(const Tensor& input, const FractionalMaxPool2dFuncOptions& options) {
  return std::get<0>(fractional_max_pool<2>(input, options));
}
Tensor fractional_max_pool3d(const Tensor& input, const FractionalMaxPool3dFuncOptions& options) {
  return std::get<0>(fractional_max_pool<3>(input, options));
}

}  // namespace tenon::nn::functional
