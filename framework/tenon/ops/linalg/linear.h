// Matrix products.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

TENON_API Tensor matmul(const Tensor& self, const Tensor& other);
TENON_API Tensor mm(const Tensor& self, const Tensor& other);
TENON_API Tensor bmm(const Tensor& self, const Tensor& other);
TENON_API Tensor mv(const Tensor& self, const Tensor& other);
TENON_API Tensor dot(const Tensor& self, const Tensor& other);
TENON_API Tensor outer(const Tensor& self, const Tensor& other);
TENON_API Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                       const Scalar& alpha = 1);
TENON_API Tensor baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                         const Scalar& alpha = 1);
/// x @ weight^T + bias.
TENON_API Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt);
TENON_API Tensor& linear_out(Tensor& out, const Tensor& input, const Tensor& weight,
                             const std::optional<Tensor>& bias = std::nullopt);
TENON_API Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight,
                          const std::optional<Tensor>& bias = std::nullopt);
TENON_API Tensor cross(const Tensor& self, const Tensor& other, std::optional<std::int64_t> dim = std::nullopt);

}  // namespace tenon
