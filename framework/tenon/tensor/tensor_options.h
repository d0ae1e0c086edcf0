// TensorOptions: dtype, device, layout and requires_grad of a tensor to be made; what is not set has a default.
#pragma once

#include <tenon/core/device.h>
#include <tenon/tensor/libtorch/types.h>

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tenon {

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(Dtype dtype) : dtype_(dtype) {}                   // NOLINT: implicit as in c10
  TensorOptions(TypeMeta dtype) : dtype_(dtype) {}                // NOLINT
  TensorOptions(Layout layout) : layout_(layout) {}               // NOLINT
  TensorOptions(MemoryFormat format) : memory_format_(format) {}  // NOLINT
  template <class... Arguments>
  requires(sizeof...(Arguments) >= 1 && std::is_constructible_v<Device, Arguments&&...> &&
           !(sizeof...(Arguments) == 1 && (std::is_same_v<std::decay_t<Arguments>, TensorOptions> && ...)))
      TensorOptions(Arguments&&... arguments)
      : device_(Device(std::forward<Arguments>(arguments)...)) {}  // NOLINT

  /// With this dtype.
  TensorOptions dtype(std::optional<Dtype> dtype) const {
    TensorOptions options = *this;
    options.dtype_ = dtype;
    return options;
  }
  TensorOptions dtype(Dtype dtype) const { return this->dtype(std::optional<Dtype>(dtype)); }
  TensorOptions dtype(TypeMeta dtype) const { return this->dtype(std::optional<Dtype>(dtype)); }
  template <class T>
  TensorOptions dtype() const {
    return dtype(dtype_of<T>);
  }
  /// The same options with this device. Each of these functions returns a copy and leaves the rest as it is.
  TensorOptions device(std::optional<Device> device) const {
    TensorOptions options = *this;
    options.device_ = device;
    return options;
  }
  TensorOptions device(Device device) const { return this->device(std::optional<Device>(device)); }
  TensorOptions device(DeviceType type) const { return this->device(Device(type)); }
  /// A kind with an index, device(kCUDA, 1), or a device's name, device("cuda:1").
  template <class... Arguments>
  requires(sizeof...(Arguments) == 2 ||
           (sizeof...(Arguments) == 1 && (std::is_convertible_v<Arguments, std::string_view> && ...))) TensorOptions
      device(Arguments&&... arguments)
  const { return device(std::optional<Device>(std::in_place, std::forward<Arguments>(arguments)...)); }
  /// With the CUDA device of that index.
  TensorOptions device_index(std::int16_t index) const {
    return device(Device(kCUDA, static_cast<DeviceIndex>(index)));
  }
  /// With this layout, which is only kept: every tensor is strided.
  TensorOptions layout(std::optional<Layout> layout) const {
    TensorOptions options = *this;
    options.layout_ = layout;
    return options;
  }
  /// With a gradient required, or not.
  TensorOptions requires_grad(std::optional<bool> requires_grad) const {
    TensorOptions options = *this;
    options.requires_grad_ = requires_grad;
    return options;
  }
  /// In page-locked host memory, or not.
  TensorOptions pinned_memory(std::optional<bool> pinned) const {
    TensorOptions options = *this;
    options.pinned_ = pinned;
    return options;
  }
  /// With this memory format.
  TensorOptions memory_format(std::optional<MemoryFormat> format) const {
    TensorOptions options = *this;
    options.memory_format_ = format;
    return options;
  }

  TypeMeta dtype() const { return dtype_ ? TypeMeta(*dtype_) : get_default_dtype(); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  DeviceIndex device_index() const { return device().index(); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_.value_or(false); }
  /// The dtype, if one was set.
  std::optional<Dtype> dtype_opt() const { return dtype_; }
  /// The device, if one was set; so for the other _opt functions.
  std::optional<Device> device_opt() const { return device_; }
  /// The layout, if one was set.
  std::optional<Layout> layout_opt() const { return layout_; }
  /// Whether a gradient is required, if that was set.
  std::optional<bool> requires_grad_opt() const { return requires_grad_; }
  /// Whether page-locked memory is wanted, if that was set.
  std::optional<bool> pinned_memory_opt() const { return pinned_; }
  /// The memory format, if one was set.
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  /// Whether a dtype was set.
  bool has_dtype() const { return dtype_.has_value(); }
  /// Whether a device was set; so for the other has_ functions.
  bool has_device() const { return device_.has_value(); }
  /// Whether a layout was set.
  bool has_layout() const { return layout_.has_value(); }
  /// Whether it was said if a gradient is required.
  bool has_requires_grad() const { return requires_grad_.has_value(); }
  /// Whether a memory format was set.
  bool has_memory_format() const { return memory_format_.has_value(); }

  /// What `other` sets wins.
  TensorOptions merge_in(const TensorOptions& other) const {
    TensorOptions options = *this;
    if (other.dtype_) options.dtype_ = other.dtype_;
    if (other.device_) options.device_ = other.device_;
    if (other.layout_) options.layout_ = other.layout_;
    if (other.requires_grad_) options.requires_grad_ = other.requires_grad_;
    if (other.pinned_) options.pinned_ = other.pinned_;
    if (other.memory_format_) options.memory_format_ = other.memory_format_;
    return options;
  }
  /// With this memory format, where one is given.
  TensorOptions merge_memory_format(std::optional<MemoryFormat> format) const {
    return format ? memory_format(format) : *this;
  }

 private:
  std::optional<Device> device_;
  std::optional<Dtype> dtype_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_;
  std::optional<bool> pinned_;
  std::optional<MemoryFormat> memory_format_;
};

/// TensorOptions with this dtype.
inline TensorOptions dtype(Dtype dtype) { return TensorOptions().dtype(dtype); }
inline TensorOptions dtype(TypeMeta dtype) { return TensorOptions().dtype(dtype); }
/// TensorOptions with this layout.
inline TensorOptions layout(Layout layout) { return TensorOptions().layout(layout); }
/// TensorOptions with this device; so for the other functions of this kind.
inline TensorOptions device(Device device) { return TensorOptions().device(device); }
/// TensorOptions with the CUDA device of that index.
inline TensorOptions device_index(std::int16_t index) { return TensorOptions().device_index(index); }
/// TensorOptions that ask for a gradient, or say that there is none.
inline TensorOptions requires_grad(bool requires_grad = true) { return TensorOptions().requires_grad(requires_grad); }
/// TensorOptions with this memory format.
inline TensorOptions memory_format(MemoryFormat format) { return TensorOptions().memory_format(format); }

TENON_API std::ostream& operator<<(std::ostream& stream, const TensorOptions& options);

}  // namespace tenon
