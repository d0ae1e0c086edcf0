// The table of device kinds, and the spelling of a device.
#include <tenon/core/device.h>
#include <tenon/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <limits>
#include <mutex>

namespace tenon {

namespace {

struct KindTable {
  std::mutex mutex;
  std::deque<std::string> names{
  // a deque: name() hands out views
#define TENON_DEVICE_KIND(constant, name) name,
#include <tenon/core/device_kinds.inl>
#undef TENON_DEVICE_KIND
  };
};

KindTable& kinds() {
  static auto* table = new KindTable;  // never destroyed: plugins may name devices in their last destructors
  return *table;
}

bool is_kind_name(std::string_view name) {
  if (name.empty()) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return name[0] >= 'a';
}

/// Its id, or the number of names where it is not among them. The table is locked.
std::size_t position_locked(const KindTable& table, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(table.names, name) - table.names.begin());
}

}  // namespace

DeviceType DeviceType::named(std::string_view name) {
  if (!is_kind_name(name)) {
    throw Error(
        fmt::format("invalid device kind '{}': expected lower-case letters, digits and '_', as in \"cuda\"", name));
  }
  KindTable& table = kinds();
  std::lock_guard lock(table.mutex);
  const std::size_t id = position_locked(table, name);
  if (id < table.names.size()) return DeviceType(static_cast<std::uint8_t>(id));
  if (table.names.size() == kMaxDeviceTypes) {
    throw Error(fmt::format("no room for device kind '{}': {} kinds are known already", name, kMaxDeviceTypes));
  }
  table.names.emplace_back(name);
  return DeviceType(static_cast<std::uint8_t>(id));
}

std::optional<DeviceType> DeviceType::find(std::string_view name) {
  KindTable& table = kinds();
  std::lock_guard lock(table.mutex);
  const std::size_t id = position_locked(table, name);
  if (id < table.names.size()) return DeviceType(static_cast<std::uint8_t>(id));
  return std::nullopt;
}

std::string_view DeviceType::name() const {
  KindTable& table = kinds();
  std::lock_guard lock(table.mutex);
  return id_ < table.names.size() ? std::string_view(table.names[id_]) : std::string_view("unknown");
}

Device::Device(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  int index = -1;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const bool canonical = digits.size() == 1 || (!digits.empty() && digits[0] != '0');
    constexpr int kLargest = std::numeric_limits<DeviceIndex>::max();
    if (error != std::errc() || end != digits.data() + digits.size() || index < 0 || index > kLargest || !canonical) {
      throw Error(fmt::format("Invalid device string: '{}': expected KIND or KIND:INDEX with INDEX from 0 to {}", text,
                              kLargest));
    }
  }
  if (!is_kind_name(kind)) {
    throw Error(
        fmt::format("Invalid device string: '{}': expected KIND or KIND:INDEX, as in \"cpu\" or \"cuda:0\"", text));
  }
  const std::optional<DeviceType> known = DeviceType::find(kind);
  if (!known) {
    throw Error(
        fmt::format("Invalid device string: '{}': there is no device kind '{}'; a kind that a plugin supplies is known "
                    "once that plugin is loaded",
                    text, kind));
  }
  type_ = *known;
  index_ = static_cast<DeviceIndex>(index);
}

std::string Device::str() const {
  std::string text(type_.name());
  if (index_ >= 0) text += fmt::format(":{}", static_cast<int>(index_));
  return text;
}

}  // namespace tenon
