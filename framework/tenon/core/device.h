// Device: which kind of machine and which one of it, as a two-word value. Kinds are named by plugins, so the set is
// open.
#pragma once

#include <tenon/core/export.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// An interned device kind ("cpu", "cuda", "simulated", whatever a plugin adds). Ids are local to the process.
class TENON_EXPORT DeviceType {
 public:
  constexpr DeviceType() = default;
  constexpr explicit DeviceType(std::uint8_t id) : id_(id) {}
  /// The kind of that name, added when new.
  TENON_API static DeviceType named(std::string_view name);
  /// The kind of that name, if there is one.
  TENON_API static std::optional<DeviceType> find(std::string_view name);
  TENON_API std::string_view name() const;
  constexpr std::uint8_t id() const { return id_; }
  constexpr auto operator<=>(const DeviceType&) const = default;

  // DeviceType::CPU, DeviceType::CUDA, …
#define TENON_DEVICE_KIND(constant, name) static const DeviceType constant;
#include <tenon/core/device_kinds.inl>
#undef TENON_DEVICE_KIND

 private:
  std::uint8_t id_ = 0;
};

namespace detail {
enum KindId : std::uint8_t {
#define TENON_DEVICE_KIND(constant, name) k##constant##Id,
#include <tenon/core/device_kinds.inl>
#undef TENON_DEVICE_KIND
};
}  // namespace detail
#define TENON_DEVICE_KIND(constant, name) inline constexpr DeviceType DeviceType::constant{detail::k##constant##Id};
#include <tenon/core/device_kinds.inl>
#undef TENON_DEVICE_KIND

inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;
inline constexpr DeviceType kSimulated = DeviceType::Simulated;
inline constexpr DeviceType kHIP = DeviceType::HIP, kXLA = DeviceType::XLA, kMPS = DeviceType::MPS,
                            kXPU = DeviceType::XPU;
inline constexpr int kMaxDeviceTypes = 32;
inline constexpr int kMaxDevicesPerType = 64;

using DeviceIndex = std::int8_t;

/// A kind and an index. An index of -1 means "the current one of this kind", as in PyTorch.
class TENON_EXPORT Device {
 public:
  using Type = DeviceType;
  constexpr Device() = default;
  constexpr Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}  // NOLINT: as in c10
  /// Parses "cpu", "cuda", "cuda:1". Throws tenon::Error on anything else, also on a kind that nobody has named yet.
  TENON_API Device(std::string_view text);                             // NOLINT
  Device(const char* text) : Device(std::string_view(text)) {}         // NOLINT
  Device(const std::string& text) : Device(std::string_view(text)) {}  // NOLINT

  constexpr DeviceType type() const { return type_; }
  constexpr DeviceIndex index() const { return index_; }
  constexpr bool has_index() const { return index_ >= 0; }
  constexpr bool is_cpu() const { return type_ == kCPU; }
  constexpr bool is_cuda() const { return type_ == kCUDA; }
  constexpr void set_index(DeviceIndex index) { index_ = index; }
  TENON_API std::string str() const;
  constexpr bool operator==(const Device&) const = default;

 private:
  DeviceType type_;
  DeviceIndex index_ = -1;
};

}  // namespace tenon
