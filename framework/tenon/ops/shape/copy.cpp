// Copies, conversions and moves between devices.
#include <tenon/device/order/peer_copy.h>
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/support/fill_value.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <cstring>

namespace tenon {

using namespace ops;

namespace {

/// Bytes of a dense tensor to a dense one of the same layout on another device. Between devices with a common order the
/// copy is queued. Others wait, unless told not to where the host's side is page-locked: that memory is not handed out
/// again before the stream has done the copy.
void transfer(const Tensor& to, const Tensor& from, bool non_blocking) {
  const std::size_t bytes = to.nbytes();
  if (bytes == 0) return;
  const bool from_host = from.device().is_cpu();
  const bool to_host = to.device().is_cpu();
  DeviceState& source = ops::state_of(from);
  if (!from_host && !to_host && have_common_order(source, ops::state_of(to))) {
    copy_between(ops::state_of(to), to.data_ptr(), source, from.data_ptr(), bytes);
    return;
  }
  const scopes::CopyScope told({.from = from.device(), .to = to.device(), .bytes = bytes});
  const Tensor& accelerator = to_host ? from : to;
  DeviceDriver& driver = ops::state_of(accelerator).driver();
  const StreamRef stream = current_stream(accelerator.device());
  const CopyKind kind = from_host ? CopyKind::kHostToDevice
                        : to_host ? CopyKind::kDeviceToHost
                                  : CopyKind::kDeviceToDevice;
  if (!from_host && !to_host) source.driver().synchronize(current_stream(from.device()));
  driver.copy(to.data_ptr(), from.data_ptr(), bytes, kind, stream);
  StorageImpl& host = to_host ? to.impl().storage() : from.impl().storage();
  if (non_blocking && host.pinned_for() == &ops::state_of(accelerator)) {
    host.record_stream(stream);
    return;
  }
  // Host memory of the caller may go at any time, and what was read must be there when this returns.
  driver.synchronize(stream);
}

/// Throws NotImplementedError where values are asked for that are not there.
void check_copy(const DeviceState& to, const Tensor& from) {
  if (has_values(from) || !holds_data(to.driver())) return;
  throw NotImplementedError(
      fmt::format("Cannot copy out of {} tensor; no data! A module gets memory without values by to_empty(device).",
                  from.device().type().name()));
}

/// Whether both lie the same way without holes, so that their bytes are the same.
bool lie_alike(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.impl().is_non_overlapping_and_dense() && a.sizes() == b.sizes() &&
         a.impl().strides() == b.impl().strides();
}

/// Values only.
void raw_copy(const Tensor& to, const Tensor& from, bool non_blocking = false) {
  if (to.numel() == 0) return;
  if (!(to.device() == from.device()) && !has_values(to)) return;  // the values are never read
  if (to.device() == from.device()) {
    const Dims& sizes = to.impl().sizes();
    Dims strides;
    run(TENON_OP("copy"), ops::state_of(to), {view_of(to)}, {view_as(from, sizes, strides)});
    return;
  }
  if (lie_alike(to, from)) {
    transfer(to, from, non_blocking);
    return;
  }
  // Converted and made dense on the source's device, moved, then laid out on the target's.
  Tensor source = from;
  if (source.scalar_type() != to.scalar_type() || !source.is_contiguous()) {
    source = allocate_like(from, from.impl().sizes(), to.scalar_type());
    raw_copy(source, from);
  }
  if (to.is_contiguous() && to.sizes() == source.sizes()) {
    transfer(to, source, non_blocking);
    return;
  }
  Tensor arrived = allocate_like(to, source.impl().sizes(), to.scalar_type());
  transfer(arrived, source, non_blocking && !to.device().is_cpu());
  raw_copy(to, arrived);
}

Recording record_copy(const char* name, const Tensor& self) {
  const Dtype dtype = self.scalar_type();
  const Device device = self.device();
  return record<0>(name, {&self},
                   [dtype, device](Backward& b) { b.set(0, b.grad().to(TensorOptions(dtype).device(device))); });
}

Tensor convert(const Tensor& self, DeviceState& state, Dtype dtype, std::optional<MemoryFormat> format,
               bool non_blocking) {
  check_copy(state, self);
  Recording recording = record_copy("ToCopyBackward0", self);
  Tensor result;
  const TensorImpl& impl = self.impl();
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  check_format(wanted, impl.rank());
  if (wanted == MemoryFormat::Preserve && !impl.is_contiguous() && impl.is_non_overlapping_and_dense()) {
    result = allocate_strided(state, impl.sizes(), impl.strides(), dtype);
  } else if (wanted == MemoryFormat::ChannelsLast || wanted == MemoryFormat::ChannelsLast3d) {
    result = allocate_strided(state, impl.sizes(), channels_last_strides(impl.sizes()), dtype);
  } else {
    result = allocate_tensor(state, impl.sizes(), dtype);
  }
  raw_copy(result, self, non_blocking);
  recording.output(result);
  return result;
}

}  // namespace

Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  TENON_SCOPE(to, *this, options, non_blocking, copy, format)
  if (options.requires_grad()) {
    throw Error("to(options) expects unset requires_grad flag, but got options.requires_grad set as true");
  }
  if (!format) format = options.memory_format_opt();
  const Dtype dtype = options.dtype_opt().value_or(scalar_type());
  DeviceState& state =
      options.has_device() && !(options.device() == device()) ? tenon::state_of(options) : ops::state_of(*this);
  const bool laid_out = !format || *format == MemoryFormat::Preserve || is_contiguous(*format);
  if (!copy && dtype == scalar_type() && &state == &ops::state_of(*this) && laid_out) return *this;
  Tensor result = convert(*this, state, dtype, format, non_blocking);
  result.impl().set_wrapped_number(impl().is_wrapped_number());
  return result;
}
Tensor Tensor::to(Dtype dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> format) const {
  return to(TensorOptions(dtype), non_blocking, copy, format);
}
Tensor Tensor::to(Device device, Dtype dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> format) const {
  return to(TensorOptions(dtype).device(device), non_blocking, copy, format);
}
Tensor Tensor::to(const Tensor& like, bool non_blocking, bool copy, std::optional<MemoryFormat> format) const {
  return to(TensorOptions(like.scalar_type()).device(like.device()), non_blocking, copy, format);
}

Tensor Tensor::clone(std::optional<MemoryFormat> format) const {
  TENON_SCOPE(clone, *this, format)
  Recording recording = record<0>("CloneBackward0", {this}, [](Backward& b) { b.set(0, b.take_grad()); });
  Tensor result;
  const TensorImpl& self = impl();
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  check_format(wanted, self.rank());
  if (wanted == MemoryFormat::Preserve) {
    // Without elements any strides are contiguous, and PyTorch keeps them.
    result = numel() == 0 ? allocate_strided(self.storage().state(), self.sizes(), self.strides(), self.dtype())
                          : allocate_preserving(*this, self.dtype());
  } else if (wanted == MemoryFormat::Contiguous) {
    result = allocate_like(*this, self.sizes(), self.dtype());
  } else {
    result = allocate_strided(self.storage().state(), self.sizes(), channels_last_strides(self.sizes()), self.dtype());
  }
  raw_copy(result, *this);
  recording.output(result);
  return result;
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Preserve) throw Error("preserve memory format is unsupported by the contiguous operator");
  if (is_contiguous(format)) return *this;  // no operator: PyTorch calls none either
  TENON_SCOPE(contiguous, *this, format)
  return clone(format);
}

namespace {

/// Whether two tensors of one storage have bytes in common, seen by the range that each spans.
bool may_overlap(const Tensor& a, const Tensor& b) {
  if (!a.is_alias_of(b) || a.numel() == 0 || b.numel() == 0) return false;
  const auto last = [](const TensorImpl& impl) {
    std::int64_t last = impl.offset();
    for (int i = 0; i < impl.rank(); ++i) last += (impl.sizes()[i] - 1) * impl.strides()[i];
    return (last + 1) * static_cast<std::int64_t>(size_of(impl.dtype()));
  };
  const auto first = [](const TensorImpl& impl) {
    return impl.offset() * static_cast<std::int64_t>(size_of(impl.dtype()));
  };
  return first(a.impl()) < last(b.impl()) && first(b.impl()) < last(a.impl());
}

}  // namespace

Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) const {
  TENON_SCOPE(copy_, *this, source, non_blocking)
  Tensor& handle = const_cast<Tensor&>(*this);
  autograd::check_inplace(*this, autograd::requires_grad(source));
  check_written(*this);
  check_copy(ops::state_of(*this), source);
  if (!is_expandable_to(source.impl().sizes(), impl().sizes())) {
    broadcast_sizes(impl().sizes(), source.impl().sizes());
    throw Error("output with shape " + to_string(sizes()) + " doesn't match the broadcast shape " +
                to_string(broadcast_sizes(impl().sizes(), source.impl().sizes())));
  }
  const Dtype dtype = source.scalar_type();
  const Device device = source.device();
  const Tensor none;  // integers have no gradient
  const Tensor& recorded = is_floating_point() ? source : none;
  Recording recording = record<0>("torch::autograd::CopyBackwards", {this, &recorded}, [dtype, device](Backward& b) {
    if (b.needs(0)) b.set(0, b.grad().new_zeros(b.grad().sizes()));
    if (b.needs(1)) b.set(1, b.grad().to(TensorOptions(dtype).device(device)));
  });
  if (is_same(source)) {
    // Nothing to move, but the version still counts it as a write.
  } else if (may_overlap(*this, source)) {
    NoGradGuard no_grad;
    raw_copy(*this, source.clone());
  } else {
    raw_copy(*this, source, non_blocking);
  }
  finish_inplace(*this, recording);
  return handle;
}

namespace {

/// Writes one number to every element; `node` is the name of the autograd node.
Tensor& overwrite(const Tensor& self, const char* node, const Scalar& value) {
  autograd::check_inplace(self);
  Recording recording = record<0>(node, {&self}, [](Backward& b) { b.set(0, b.grad().new_zeros(b.grad().sizes())); });
  const FillAttributes attributes{fill_value(value, self.scalar_type(), self.numel())};
  run(TENON_OP("fill"), ops::state_of(self), {view_of(self)}, {}, &attributes);
  finish_inplace(self, recording);
  return const_cast<Tensor&>(self);
}

}  // namespace

Tensor& Tensor::fill_(const Scalar& value) const {
  TENON_SCOPE(fill_, *this, value)
  return overwrite(*this, "FillBackward0", value);
}
Tensor& Tensor::fill_(const Tensor& value) const {
  TENON_SCOPE(fill_, *this, value)
  if (value.dim() != 0) {
    throw Error("fill_ only supports 0-dimension value tensor but got tensor with " + std::to_string(value.dim()) +
                " dimensions.");
  }
  return copy_(value);
}
Tensor& Tensor::zero_() const {
  TENON_SCOPE(zero_, *this)
  return overwrite(*this, "ZeroBackward0", 0);
}

const Tensor& Tensor::resize_(IntArrayRef sizes, std::optional<MemoryFormat>) const {
  TENON_SCOPE(resize_, *this, sizes)
  if (requires_grad()) throw Error("cannot resize variables that require grad");
  TensorImpl& self = impl();
  const Dims dims(sizes);
  check_sizes(sizes);
  dense_bytes(dims, self.dtype());
  const Dims strides = contiguous_strides(dims);
  const std::size_t needed = strided_bytes(dims, strides, self.dtype(), self.offset());
  if (needed > self.storage().nbytes()) self.storage().resize(needed);
  self.set_strided(dims, strides, self.offset());
  return *this;
}

Tensor& Tensor::set_(const Tensor& source) const {
  TENON_SCOPE(set_, *this, source)
  autograd::check_inplace(*this, autograd::requires_grad(source));
  TensorImpl& self = impl();
  const TensorImpl& from = source.impl();
  self.set_own_version(self.version() + 1);
  self.set_storage(from.storage_ptr(), from.dtype());
  self.set_strided(from.sizes(), from.strides(), from.offset());
  return const_cast<Tensor&>(*this);
}

Scalar Tensor::item() const {
  TENON_SCOPE(item, *this)
  if (numel() != 1) {
    throw Error("a Tensor with " + std::to_string(numel()) + " elements cannot be converted to Scalar");
  }
  if (!has_values(*this)) {
    throw NotImplementedError(
        fmt::format("Tensor.item() cannot be called on {} tensors: they have no data", device().type().name()));
  }
  alignas(8) unsigned char bytes[8];
  const std::size_t size = itemsize();
  if (device().is_cpu()) {
    std::memcpy(bytes, data_ptr(), size);
  } else {
    const scopes::CopyScope told({.from = device(), .to = Device(kCPU), .bytes = size});
    DeviceDriver& driver = ops::state_of(*this).driver();
    const StreamRef stream = current_stream(device());
    driver.copy(bytes, data_ptr(), size, CopyKind::kDeviceToHost, stream);
    driver.synchronize(stream);
  }
  switch (scalar_type()) {
#define TENON_ITEM(type, constant)    \
  case Dtype::constant: {             \
    type value;                       \
    std::memcpy(&value, bytes, size); \
    return Scalar(value);             \
  }
    TENON_FOR_EACH_DTYPE(TENON_ITEM)
#undef TENON_ITEM
  }
  return {};
}

bool Tensor::is_nonzero() const {
  TENON_SCOPE(is_nonzero, *this)
  if (numel() == 0) throw Error("Boolean value of Tensor with no values is ambiguous");
  if (numel() > 1) throw Error("Boolean value of Tensor with more than one value is ambiguous");
  const Scalar value = item();
  return value.toBool();
}

Tensor& Tensor::operator=(const Tensor& other) && { return copy_(other); }
Tensor& Tensor::operator=(Tensor&& other) && { return copy_(other); }
Tensor& Tensor::operator=(const Scalar& value) && { return fill_(value); }

}  // namespace tenon
