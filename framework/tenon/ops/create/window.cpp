// Windows of signal processing, and Vandermonde matrices. Declared in factory.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/create/with_grad.h>
#include <tenon/ops/support/support.h>

#include <numbers>
#include <string>

namespace tenon {

Tensor hamming_window(std::int64_t length, bool periodic, double alpha, double beta, const TensorOptions& options) {
  TENON_SCOPE(hamming_window, length, periodic, alpha, beta, options)
  if (length < 0) {
    throw Error("hamming_window requires non-negative window_length, got window_length=" + std::to_string(length));
  }
  const TensorOptions plain = TensorOptions(options).dtype(options.dtype()).requires_grad(std::nullopt);
  if (!is_floating_point(options.dtype())) {
    throw Error(std::string("hamming_window expects floating point dtypes, got: ") + toString(options.dtype()));
  }
  NoGradGuard no_grad;
  if (length < 2) return ops::with_grad(ones({length}, plain), options);
  const double step = 2 * std::numbers::pi / static_cast<double>(periodic ? length : length - 1);
  return ops::with_grad(arange(length, plain).mul_(step).cos_().mul_(-beta).add_(alpha), options);
}
Tensor hamming_window(std::int64_t length, const TensorOptions& options) {
  return hamming_window(length, true, options);
}
Tensor hamming_window(std::int64_t length, bool periodic, const TensorOptions& options) {
  return hamming_window(length, periodic, 0.54, options);
}
Tensor hamming_window(std::int64_t length, bool periodic, double alpha, const TensorOptions& options) {
  return hamming_window(length, periodic, alpha, 0.46, options);
}
Tensor hann_window(std::int64_t length, const TensorOptions& options) { return hann_window(length, true, options); }
Tensor hann_window(std::int64_t length, bool periodic, const TensorOptions& options) {
  TENON_SCOPE(hann_window, length, periodic, options)
  return hamming_window(length, periodic, 0.5, 0.5, options);
}

Tensor vander(const Tensor& x, std::optional<std::int64_t> columns, bool increasing) {
  TENON_SCOPE(vander, x, columns, increasing)
  if (x.dim() != 1) throw Error("x must be a one-dimensional tensor.");
  const std::int64_t n = columns.value_or(x.size(0));
  if (n < 0) throw Error("N must be non-negative.");
  const Dtype dtype = is_integral(x.scalar_type(), true) ? kInt64 : x.scalar_type();
  if (n < 2) return ones({x.size(0), n}, x.options().dtype(dtype));
  Tensor powers = x.to(dtype).unsqueeze(1).expand({x.size(0), n}).clone(MemoryFormat::Contiguous);
  powers.select(1, 0).fill_(1);
  powers = powers.cumprod(1);
  return increasing ? powers : powers.flip({1});
}

}  // namespace tenon
