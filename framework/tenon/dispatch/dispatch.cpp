// The tables behind dispatch: names to ids, ids to kernels for each device kind. Written under a lock, read without
// one.
#include <tenon/core/error.h>
#include <tenon/dispatch/dispatch.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>

namespace tenon {

namespace {

// A fixed table per device kind: growing it would need a lock, or a reclamation scheme, on every launch.
constexpr std::uint32_t kMaxOperators = 2048;

struct Tables {
  std::array<std::array<std::atomic<Kernel>, kMaxOperators>, kMaxDeviceTypes> kernels{};
  std::array<std::atomic<int>, kMaxDeviceTypes> shares_with{};  // 1 + id of the kind whose kernels also serve, 0 = none

  std::mutex mutex;  // guards what follows
  std::map<std::string, std::uint32_t, std::less<>> ids;
  std::deque<std::string> names;  // a deque: name_of() hands out views
};

Tables& tables() {
  static auto* instance = new Tables;  // never destroyed: plugins are never unloaded either
  return *instance;
}

}  // namespace

OperatorId intern_operator(std::string_view name) {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.ids.find(name); found != all.ids.end()) return {found->second};
  const auto id = static_cast<std::uint32_t>(all.names.size());
  if (id == kMaxOperators) {
    throw Error(fmt::format("no room for operator '{}': {} operators are known already", name, kMaxOperators));
  }
  all.names.emplace_back(name);
  all.ids.emplace(name, id);
  return {id};
}

std::string_view name_of(OperatorId op) {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  return op.value < all.names.size() ? std::string_view(all.names[op.value]) : std::string_view("unknown");
}

void register_kernel(DeviceType type, std::string_view operator_name, Kernel kernel) {
  const OperatorId op = intern_operator(operator_name);
  tables().kernels[type.id()][op.value].store(kernel, std::memory_order_release);
}

void share_kernels(DeviceType type, DeviceType with) {
  TENON_ASSERT(type != with, "a device kind shares the kernels of another one");
  tables().shares_with[type.id()].store(with.id() + 1, std::memory_order_release);
}

Kernel find_kernel(DeviceType type, OperatorId op) noexcept {
  const Tables& all = tables();
  if (const Kernel kernel = all.kernels[type.id()][op.value].load(std::memory_order_acquire)) return kernel;
  const int other = all.shares_with[type.id()].load(std::memory_order_acquire);
  return other == 0 ? nullptr
                    : all.kernels[static_cast<std::size_t>(other - 1)][op.value].load(std::memory_order_acquire);
}

Kernel require_kernel(DeviceType type, OperatorId op) {
  if (const Kernel kernel = find_kernel(type, op)) return kernel;
  std::string having;
  for (int kind = 0; kind < kMaxDeviceTypes; ++kind) {
    const DeviceType other(static_cast<std::uint8_t>(kind));
    if (find_kernel(other, op) != nullptr) having += fmt::format("{}{}", having.empty() ? "" : ", ", other.name());
  }
  throw Error(
      fmt::format("operator '{}' has no kernel for device kind '{}'; {}", name_of(op), type.name(),
                  having.empty() ? "no loaded plugin supplies one" : "loaded plugins supply one for " + having));
}

std::vector<std::string> kernels_of(DeviceType type) {
  Tables& all = tables();
  std::vector<std::string> names;
  const std::lock_guard lock(all.mutex);
  for (const auto& [name, id] : all.ids) {
    if (all.kernels[type.id()][id].load(std::memory_order_acquire) != nullptr) names.push_back(name);
  }
  return names;
}

}  // namespace tenon
