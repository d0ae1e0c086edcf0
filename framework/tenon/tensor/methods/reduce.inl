// Methods of Tensor that reduce over dims or scan along them: those that ops/reduce defines. Included by tensor.h
// inside the class; what a method without a comment does is said at the function of its name.

// Those of reduction_rows.inl.
#define TENON_REDUCTION(name, out, parameters, ...) TENON_API Tensor name parameters const;
#include <tenon/tensor/reduction_rows.inl>

// Over dims.
TENON_API Tensor max() const;
TENON_API Tensor max(const Tensor& other) const;
TENON_API std::tuple<Tensor, Tensor> max(std::int64_t dim, bool keepdim = false) const;
TENON_API Tensor min() const;
TENON_API Tensor min(const Tensor& other) const;
TENON_API std::tuple<Tensor, Tensor> min(std::int64_t dim, bool keepdim = false) const;
TENON_API Tensor var(int dim) const;
TENON_API Tensor std(int dim) const;
/// Sums over the dims that broadcasting to this tensor's sizes had enlarged. Throws Error where `sizes` do not
/// broadcast to them.
TENON_API Tensor sum_to_size(IntArrayRef sizes) const;

// How often something occurs.
TENON_API Tensor count_nonzero() const;
TENON_API Tensor count_nonzero(std::int64_t dim) const;
TENON_API Tensor count_nonzero(IntArrayRef dim) const;
TENON_API Tensor bincount(const std::optional<Tensor>& weights = std::nullopt, std::int64_t minlength = 0) const;
TENON_API Tensor histc(std::int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0) const;

// Sums, means and norms of another kind.
TENON_API std::tuple<Tensor, Tensor> aminmax(std::optional<std::int64_t> dim = std::nullopt,
                                             bool keepdim = false) const;
TENON_API Tensor nansum(OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                        std::optional<Dtype> dtype = std::nullopt) const;
TENON_API Tensor nanmean(OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                         std::optional<Dtype> dtype = std::nullopt) const;
TENON_API Tensor trace() const;
TENON_API Tensor dist(const Tensor& other, const Scalar& p = 2) const;
TENON_API Tensor renorm(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const;
TENON_API Tensor& renorm_(const Scalar& p, std::int64_t dim, const Scalar& maxnorm) const;

// Along one dim, from its start.
/// cumsum() in place, in its own dtype.
TENON_API Tensor& cumsum_(std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) const;
/// cumprod() in place, in its own dtype.
TENON_API Tensor& cumprod_(std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) const;
TENON_API std::tuple<Tensor, Tensor> cummax(std::int64_t dim) const;
TENON_API std::tuple<Tensor, Tensor> cummin(std::int64_t dim) const;
TENON_API Tensor diff(std::int64_t n = 1, std::int64_t dim = -1, const std::optional<Tensor>& prepend = std::nullopt,
                      const std::optional<Tensor>& append = std::nullopt) const;

// In order.
TENON_API std::tuple<Tensor, Tensor> sort(std::int64_t dim = -1, bool descending = false) const;
TENON_API std::tuple<Tensor, Tensor> sort(std::optional<bool> stable, std::int64_t dim = -1,
                                          bool descending = false) const;
TENON_API Tensor argsort(std::int64_t dim = -1, bool descending = false) const;
/// A template so that argsort(1) means a dim.
template <class Bool>
requires(std::is_same_v<Bool, bool>) Tensor argsort(Bool stable, std::int64_t dim = -1, bool descending = false)
const { return std::get<1>(sort(std::optional<bool>(stable), dim, descending)); }
TENON_API std::tuple<Tensor, Tensor> topk(std::int64_t k, std::int64_t dim = -1, bool largest = true,
                                          bool sorted = true) const;

// What sorting tells.
TENON_API Tensor median() const;
TENON_API std::tuple<Tensor, Tensor> median(std::int64_t dim, bool keepdim = false) const;
TENON_API Tensor msort() const;
TENON_API std::tuple<Tensor, Tensor> kthvalue(std::int64_t k, std::int64_t dim = -1, bool keepdim = false) const;
TENON_API std::tuple<Tensor, Tensor> mode(std::int64_t dim = -1, bool keepdim = false) const;
TENON_API Tensor nanmedian() const;
TENON_API std::tuple<Tensor, Tensor> nanmedian(std::int64_t dim, bool keepdim = false) const;
TENON_API Tensor quantile(double q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                          std::string_view interpolation = "linear") const;
TENON_API Tensor quantile(const Tensor& q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                          std::string_view interpolation = "linear") const;
TENON_API Tensor nanquantile(double q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                             std::string_view interpolation = "linear") const;
TENON_API Tensor nanquantile(const Tensor& q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                             std::string_view interpolation = "linear") const;
