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

  /// Kinds that are always known. The later ones have libtorch's names: a program may mention them, and a plugin of
  /// that name supplies them.
  static const DeviceType CPU, CUDA, Simulated, MKLDNN, OPENGL, OPENCL, IDEEP, HIP, FPGA, XLA, Vulkan, Metal, XPU, MPS,
      Meta, HPU;

 private:
  std::uint8_t id_ = 0;
};

inline constexpr DeviceType DeviceType::CPU{0}, DeviceType::CUDA{1}, DeviceType::Simulated{2}, DeviceType::MKLDNN{3},
    DeviceType::OPENGL{4}, DeviceType::OPENCL{5}, DeviceType::IDEEP{6}, DeviceType::HIP{7}, DeviceType::FPGA{8},
    DeviceType::XLA{9}, DeviceType::Vulkan{10}, DeviceType::Metal{11}, DeviceType::XPU{12}, DeviceType::MPS{13},
    DeviceType::Meta{14}, DeviceType::HPU{15};
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
