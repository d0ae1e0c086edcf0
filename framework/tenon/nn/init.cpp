// First values of parameters.
#include <tenon/nn/init.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::nn::init {
namespace {

double fan_of(const Tensor& tensor, FanModeType mode) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return static_cast<double>(mode.is<enumtype::kFanIn>() ? in : out);
}

double kaiming_std(const Tensor& tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  return calculate_gain(nonlinearity, a) / std::sqrt(fan_of(tensor, mode));
}

double xavier_std(const Tensor& tensor, double gain) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(in + out));
}

/// Orthonormalises the `count` vectors of `length` values in place: modified Gram-Schmidt, twice for accuracy. The
/// vectors are random, hence independent; their signs are those of a QR decomposition with a positive diagonal.
void orthonormalise(double* vectors, std::int64_t count, std::int64_t length) {
  for (std::int64_t i = 0; i < count; ++i) {
    double* v = vectors + i * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t j = 0; j < i; ++j) {
        const double* u = vectors + j * length;
        double dot = 0;
        for (std::int64_t k = 0; k < length; ++k) dot += u[k] * v[k];
        for (std::int64_t k = 0; k < length; ++k) v[k] -= dot * u[k];
      }
    }
    double norm = 0;
    for (std::int64_t k = 0; k < length; ++k) norm += v[k] * v[k];
    norm = std::sqrt(norm);
    for (std::int64_t k = 0; k < length; ++k) v[k] /= norm;
  }
}

}  // namespace

Fan::Fan(Tensor& tensor) { std::tie(in, out) = _calculate_fan_in_and_fan_out(tensor); }

double calculate_gain(NonlinearityType nonlinearity, double param) {
  if (nonlinearity.is<enumtype::kTanh>()) return 5.0 / 3.0;
  if (nonlinearity.is<enumtype::kReLU>()) return std::sqrt(2.0);
  if (nonlinearity.is<enumtype::kLeakyReLU>()) return std::sqrt(2.0 / (1 + param * param));
  return 1.0;
}

Tensor constant_(Tensor tensor, Scalar value) {
  NoGradGuard no_grad;
  return tensor.fill_(value);
}
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }

Tensor normal_(Tensor tensor, double mean, double std) {
  NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}
Tensor uniform_(Tensor tensor, double low, double high) {
  NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}

Tensor eye_(Tensor matrix) {
  NoGradGuard no_grad;
  if (matrix.dim() != 2) throw Error("Only tensors with 2 dimensions are supported");
  return matrix.copy_(tenon::eye(matrix.size(0), matrix.size(1), matrix.options()));
}

Tensor dirac_(Tensor tensor) {
  NoGradGuard no_grad;
  if (tensor.dim() < 3 || tensor.dim() > 5) throw Error("Only tensors with 3, 4, or 5 dimensions are supported");
  tensor.zero_();
  const std::int64_t channels = std::min(tensor.size(0), tensor.size(1));
  for (std::int64_t c = 0; c < channels; ++c) {
    Tensor centre = tensor[c][c];
    for (std::int64_t dim = 2; dim < tensor.dim(); ++dim) centre = centre.select(0, tensor.size(dim) / 2);
    centre.fill_(1);
  }
  return tensor;
}

Tensor orthogonal_(Tensor tensor, double gain) {
  NoGradGuard no_grad;
  if (tensor.dim() < 2) throw Error("Only tensors with 2 or more dimensions are supported");
  const std::int64_t rows = tensor.size(0);
  const std::int64_t columns = tensor.numel() / std::max<std::int64_t>(rows, 1);
  if (tensor.numel() == 0 || !ops::has_values(tensor)) return tensor;
  // The shorter side's vectors become orthonormal.
  const bool wide = rows <= columns;
  Tensor vectors = tenon::randn({wide ? rows : columns, wide ? columns : rows}, TensorOptions(kFloat64));
  orthonormalise(vectors.data_ptr<double>(), vectors.size(0), vectors.size(1));
  Tensor result = (wide ? vectors : vectors.t()).mul(gain).reshape(tensor.sizes());
  return tensor.copy_(result);
}

Tensor sparse_(Tensor tensor, double sparsity, double std) {
  NoGradGuard no_grad;
  if (tensor.dim() != 2) throw Error("Only tensors with 2 dimensions are supported");
  const std::int64_t rows = tensor.size(0);
  const auto zeros = std::min(rows, static_cast<std::int64_t>(std::ceil(sparsity * static_cast<double>(rows))));
  tensor.normal_(0, std);
  for (std::int64_t column = 0; column < tensor.size(1); ++column) {
    const Tensor order = tenon::randperm(rows, TensorOptions(kInt64));
    for (std::int64_t i = 0; i < zeros; ++i) {
      tensor.select(1, column).select(0, order.data_ptr<std::int64_t>()[i]).fill_(0);
    }
  }
  return tensor;
}

Tensor kaiming_uniform_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor kaiming_normal_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  const double std = kaiming_std(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}
Tensor xavier_uniform_(Tensor tensor, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  const double std = xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std);
}

std::tuple<std::int64_t, std::int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  if (tensor.dim() < 2) {
    throw Error(fmt::format(
        "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions (it has {})", tensor.dim()));
  }
  std::int64_t field = 1;
  for (std::int64_t dim = 2; dim < tensor.dim(); ++dim) field *= tensor.size(dim);
  return {tensor.size(1) * field, tensor.size(0) * field};
}

}  // namespace tenon::nn::init
