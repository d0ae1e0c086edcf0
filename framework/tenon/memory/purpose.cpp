// Purposes and labels: the thread's current ones, and the table of interned label names.
#include <tenon/core/error.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/purpose_named.h>

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>

namespace tenon {

namespace {

constinit thread_local Purpose purpose_of_thread = Purpose::kActivation;
constinit thread_local std::uint16_t label_of_thread = 0;

constexpr std::size_t kMaxLabels = 65535;

struct LabelTable {
  std::mutex mutex;
  std::deque<std::string> names{std::string()};
  std::map<std::string, std::uint16_t, std::less<>> ids;
};

LabelTable& labels() {
  static auto* table = new LabelTable;  // never destroyed: blocks of static tensors are freed late
  return *table;
}

std::uint16_t intern(std::string_view name) {
  if (name.empty()) return 0;
  LabelTable& table = labels();
  std::lock_guard lock(table.mutex);
  if (const auto found = table.ids.find(name); found != table.ids.end()) return found->second;
  if (table.names.size() > kMaxLabels) {
    throw Error(
        fmt::format("no room for label '{}': {} labels are in use; build labels from a fixed set of names, not "
                    "from counters",
                    name, kMaxLabels));
  }
  const auto id = static_cast<std::uint16_t>(table.names.size());
  table.names.emplace_back(name);
  table.ids.emplace(std::string(name), id);
  return id;
}

}  // namespace

std::string_view name_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::kOther:
      return "other";
    case Purpose::kParameter:
      return "parameter";
    case Purpose::kGradient:
      return "gradient";
    case Purpose::kActivation:
      return "activation";
    case Purpose::kOptimizerState:
      return "optimizer_state";
    case Purpose::kWorkspace:
      return "workspace";
    case Purpose::kData:
      return "data";
    case Purpose::kCast:
      return "cast";
    case Purpose::kKvCache:
      return "kv_cache";
  }
  return "unknown";
}

std::optional<Purpose> purpose_named(std::string_view name) {
  for (int i = 0; i < kPurposeCount; ++i) {
    if (name_of(static_cast<Purpose>(i)) == name) return static_cast<Purpose>(i);
  }
  return std::nullopt;
}

PurposeGuard::PurposeGuard(Purpose purpose) noexcept : previous_(purpose_of_thread) { purpose_of_thread = purpose; }
PurposeGuard::~PurposeGuard() { purpose_of_thread = previous_; }

Purpose current_purpose() noexcept { return purpose_of_thread; }

LabelGuard::LabelGuard(std::string_view label) : previous_(label_of_thread) { label_of_thread = intern(label); }
LabelGuard::~LabelGuard() { label_of_thread = previous_; }

std::uint16_t current_label() noexcept { return label_of_thread; }

std::string label_name(std::uint16_t label) {
  LabelTable& table = labels();
  std::lock_guard lock(table.mutex);
  return label < table.names.size() ? table.names[label] : std::string();
}

}  // namespace tenon
