// Methods of Tensor that pick and place elements by index: those that ops/indexing defines. Included by tensor.h
// inside the class; what a method without a comment does is said at the function of its name.

// x[…], and what stands in its brackets.
TENON_API Tensor operator[](std::int64_t index) const;
TENON_API Tensor operator[](const Tensor& index) const;
TENON_API Tensor operator[](const Scalar& index) const;
/// Any other integer: a loop's size_t, an int.
template <class Integer>
requires(std::is_integral_v<Integer>) Tensor operator[](Integer index) const {
  return (*this)[static_cast<std::int64_t>(index)];
}
TENON_API Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
TENON_API Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
TENON_API Tensor index(const std::vector<std::optional<Tensor>>& indices) const;
TENON_API Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& values);
TENON_API Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Scalar& value);
TENON_API Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& values);
TENON_API Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value);
TENON_API Tensor& index_put_(const std::vector<std::optional<Tensor>>& indices, const Tensor& values,
                             bool accumulate = false) const;

// Elements at positions, and where a mask is true.
TENON_API Tensor index_put(const std::vector<std::optional<Tensor>>& indices, const Tensor& values,
                           bool accumulate = false) const;
TENON_API Tensor masked_select(const Tensor& mask) const;
TENON_API Tensor nonzero() const;
TENON_API Tensor take(const Tensor& index) const;

// Along one dim.
TENON_API Tensor index_select(std::int64_t dim, const Tensor& index) const;
TENON_API Tensor index_add(std::int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1) const;
TENON_API Tensor& index_add_(std::int64_t dim, const Tensor& index, const Tensor& source,
                             const Scalar& alpha = 1) const;
TENON_API Tensor& index_copy_(std::int64_t dim, const Tensor& index, const Tensor& source) const;
TENON_API Tensor& index_fill_(std::int64_t dim, const Tensor& index, const Scalar& value) const;
TENON_API Tensor& index_fill_(std::int64_t dim, const Tensor& index, const Tensor& value) const;

// One index for each element.
TENON_API Tensor gather(std::int64_t dim, const Tensor& index, bool sparse_grad = false) const;
TENON_API Tensor scatter(std::int64_t dim, const Tensor& index, const Tensor& source) const;
TENON_API Tensor scatter(std::int64_t dim, const Tensor& index, const Scalar& value) const;
TENON_API Tensor scatter(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce) const;
TENON_API Tensor scatter(std::int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const;
TENON_API Tensor& scatter_(std::int64_t dim, const Tensor& index, const Tensor& source) const;
TENON_API Tensor& scatter_(std::int64_t dim, const Tensor& index, const Scalar& value) const;
TENON_API Tensor& scatter_(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce) const;
TENON_API Tensor& scatter_(std::int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const;
TENON_API Tensor scatter_add(std::int64_t dim, const Tensor& index, const Tensor& source) const;
TENON_API Tensor& scatter_add_(std::int64_t dim, const Tensor& index, const Tensor& source) const;

// Reduced into places.
TENON_API Tensor scatter_reduce(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                                bool include_self = true) const;
TENON_API Tensor& scatter_reduce_(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                                  bool include_self = true) const;

// Written to indexed places.
TENON_API Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
TENON_API Tensor& masked_scatter_(const Tensor& mask, const Tensor& source) const;
TENON_API Tensor put(const Tensor& index, const Tensor& source, bool accumulate = false) const;
TENON_API Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false) const;
TENON_API Tensor take_along_dim(const Tensor& indices, std::optional<std::int64_t> dim = std::nullopt) const;
TENON_API Tensor index_copy(std::int64_t dim, const Tensor& index, const Tensor& source) const;
TENON_API Tensor index_fill(std::int64_t dim, const Tensor& index, const Scalar& value) const;
TENON_API Tensor index_fill(std::int64_t dim, const Tensor& index, const Tensor& value) const;
TENON_API Tensor argwhere() const;
