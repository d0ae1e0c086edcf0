// Dispatch: names are interned under a mutex, look-ups read an array.
#include <tenon/core/error.h>
#include <tenon/dispatch/dispatch.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tenon {
namespace {

constexpr std::uint32_t kMaxOperators = 1024;

struct Names {
  std::mutex mutex;
  std::unordered_map<std::string, std::uint32_t> ids;
  std::deque<std::string> names;  // grows without moving what name_of() returned
};

Names& names() {
  static auto* table = new Names();
  return *table;
}

constinit std::atomic<Kernel> kernels[kMaxDeviceTypes][kMaxOperators] = {};
constinit std::atomic<int> shares_with[kMaxDeviceTypes] = {};  // 1 + id of the kind whose kernels also serve, 0 = none

}  // namespace

OperatorId intern_operator(std::string_view name) {
  Names& table = names();
  std::lock_guard lock(table.mutex);
  const auto [entry, added] = table.ids.try_emplace(std::string(name), static_cast<std::uint32_t>(table.names.size()));
  if (added) {
    if (table.names.size() == kMaxOperators) {
      table.ids.erase(entry);
      throw Error("more than " + std::to_string(kMaxOperators) + " operator names: '" + std::string(name) +
                  "' has no room");
    }
    table.names.emplace_back(name);
  }
  return {entry->second};
}

std::string_view name_of(OperatorId op) {
  Names& table = names();
  std::lock_guard lock(table.mutex);
  return op.value < table.names.size() ? std::string_view(table.names[op.value]) : "?";
}

void register_kernel(DeviceType type, std::string_view operator_name, Kernel kernel) {
  kernels[type.id()][intern_operator(operator_name).value].store(kernel, std::memory_order_release);
}

void share_kernels(DeviceType type, DeviceType with) {
  TENON_ASSERT(type != with, "a device kind shares the kernels of another one");
  shares_with[type.id()].store(with.id() + 1, std::memory_order_release);
}

Kernel find_kernel(DeviceType type, OperatorId op) noexcept {
  if (Kernel kernel = kernels[type.id()][op.value].load(std::memory_order_acquire)) return kernel;
  const int other = shares_with[type.id()].load(std::memory_order_acquire);
  return other == 0 ? nullptr : kernels[other - 1][op.value].load(std::memory_order_acquire);
}

Kernel require_kernel(DeviceType type, OperatorId op) {
  if (Kernel kernel = find_kernel(type, op)) return kernel;
  std::string others;
  for (int id = 0; id < kMaxDeviceTypes; ++id) {
    if (!kernels[id][op.value].load(std::memory_order_relaxed)) continue;
    others += (others.empty() ? "" : ", ") + std::string(DeviceType(static_cast<std::uint8_t>(id)).name());
  }
  throw Error("operator '" + std::string(name_of(op)) + "' has no kernel for device '" + std::string(type.name()) +
              "'; " + (others.empty() ? "no loaded plugin has one" : "it has one for: " + others) +
              " (`tenon plugins list` shows what is loaded)");
}

}  // namespace tenon
