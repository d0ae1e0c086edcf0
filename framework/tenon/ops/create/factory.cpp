// Factories.
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/attributes/random.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/create/pinned.h>
#include <tenon/ops/create/with_grad.h>
#include <tenon/ops/support/fill_value.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>

#include <cmath>
#include <sstream>

namespace tenon {

using namespace ops;

namespace {

Tensor place(const TensorOptions& options, DeviceState& state, const Dims& sizes, const Dims& strides) {
  if (!options.pinned_memory()) return allocate_strided(state, sizes, strides, options.dtype());
  if (!state.device().is_cpu())
    throw Error("pinned_memory on " + state.device().str() + ": only dense CPU tensors can be pinned");
  return allocate_pinned(std::nullopt, sizes, strides, options.dtype());
}

Tensor make(IntArrayRef sizes, const TensorOptions& options, std::optional<MemoryFormat> format = std::nullopt) {
  check_sizes(sizes);
  if (options.layout() != kStrided) throw Error("only the strided layout exists");
  if (!format) format = options.memory_format_opt();
  DeviceState& state = tenon::state_of(options);
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d) {
    const Dims dims(sizes);
    check_format(*format, dims.rank());
    dense_bytes(dims, options.dtype());  // before strides are made of these sizes
    return place(options, state, dims, channels_last_strides(dims));
  }
  if (options.pinned_memory()) [[unlikely]] {
    dense_bytes(sizes, options.dtype());
    return place(options, state, sizes, contiguous_strides(sizes));
  }
  return allocate_tensor(state, sizes, options.dtype());
}

void fill(const Tensor& tensor, const Scalar& value) {
  const FillAttributes attributes{fill_value(value, tensor.scalar_type(), tensor.numel())};
  run(TENON_OP("fill"), ops::state_of(tensor), {view_of(tensor)}, {}, &attributes);
}

TensorOptions like_options(const Tensor& like, const TensorOptions& options) {
  return like.options().merge_in(options);
}

Tensor make_like(const Tensor& like, const TensorOptions& options, std::optional<MemoryFormat> format) {
  const TensorOptions merged = like_options(like, options);
  if (!format) format = options.memory_format_opt();
  if (!format || *format == MemoryFormat::Preserve) {
    const TensorImpl& impl = like.impl();
    if ((impl.numel() == 0 || !impl.is_contiguous()) && impl.is_non_overlapping_and_dense()) {
      return allocate_strided(tenon::state_of(merged), impl.sizes(), impl.strides(), merged.dtype());
    }
    return make(like.sizes(), merged.memory_format(std::nullopt));
  }
  return make(like.sizes(), merged, format);
}

// A function of its own: empty() does so little that what a scope keeps for its end would show.
[[gnu::cold, gnu::noinline]] Tensor told_empty(IntArrayRef sizes, const TensorOptions& options,
                                               std::optional<MemoryFormat> format) {
  TENON_SCOPE(empty, sizes, options, format)
  return with_grad(make(sizes, options, format), options);
}

}  // namespace

Tensor empty(IntArrayRef sizes, const TensorOptions& options, std::optional<MemoryFormat> format) {
  if (scopes::is_listening()) [[unlikely]]
    return told_empty(sizes, options, format);
  return with_grad(make(sizes, options, format), options);
}
Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  TENON_SCOPE(empty_strided, sizes, strides, options)
  check_sizes(sizes);
  return with_grad(allocate_strided(tenon::state_of(options), sizes, strides, options.dtype()), options);
}
Tensor zeros(IntArrayRef sizes, const TensorOptions& options) {
  TENON_SCOPE(zeros, sizes, options)
  Tensor result = make(sizes, options);
  fill(result, 0);
  return with_grad(std::move(result), options);
}
Tensor ones(IntArrayRef sizes, const TensorOptions& options) {
  TENON_SCOPE(ones, sizes, options)
  Tensor result = make(sizes, options);
  fill(result, 1);
  return with_grad(std::move(result), options);
}
Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options) {
  TENON_SCOPE(full, sizes, value, options)
  const Dtype inferred = value.isFloatingPoint() ? default_dtype() : value.type();
  Tensor result = make(sizes, options.has_dtype() ? options : options.dtype(inferred));
  fill(result, value);
  return with_grad(std::move(result), options);
}
Tensor empty_like(const Tensor& like, const TensorOptions& options, std::optional<MemoryFormat> format) {
  TENON_SCOPE(empty_like, like, options, format)
  return with_grad(make_like(like, options, format), options);
}
Tensor zeros_like(const Tensor& like, const TensorOptions& options, std::optional<MemoryFormat> format) {
  TENON_SCOPE(zeros_like, like, options, format)
  Tensor result = make_like(like, options, format);
  fill(result, 0);
  return with_grad(std::move(result), options);
}
Tensor ones_like(const Tensor& like, const TensorOptions& options, std::optional<MemoryFormat> format) {
  TENON_SCOPE(ones_like, like, options, format)
  Tensor result = make_like(like, options, format);
  fill(result, 1);
  return with_grad(std::move(result), options);
}
Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options) {
  TENON_SCOPE(full_like, like, value, options)
  Tensor result = make_like(like, options, std::nullopt);
  fill(result, value);
  return with_grad(std::move(result), options);
}
Tensor scalar_tensor(const Scalar& value, const TensorOptions& options) {
  TENON_SCOPE(scalar_tensor, value, options)
  Tensor result = make({}, options);
  fill(result, value);
  return with_grad(std::move(result), options);
}

Tensor Tensor::new_empty(IntArrayRef sizes, const TensorOptions& options) const {
  TENON_SCOPE(new_empty, *this, sizes, options)
  return tenon::empty(sizes, like_options(*this, options));
}
Tensor Tensor::new_zeros(IntArrayRef sizes, const TensorOptions& options) const {
  TENON_SCOPE(new_zeros, *this, sizes, options)
  return tenon::zeros(sizes, like_options(*this, options));
}
Tensor Tensor::new_ones(IntArrayRef sizes, const TensorOptions& options) const {
  TENON_SCOPE(new_ones, *this, sizes, options)
  return tenon::ones(sizes, like_options(*this, options));
}
Tensor Tensor::new_full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options) const {
  TENON_SCOPE(new_full, *this, sizes, value, options)
  return tenon::full(sizes, value, like_options(*this, options));
}
Tensor Tensor::new_empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) const {
  TENON_SCOPE(new_empty_strided, *this, sizes, strides, options)
  return tenon::empty_strided(sizes, strides, like_options(*this, options));
}

namespace {

[[noreturn]] void count_overflow(double count) {
  throw Error("invalid size, possible overflow? (" + std::to_string(count) + " elements)");
}

/// A number of elements that was computed in floating point.
std::int64_t as_count(double count) {
  if (!(count >= 0 && count < 9223372036854775808.0)) count_overflow(count);  // 2^63
  return static_cast<std::int64_t>(count);
}

}  // namespace

namespace {

[[noreturn]] void unsupported_range(const Scalar& start, const Scalar& end) {
  std::ostringstream text;
  text << "unsupported range: " << start << " -> " << end;
  throw Error(text.str());
}

}  // namespace

Tensor arange(const Scalar& end, const TensorOptions& options) { return arange(0, end, 1, options); }
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return arange(start, end, 1, options);
}
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options) {
  TENON_SCOPE(arange, start, end, step, options)
  const bool whole = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  const double distance = end.toDouble() - start.toDouble();
  if (step.toDouble() == 0) throw Error("step must be nonzero");
  if (!std::isfinite(step.toDouble())) throw Error("step must be finite but got " + std::to_string(step.toDouble()));
  if (!std::isfinite(distance)) unsupported_range(start, end);
  if (distance / step.toDouble() < 0) throw Error("upper bound and lower bound inconsistent with step sign");
  std::int64_t count;
  if (whole) {
    const std::int64_t s = step.toLong();
    std::int64_t length;
    bool overflow = __builtin_sub_overflow(end.toLong(), start.toLong(), &length);
    overflow |= __builtin_add_overflow(length, s - (s > 0 ? 1 : -1), &length);
    if (overflow) count_overflow(distance / step.toDouble());
    count = length / s;
  } else {
    count = as_count(std::ceil(distance / step.toDouble()));
  }
  Tensor result = make({count}, options.has_dtype() ? options : options.dtype(whole ? Dtype::kInt64 : default_dtype()));
  const SequenceAttributes attributes{start.value(), step.value(), end.value()};
  run(TENON_OP("arange"), ops::state_of(result), {view_of(result)}, {}, &attributes);
  return with_grad(std::move(result), options);
}
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options) {
  TENON_SCOPE(range, start, end, step, options)
  if (step.toDouble() == 0) throw Error("step must be nonzero");
  if (!std::isfinite(step.toDouble())) {
    throw Error("step must be finite but got " + std::to_string(step.toDouble()));
  }
  const double distance = end.toDouble() - start.toDouble();
  if (!std::isfinite(distance)) unsupported_range(start, end);
  if (distance / step.toDouble() < 0) throw Error("upper bound and lower bound inconsistent with step sign");
  const std::int64_t count = as_count(std::floor(distance / step.toDouble()) + 1);
  Tensor result = make({count}, options);
  const SequenceAttributes attributes{start.value(), step.value(), end.value()};
  run(TENON_OP("arange"), ops::state_of(result), {view_of(result)}, {}, &attributes);
  return with_grad(std::move(result), options);
}
Tensor linspace(const Scalar& start, const Scalar& end, std::int64_t steps, const TensorOptions& options) {
  TENON_SCOPE(linspace, start, end, steps, options)
  if (steps < 0) throw Error("number of steps must be non-negative");
  Tensor result = make({steps}, options);
  // Of integers the ends are cut off first, and bytes count from 256 down, as PyTorch does.
  const bool is_whole = !is_floating_point(result.scalar_type());
  if (steps == 0) return with_grad(std::move(result), options);
  const auto bound = [&](const Scalar& given) {
    if (result.scalar_type() == kBool) return Scalar(given.toBool());
    return is_whole ? Scalar(element_of(given, result.scalar_type()).integer) : given;
  };
  const Scalar first = bound(start);
  if (steps == 1) {
    fill(result, first);
  } else {
    const Scalar last = bound(end);
    const double step = (last.toDouble() - first.toDouble()) / static_cast<double>(steps - 1);
    const SequenceAttributes attributes{first.value(), Scalar(step).value(), last.value()};
    run(TENON_OP("linspace"), ops::state_of(result), {view_of(result)}, {}, &attributes);
  }
  return with_grad(std::move(result), options);
}
Tensor eye(std::int64_t n, const TensorOptions& options) { return eye(n, n, options); }
Tensor eye(std::int64_t n, std::int64_t m, const TensorOptions& options) {
  TENON_SCOPE(eye, n, m, options)
  if (n < 0) throw Error("n must be greater or equal to 0, got " + std::to_string(n));
  if (m < 0) throw Error("m must be greater or equal to 0, got " + std::to_string(m));
  Tensor result = make({n, m}, options);
  run(TENON_OP("eye"), ops::state_of(result), {view_of(result)}, {});
  return with_grad(std::move(result), options);
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                 const TensorOptions& options) {
  const Dims dims(sizes);
  const Dims steps(strides);
  check_sizes(sizes);
  const Dtype dtype = options.dtype();
  const std::size_t bytes = strided_bytes(dims, steps, dtype);
  void* const context = deleter ? data : nullptr;  // what the deleter gets
  auto impl = make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(tenon::state_of(options), data, bytes, std::move(deleter), context), dtype);
  impl->set_strided(dims, steps, 0);
  return with_grad(Tensor(std::move(impl)), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return from_blob(data, sizes, strides, nullptr, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes), std::move(deleter), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes), nullptr, options);
}

}  // namespace tenon
