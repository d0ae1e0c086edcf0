// Reductions, scans and sorting.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

TENON_API Tensor sum(const Tensor& self, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                     std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor mean(const Tensor& self, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor mean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor prod(const Tensor& self, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor prod(const Tensor& self, std::int64_t dim, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor amax(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
TENON_API Tensor amin(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
inline Tensor max(const Tensor& self) { return self.max(); }
inline std::tuple<Tensor, Tensor> max(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.max(dim, keepdim);
}
inline Tensor min(const Tensor& self) { return self.min(); }
inline std::tuple<Tensor, Tensor> min(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.min(dim, keepdim);
}
inline Tensor argmax(const Tensor& self, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false) {
  return self.argmax(dim, keepdim);
}
inline Tensor argmin(const Tensor& self, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false) {
  return self.argmin(dim, keepdim);
}
inline Tensor any(const Tensor& self) { return self.any(); }
inline Tensor any(const Tensor& self, std::int64_t dim, bool keepdim = false) { return self.any(dim, keepdim); }
inline Tensor all(const Tensor& self) { return self.all(); }
inline Tensor all(const Tensor& self, std::int64_t dim, bool keepdim = false) { return self.all(dim, keepdim); }
TENON_API Tensor norm(const Tensor& self, const Scalar& p = 2);
TENON_API Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false);
inline Tensor var(const Tensor& self, bool unbiased = true) { return self.var(unbiased); }
inline Tensor var(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false) {
  return self.var(dim, unbiased, keepdim);
}
inline Tensor var(const Tensor& self, int dim) { return self.var(dim); }
inline Tensor std(const Tensor& self, bool unbiased = true) { return self.std(unbiased); }
inline Tensor std(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim = false) {
  return self.std(dim, unbiased, keepdim);
}
inline Tensor std(const Tensor& self, int dim) { return self.std(dim); }
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim);
inline Tensor cumsum(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumsum(dim, dtype);
}
inline Tensor cumprod(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) {
  return self.cumprod(dim, dtype);
}
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.sort(dim, descending);
}
inline Tensor argsort(const Tensor& self, std::int64_t dim = -1, bool descending = false) {
  return self.argsort(dim, descending);
}
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, std::int64_t k, std::int64_t dim = -1, bool largest = true,
                                       bool sorted = true) {
  return self.topk(k, dim, largest, sorted);
}
TENON_API Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false);
TENON_API Tensor softmax(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor log_softmax(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor softmin(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype = std::nullopt);
inline Tensor median(const Tensor& self) { return self.median(); }

}  // namespace tenon
