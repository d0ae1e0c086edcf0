// Methods of Tensor that rearrange, repeat or copy elements, or view them in another way: those that ops/shape
// defines. Included by tensor.h inside the class; what a method without a comment does is said at the function of
// its name.

// Moves and copies: other dtypes, devices and formats; values written and read.
/// Another dtype, device or memory format: the tensor itself where nothing changes, unless a copy is asked for.
/// Throws Error for options with requires_grad.
TENON_API Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false,
                    std::optional<MemoryFormat> format = std::nullopt) const;
TENON_API Tensor to(Dtype dtype, bool non_blocking = false, bool copy = false,
                    std::optional<MemoryFormat> format = std::nullopt) const;
Tensor to(TypeMeta dtype, bool non_blocking = false, bool copy = false) const {
  return to(dtype.toScalarType(), non_blocking, copy);
}
TENON_API Tensor to(Device device, Dtype dtype, bool non_blocking = false, bool copy = false,
                    std::optional<MemoryFormat> format = std::nullopt) const;
TENON_API Tensor to(const Tensor& like, bool non_blocking = false, bool copy = false,
                    std::optional<MemoryFormat> format = std::nullopt) const;
Tensor toType(Dtype dtype) const { return to(dtype); }
/// to() with another tensor's dtype and device.
Tensor type_as(const Tensor& other) const { return to(other.options()); }
/// The tensor on the host: itself where it is there.
Tensor cpu() const { return to(TensorOptions(Device(kCPU))); }
/// The tensor on the CUDA device of that index, -1 for the current one: itself where it is there.
Tensor cuda(DeviceIndex index = -1) const { return to(TensorOptions(Device(kCUDA, index))); }
/// The tensor itself: there are no sparse ones.
Tensor to_dense() const { return *this; }
TENON_API Tensor clone(std::optional<MemoryFormat> format = std::nullopt) const;
/// The tensor itself where it is contiguous in that memory format, else a copy that is. Throws Error for Preserve.
TENON_API Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
/// Writes the source's elements, broadcast, converted and moved from another device; asynchronously where asked and
/// possible. Throws Error for sizes that do not broadcast to these.
TENON_API Tensor& copy_(const Tensor& source, bool non_blocking = false) const;
TENON_API Tensor& fill_(const Scalar& value) const;
TENON_API Tensor& fill_(const Tensor& value) const;
TENON_API Tensor& zero_() const;
TENON_API bool is_nonzero() const;

// Views of all elements under other sizes, strides and orders of dims.
/// A view under other sizes, of which one may be -1. Throws Error for another number of elements, or where strides do
/// not allow it: reshape() copies then.
TENON_API Tensor view(IntArrayRef sizes) const;
/// The same bytes read as another dtype; elements of another size change the last size. Throws Error where they do
/// not fit. A template so that view({}) means sizes.
template <class T>
requires(std::is_same_v<T, Dtype> || std::is_same_v<T, TypeMeta>) Tensor view(T dtype)
const { return view_dtype(dtype); }
/// view() under the sizes of another tensor.
Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
/// A view of everything.
TENON_API Tensor alias() const;
/// A view of everything without history: writing through it marks the base's version and nothing else.
TENON_API Tensor detach() const;
/// Lets go of its history, in place: it is a leaf then that requires no gradient. Throws Error for a view.
TENON_API Tensor& detach_() const;
TENON_API Tensor reshape(IntArrayRef sizes) const;
Tensor reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
TENON_API Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1) const;
/// One dim as several of the given sizes, of which one may be -1; a view. Throws Error where they do not multiply up
/// to its size.
TENON_API Tensor unflatten(std::int64_t dim, IntArrayRef sizes) const;
TENON_API Tensor ravel() const;
/// A view under larger sizes: dims of size 1 are repeated without copies, -1 keeps a size, new dims come in front.
/// Throws Error for fewer numbers than dims, -1 as a new dim, or where a size that is not 1 would change.
TENON_API Tensor expand(IntArrayRef sizes, bool implicit = false) const;
/// expand() to the sizes of another tensor.
Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
TENON_API Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
TENON_API Tensor& transpose_(std::int64_t dim0, std::int64_t dim1) const;
TENON_API Tensor t() const;
TENON_API Tensor& t_() const;
Tensor mT() const { return transpose(-2, -1); }
TENON_API Tensor permute(IntArrayRef dims) const;
TENON_API Tensor movedim(std::int64_t source, std::int64_t destination) const;
TENON_API Tensor movedim(IntArrayRef source, IntArrayRef destination) const;
Tensor moveaxis(std::int64_t source, std::int64_t destination) const { return movedim(source, destination); }
Tensor moveaxis(IntArrayRef source, IntArrayRef destination) const { return movedim(source, destination); }
TENON_API Tensor squeeze() const;
TENON_API Tensor squeeze(std::int64_t dim) const;
TENON_API Tensor& squeeze_() const;
TENON_API Tensor& squeeze_(std::int64_t dim) const;
TENON_API Tensor unsqueeze(std::int64_t dim) const;
TENON_API Tensor& unsqueeze_(std::int64_t dim) const;
Tensor swapaxes(std::int64_t axis0, std::int64_t axis1) const { return transpose(axis0, axis1); }
Tensor& swapaxes_(std::int64_t axis0, std::int64_t axis1) const { return transpose_(axis0, axis1); }
Tensor swapdims(std::int64_t dim0, std::int64_t dim1) const { return transpose(dim0, dim1); }
Tensor& swapdims_(std::int64_t dim0, std::int64_t dim1) const { return transpose_(dim0, dim1); }
Tensor broadcast_to(IntArrayRef sizes) const { return expand(sizes); }

// Views of a part.
TENON_API Tensor as_strided(IntArrayRef sizes, IntArrayRef strides,
                            std::optional<std::int64_t> offset = std::nullopt) const;
TENON_API const Tensor& as_strided_(IntArrayRef sizes, IntArrayRef strides,
                                    std::optional<std::int64_t> offset = std::nullopt) const;
TENON_API Tensor select(std::int64_t dim, std::int64_t index) const;
TENON_API Tensor slice(std::int64_t dim = 0, std::optional<std::int64_t> start = std::nullopt,
                       std::optional<std::int64_t> end = std::nullopt, std::int64_t step = 1) const;
TENON_API Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
TENON_API Tensor diagonal(std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1) const;
/// A view of all windows of `size` along `dim`, `step` apart, as a new last dim. Throws Error where not even one
/// fits, or unless the step is above 0.
TENON_API Tensor unfold(std::int64_t dim, std::int64_t size, std::int64_t step) const;
TENON_API std::vector<Tensor> unbind(std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> split(std::int64_t size, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> split(IntArrayRef sizes, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> split_with_sizes(IntArrayRef sizes, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> chunk(std::int64_t chunks, std::int64_t dim = 0) const;

// Copies in which a view has other values.
TENON_API Tensor slice_scatter(const Tensor& source, std::int64_t dim = 0,
                               std::optional<std::int64_t> start = std::nullopt,
                               std::optional<std::int64_t> end = std::nullopt, std::int64_t step = 1) const;
TENON_API Tensor select_scatter(const Tensor& source, std::int64_t dim, std::int64_t index) const;
TENON_API Tensor diagonal_scatter(const Tensor& source, std::int64_t offset = 0, std::int64_t dim1 = 0,
                                  std::int64_t dim2 = 1) const;

// Several views that make up the whole.
TENON_API std::vector<Tensor> tensor_split(std::int64_t sections, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> tensor_split(IntArrayRef indices, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> tensor_split(const Tensor& indices_or_sections, std::int64_t dim = 0) const;
TENON_API std::vector<Tensor> hsplit(std::int64_t sections) const;
TENON_API std::vector<Tensor> hsplit(IntArrayRef indices) const;
TENON_API std::vector<Tensor> vsplit(std::int64_t sections) const;
TENON_API std::vector<Tensor> vsplit(IntArrayRef indices) const;
TENON_API std::vector<Tensor> dsplit(std::int64_t sections) const;
TENON_API std::vector<Tensor> dsplit(IntArrayRef indices) const;

// Repeated, flipped and rolled.
/// The tensor side by side, so many times along each dim; a copy. More numbers than dims put new dims in front.
/// Throws Error for fewer.
TENON_API Tensor repeat(IntArrayRef repeats) const;
TENON_API Tensor tile(IntArrayRef repeats) const;
TENON_API Tensor repeat_interleave(std::int64_t repeats, std::optional<std::int64_t> dim = std::nullopt) const;
TENON_API Tensor repeat_interleave(const Tensor& repeats, std::optional<std::int64_t> dim = std::nullopt,
                                   std::optional<std::int64_t> output_size = std::nullopt) const;
TENON_API Tensor flip(IntArrayRef dims) const;
TENON_API Tensor roll(IntArrayRef shifts, IntArrayRef dims = {}) const;

// Turned, mirrored, laid on diagonals.
TENON_API Tensor rot90(std::int64_t k = 1, IntArrayRef dims = {0, 1}) const;
TENON_API Tensor fliplr() const;
TENON_API Tensor flipud() const;
TENON_API Tensor diag_embed(std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1) const;
TENON_API Tensor diagflat(std::int64_t offset = 0) const;
/// Sets the elements whose indices are all equal to a value. With `wrap`, in a matrix of m columns and more than m + 1
/// rows, the diagonal begins anew in rows m + 1, 2 (m + 1) … Throws Error below 2 dims, and above for dims of different
/// sizes.
TENON_API Tensor& fill_diagonal_(const Scalar& value, bool wrap = false) const;

// Triangles of matrices.
TENON_API Tensor tril(std::int64_t diagonal = 0) const;
TENON_API Tensor triu(std::int64_t diagonal = 0) const;
TENON_API Tensor& tril_(std::int64_t diagonal = 0) const;
TENON_API Tensor& triu_(std::int64_t diagonal = 0) const;
TENON_API Tensor diag(std::int64_t diagonal = 0) const;
