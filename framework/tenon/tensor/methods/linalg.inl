// Methods of Tensor that are products of vectors and matrices: those that ops/linalg defines. Included by tensor.h
// inside the class; what a method without a comment does is said at the function of its name.

// Products.
TENON_API Tensor matmul(const Tensor& other) const;
TENON_API Tensor mm(const Tensor& other) const;
TENON_API Tensor bmm(const Tensor& other) const;
TENON_API Tensor mv(const Tensor& other) const;
TENON_API Tensor dot(const Tensor& other) const;
TENON_API Tensor addmm(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& addmm_(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor baddbmm(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor outer(const Tensor& other) const;
Tensor ger(const Tensor& other) const { return outer(other); }

// Sums of products.
TENON_API Tensor addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& addmv_(const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor addr(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& addr_(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor addbmm(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& addbmm_(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor& baddbmm_(const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1) const;
TENON_API Tensor inner(const Tensor& other) const;
TENON_API Tensor vdot(const Tensor& other) const;
TENON_API Tensor kron(const Tensor& other) const;
TENON_API Tensor cross(const Tensor& other, std::optional<std::int64_t> dim = std::nullopt) const;
TENON_API Tensor matrix_power(std::int64_t n) const;

// Covariances and correlations.
TENON_API Tensor cov(std::int64_t correction = 1, const std::optional<Tensor>& fweights = std::nullopt,
                     const std::optional<Tensor>& aweights = std::nullopt) const;
TENON_API Tensor corrcoef() const;
