// Functional pooling: sizes out of options, then the operator. lp_pool is a mean of powers.
#include <tenon/nn/functional/pooling.h>

#include <tenon/ops/nn/placed_pooling.h>
#include <tenon/ops/ops.h>

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

/// The sizes of the result: those given, or what max_pool with these options was given.
template <std::size_t D>
std::vector<std::int64_t> unpooled_size(const Tensor& input, const MaxUnpoolFuncOptions<D>& options) {
  if (options.output_size()) {
    const auto& given = *options.output_size();
    if (given.size() != D && given.size() != D + 2) {
      throw Error(
          fmt::format("output_size should be a sequence containing {} or {} elements, but it has a length of '{}'", D,
                      D + 2, given.size()));
    }
    return {given.end() - static_cast<std::ptrdiff_t>(D), given.end()};
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < D; ++d) {
    sizes.push_back((input.size(-static_cast<std::int64_t>(D - d)) - 1) * options.stride()[d] +
                    options.kernel_size()[d] - 2 * options.padding()[d]);
  }
  return sizes;
}

Tensor to_power(const Tensor& mean, double norm_type, std::int64_t count) {
  // sum = mean * count; the sign is kept as in PyTorch. The slope of the root is infinite at 0: a window of zeros takes
  // none of it.
  const Tensor magnitude = mean.abs();
  return (mean.detach().sign() * magnitude.masked_fill(magnitude.eq(0), 0)).mul(count).pow(1.0 / norm_type);
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

/// The samples of the options, or drawn ones: a number for each dimension of each channel.
template <std::size_t D>
Tensor samples_for(const Tensor& input, const FractionalMaxPoolOptions<D>& options) {
  if (options._random_samples().defined()) return options._random_samples();
  const bool batched = input.dim() == static_cast<std::int64_t>(D) + 2;
  return tenon::rand({batched ? input.size(0) : 1, input.size(-static_cast<std::int64_t>(D) - 1), D}, input.options());
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
    return tenon::max_unpool##D##d(input, indices, unpooled_size<D>(input, o));                                     \
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
Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& o) {
  const auto& kernel = o.kernel_size();
  const Tensor mean = tenon::avg_pool3d(input.pow(o.norm_type()), *kernel, *o.stride(), {0, 0, 0}, o.ceil_mode());
  return to_power(mean, o.norm_type(), kernel[0] * kernel[1] * kernel[2]);
}

#define TENON_FRACTIONAL_POOL_FUNCTIONS(D)                                                                  \
  std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(const Tensor& input,                    \
                                                                    const FractionalMaxPoolOptions<D>& o) { \
    return tenon::fractional_max_pool##D##d(input, *o.kernel_size(), fractional_size<D>(input, o),          \
                                            samples_for<D>(input, o));                                      \
  }                                                                                                         \
  Tensor fractional_max_pool##D##d(const Tensor& input, const FractionalMaxPoolOptions<D>& o) {             \
    return std::get<0>(fractional_max_pool##D##d_with_indices(input, o));                                   \
  }
TENON_FRACTIONAL_POOL_FUNCTIONS(2)
TENON_FRACTIONAL_POOL_FUNCTIONS(3)
#undef TENON_FRACTIONAL_POOL_FUNCTIONS

}  // namespace tenon::nn::functional
