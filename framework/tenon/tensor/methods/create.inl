// Methods of Tensor that make tensors, or fill them at random: those that ops/create defines. Included by tensor.h
// inside the class; what a method without a comment does is said at the function of its name.

// Tensors of the same dtype and device.
/// empty() with this tensor's dtype and device, where the options say nothing else; so are the other new_ functions.
TENON_API Tensor new_empty(IntArrayRef sizes, const TensorOptions& options = {}) const;
/// zeros() with this tensor's dtype and device.
TENON_API Tensor new_zeros(IntArrayRef sizes, const TensorOptions& options = {}) const;
/// ones() with this tensor's dtype and device.
TENON_API Tensor new_ones(IntArrayRef sizes, const TensorOptions& options = {}) const;
/// full() with this tensor's dtype and device.
TENON_API Tensor new_full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {}) const;
/// empty_strided() with this tensor's dtype and device.
TENON_API Tensor new_empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) const;

// Page-locked host memory.
/// A copy in page-locked host memory, which `device` copies from without the host waiting for it (`to(device,
/// true)`); itself if it lies there. Without a device: pinned_memory_device(). Throws Error for a tensor that is not
/// the host's, and where there is no such memory.
TENON_API Tensor pin_memory(std::optional<Device> device = std::nullopt) const;
/// Whether it lies in page-locked host memory (of that device).
TENON_API bool is_pinned(std::optional<Device> device = std::nullopt) const;

// Random numbers in place, and drawn from probabilities.
/// Fills with draws from [from, to). Throws Error for `from` above `to`, or a dtype that is not floating.
TENON_API Tensor& uniform_(double from = 0, double to = 1, std::optional<Generator> generator = std::nullopt) const;
TENON_API Tensor& normal_(double mean = 0, double deviation = 1,
                          std::optional<Generator> generator = std::nullopt) const;
/// Fills with integers from `from` (0 in the other two) up to `to`, which is left out; an empty one is int64's
/// largest, whatever the dtype. Without bounds, from 0 to the largest that the dtype holds exactly. Throws Error
/// unless from < to, and for a given `to` with bounds that an integer dtype lacks.
TENON_API Tensor& random_(std::int64_t from, std::optional<std::int64_t> to,
                          std::optional<Generator> generator = std::nullopt) const;
TENON_API Tensor& random_(std::int64_t to, std::optional<Generator> generator = std::nullopt) const;
TENON_API Tensor& random_(std::optional<Generator> generator = std::nullopt) const;
TENON_API Tensor& bernoulli_(double p = 0.5, std::optional<Generator> generator = std::nullopt) const;
TENON_API Tensor& bernoulli_(const Tensor& p, std::optional<Generator> generator = std::nullopt) const;
TENON_API Tensor bernoulli(std::optional<Generator> generator = std::nullopt) const;
/// Fills with draws from an exponential distribution. Throws Error unless the rate is above 0 and the dtype floating.
TENON_API Tensor& exponential_(double rate = 1, std::optional<Generator> generator = std::nullopt) const;
TENON_API Tensor multinomial(std::int64_t samples, bool replacement = false,
                             std::optional<Generator> generator = std::nullopt) const;
