// Methods of Tensor that move, pick or place elements; included by tensor.h inside the class. Each group names the file that
// defines it; what a method does stands there.

// ops/shape/rearrange.cpp: views and arrangements.
TENON_API std::vector<Tensor> tensor_split(std::int64_t sections, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> tensor_split(IntArrayRef indices, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> tensor_split(const Tensor& indices_or_sections, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> hsplit(std::int64_t sections) const;
TENON_API std::vector<Tensor> hsplit(IntArrayRef indices) const;
TENON_API std::vector<Tensor> vsplit(std::int64_t sections) const;
TENON_API std::vector<Tensor> vsplit(IntArrayRef indices) const;
TENON_API std::vector<Tensor> dsplit(std::int64_t sections) const;
TENON_API std::vector<Tensor> dsplit(IntArrayRef indices) const;
Tensor swapaxes(std::int64_t axis0, std::int64_t axis1) const { return transpose(axis0, axis1); }
Tensor& swapaxes_(std::int64_t axis0, std::int64_t axis1) const { return transpose_(axis0, axis1); }
Tensor swapdims(std::int64_t dim0, std::int64_t dim1) const { return transpose(dim0, dim1); }
Tensor& swapdims_(std::int64_t dim0, std::int64_t dim1) const { return transpose_(dim0, dim1); }
TENON_API Tensor movedim(IntArrayRef source, IntArrayRef destination) const;
Tensor moveaxis(std::int64_t source, std::int64_t destination) const { return movedim(source, destination); }
Tensor moveaxis(IntArrayRef source, IntArrayRef destination) const { return movedim(source, destination); }
Tensor broadcast_to(IntArrayRef sizes) const { return expand(sizes); }
TENON_API Tensor tile(IntArrayRef repeats) const;
TENON_API Tensor rot90(std::int64_t k = 1, IntArrayRef dims = {0, 1}) const;
TENON_API Tensor fliplr() const;
TENON_API Tensor flipud() const;
TENON_API Tensor diag_embed(std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1) const;
TENON_API Tensor diagflat(std::int64_t offset = 0) const;
TENON_API const Tensor& as_strided_(IntArrayRef sizes, IntArrayRef strides,
                                    std::optional<std::int64_t> offset = std::nullopt) const;
TENON_API Tensor repeat_interleave(const Tensor& repeats, std::optional<std::int64_t> dim = std::nullopt,
                                   std::optional<std::int64_t> output_size = std::nullopt) const;
TENON_API Tensor& tril_(std::int64_t diagonal = 0) const;
TENON_API Tensor& triu_(std::int64_t diagonal = 0) const;
/// Sets the elements whose indices are all equal to a value. With `wrap`, in a matrix of m columns and more than m + 1
/// rows, the diagonal begins anew in rows m + 1, 2 (m + 1) … Throws Error below 2 dims, and above for dims of different
/// sizes.
TENON_API Tensor& fill_diagonal_(const Scalar& value, bool wrap = false) const;

// ops/indexing/index_put.cpp: writes to indexed places.
TENON_API Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
TENON_API Tensor& masked_scatter_(const Tensor& mask, const Tensor& source) const;
TENON_API Tensor put(const Tensor& index, const Tensor& source, bool accumulate = false) const;
TENON_API Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false) const;
TENON_API Tensor take_along_dim(const Tensor& indices, std::optional<std::int64_t> dim = std::nullopt) const;
TENON_API Tensor index_copy(std::int64_t dim, const Tensor& index, const Tensor& source) const;
TENON_API Tensor index_fill(std::int64_t dim, const Tensor& index, const Scalar& value) const;
TENON_API Tensor index_fill(std::int64_t dim, const Tensor& index, const Tensor& value) const;
TENON_API Tensor& index_fill_(std::int64_t dim, const Tensor& index, const Tensor& value) const;
TENON_API Tensor scatter(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce) const;
TENON_API Tensor scatter(std::int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const;
TENON_API Tensor& scatter_(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce) const;
TENON_API Tensor& scatter_(std::int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const;
TENON_API Tensor scatter_reduce(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                                bool include_self = true) const;
TENON_API Tensor& scatter_reduce_(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                                  bool include_self = true) const;
TENON_API Tensor argwhere() const;

// ops/reduce/order_statistics.cpp: what sorting tells.
TENON_API std::tuple<Tensor, Tensor> sort(std::optional<bool> stable, std::int64_t dim = -1, bool descending = false) const;
/// A template so that argsort(1) means a dim.
template <class Bool>
  requires(std::is_same_v<Bool, bool>)
Tensor argsort(Bool stable, std::int64_t dim = -1, bool descending = false) const {
  return std::get<1>(sort(std::optional<bool>(stable), dim, descending));
}
TENON_API Tensor msort() const;
TENON_API std::tuple<Tensor, Tensor> median(std::int64_t dim, bool keepdim = false) const;
TENON_API Tensor nanmedian() const;
TENON_API std::tuple<Tensor, Tensor> nanmedian(std::int64_t dim, bool keepdim = false) const;
TENON_API std::tuple<Tensor, Tensor> kthvalue(std::int64_t k, std::int64_t dim = -1, bool keepdim = false) const;
TENON_API std::tuple<Tensor, Tensor> mode(std::int64_t dim = -1, bool keepdim = false) const;
TENON_API Tensor quantile(double q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                          std::string_view interpolation = "linear") const;
TENON_API Tensor quantile(const Tensor& q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                          std::string_view interpolation = "linear") const;
TENON_API Tensor nanquantile(double q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                             std::string_view interpolation = "linear") const;
TENON_API Tensor nanquantile(const Tensor& q, std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false,
                             std::string_view interpolation = "linear") const;

// ops/reduce/scan.cpp: along one dim, from its start.
/// cumsum() in place, in its own dtype.
TENON_API Tensor& cumsum_(std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) const;
/// cumprod() in place, in its own dtype.
TENON_API Tensor& cumprod_(std::int64_t dim, std::optional<Dtype> dtype = std::nullopt) const;
TENON_API std::tuple<Tensor, Tensor> cummax(std::int64_t dim) const;
TENON_API std::tuple<Tensor, Tensor> cummin(std::int64_t dim) const;
TENON_API Tensor diff(std::int64_t n = 1, std::int64_t dim = -1, const std::optional<Tensor>& prepend = std::nullopt,
                      const std::optional<Tensor>& append = std::nullopt) const;

// ops/reduce/counting.cpp: how often something occurs.
TENON_API Tensor count_nonzero(std::int64_t dim) const;
TENON_API Tensor count_nonzero(IntArrayRef dim) const;
TENON_API Tensor bincount(const std::optional<Tensor>& weights = std::nullopt, std::int64_t minlength = 0) const;
TENON_API Tensor histc(std::int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0) const;
