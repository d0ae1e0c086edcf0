// Out of memory: the figures, the observers, the advice. OutOfMemory makes the sentence of them, in core/error.cpp.
#include <tenon/core/units.h>
#include <tenon/memory/available_bytes.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/pytorch/sizes.h>
#include <tenon/memory/stack/oom.h>
#include <tenon/memory/stack/stack_impl.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace tenon {

namespace {

struct Observers {
  std::mutex mutex;
  std::map<std::uint64_t, OomObserver> by_id;
  std::uint64_t next_id = 1;
};

Observers& observers() {
  static auto* all = new Observers;
  return *all;
}

}  // namespace

std::uint64_t add_oom_observer(OomObserver observer) {
  std::lock_guard lock(observers().mutex);
  const std::uint64_t id = observers().next_id++;
  observers().by_id.emplace(id, std::move(observer));
  return id;
}

void remove_oom_observer(std::uint64_t id) {
  std::lock_guard lock(observers().mutex);
  observers().by_id.erase(id);
}

/// Runs all of them, in the order of their coming.
static void notify_oom_observers(const OutOfMemoryInfo& info) noexcept {
  std::vector<OomObserver> all;
  {
    std::lock_guard lock(observers().mutex);
    for (const auto& [id, observer] : observers().by_id) all.push_back(observer);
  }
  for (const OomObserver& observer : all) {
    try {
      observer(info);
    } catch (...) {  // The failure that is under way matters more than an observer's own.
    }
  }
}

/// What the device could give this process in all: what it holds and what is left.
static std::size_t reachable_bytes(const OutOfMemoryInfo& info) { return info.device_free_bytes + info.reserved_bytes; }

static std::size_t ceiling_bytes(const OutOfMemoryInfo& info) {
  return info.limit_bytes != 0 ? std::min(info.limit_bytes, reachable_bytes(info)) : reachable_bytes(info);
}

OomCause oom_cause(const OutOfMemoryInfo& info) {
  const std::size_t cached = info.reserved_bytes - std::min(info.reserved_bytes, info.allocated_bytes);
  const std::size_t needed = info.allocated_bytes + info.requested_bytes;
  const std::size_t reachable = reachable_bytes(info);
  if (info.limit_bytes != 0 && needed > info.limit_bytes && (info.capacity_bytes == 0 || needed <= reachable))
    return OomCause::kLimit;
  if (info.capacity_bytes != 0 && info.requested_bytes > info.capacity_bytes) return OomCause::kTooLarge;
  if (cached != 0 && needed <= ceiling_bytes(info) && info.largest_free_bytes < info.requested_bytes)
    return OomCause::kPieces;
  return OomCause::kFull;
}

std::string oom_others(const OutOfMemoryInfo& info, const std::string& names) {
  constexpr std::size_t kLeast = MiB;  // less is rounding of somebody's
  const std::size_t known = info.device_free_bytes + info.reserved_bytes;
  if (info.limit_bytes != 0 || oom_cause(info) != OomCause::kFull || info.capacity_bytes < known + kLeast) return {};
  return fmt::format("{} of the device are in other hands{}{}", format_bytes(info.capacity_bytes - known),
                     names.empty() ? "" : ": ", names);
}

namespace {
OtherProcesses& other_processes() {
  static auto* names = new OtherProcesses;
  return *names;
}

/// Nothing that goes wrong in asking hides that memory has run out.
std::string others_of(const OutOfMemoryInfo& info) {
  if (oom_others(info, "").empty()) return {};
  try {
    return oom_others(info, other_processes() ? other_processes()(info.device) : "");
  } catch (const std::exception&) {
    return oom_others(info, "");
  }
}
}  // namespace

void set_other_processes(OtherProcesses names) { other_processes() = std::move(names); }

static std::string oom_advice(const OutOfMemoryInfo& info, const OomCircumstances& circumstances) {
  const std::size_t cached = info.reserved_bytes - std::min(info.reserved_bytes, info.allocated_bytes);
  const std::size_t needed = info.allocated_bytes + info.requested_bytes;
  const OomCause cause = oom_cause(info);
  if (cause == OomCause::kLimit) {
    return fmt::format(
        "the limit of {} is below the {} that this step needs: a limit of at least {} would have let it pass",
        format_bytes(info.limit_bytes), format_bytes(needed), format_bytes(align_up(needed, 2 * MiB)));
  }
  if (cause == OomCause::kTooLarge) return "the request alone is larger than the device";
  if (cause == OomCause::kPieces) {
    const std::size_t ceiling = ceiling_bytes(info);
    const std::string state =
        fmt::format("{} are cached in blocks too small or for other streams", format_bytes(cached));
    if (!circumstances.is_expandable && circumstances.has_virtual_memory) {
      // Of each kind of page one may be begun.
      constexpr std::size_t kBegunBytes = pytorch::kLargeSegmentBytes + pytorch::kSmallSegmentBytes;
      const bool surely = needed <= ceiling - std::min(ceiling, kBegunBytes);
      return fmt::format("{}: allocator '{}' {}", state, kExpandableAllocator,
                         surely ? "would have fitted" : "could join them");
    }
    if (circumstances.splits_all_sizes && !circumstances.is_expandable) {
      return fmt::format("{}: option max_split_size of allocator '{}' keeps large blocks whole", state,
                         kNativeAllocator);
    }
  }
  const auto& by_purpose = circumstances.stats.requested_by_purpose;
  const auto largest = std::max_element(by_purpose.begin(), by_purpose.end(),
                                        [](const Stat& a, const Stat& b) { return a.current < b.current; });
  if (largest->current > 0) {
    const auto purpose = static_cast<Purpose>(largest - by_purpose.begin());
    const std::string held = fmt::format("{} of the live bytes are of purpose '{}'",
                                         format_bytes(static_cast<std::size_t>(largest->current)), name_of(purpose));
    return purpose == Purpose::kActivation ? held + ": a smaller batch or checkpointing takes less" : held;
  }
  return {};
}

/// Where the device has enough for the request, it was asked for more.
std::string oom_hint(const OutOfMemoryInfo& info, const OomCircumstances& circumstances) {
  std::string advice = oom_advice(info, circumstances);
  const bool seems_enough = info.capacity_bytes != 0 && info.requested_bytes <= info.device_free_bytes;
  if (!seems_enough || info.limit_bytes != 0 || circumstances.refused_bytes <= info.device_free_bytes) return advice;
  return fmt::format("the device was asked for a segment of {}, more than it has free{}{}",
                     format_bytes(circumstances.refused_bytes), advice.empty() ? "" : "; ", advice);
}

bool AllocatorStack::Impl::give_back_cache() {
  const LockedAllocator allocator = locked();
  if (observed_.reserved_bytes() <= static_cast<std::size_t>(ledger_->allocated_bytes())) return false;
  PolicyStats stats;
  allocator->report(stats);
  if (stats.has_pools || allocator->trim(0) == 0) return false;
  retries_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void AllocatorStack::Impl::fail(const Request& request, const OutOfMemoryInfo& from_policy) {
  ooms_.fetch_add(1, std::memory_order_relaxed);
  const MemoryStats stats = [&] {
    const LockedAllocator allocator = locked();
    return stats_locked();
  }();
  const SourceTraits traits = observed_.traits();
  const SourceUsage usage = observed_.usage();
  OutOfMemoryInfo info = from_policy;
  info.allocator = config_.policy.name;
  info.device = traits.device;
  info.requested_bytes = request.bytes;
  info.allocated_bytes = static_cast<std::size_t>(stats.allocated_bytes.current);
  info.reserved_bytes = static_cast<std::size_t>(stats.reserved_bytes.current);
  info.capacity_bytes = traits.capacity_bytes != 0 ? traits.capacity_bytes : usage.total_bytes;
  info.device_free_bytes = usage.free_bytes;
  if (const std::size_t limit = observed_.limit(); limit != 0) {
    info.limit_bytes = info.limit_bytes == 0 ? limit : std::min(info.limit_bytes, limit);
  }
  info.largest_free_bytes = stats.policy.largest_free_bytes;
  if (info.hint.empty()) {
    info.hint = oom_hint(info, {.stats = stats,
                                .has_virtual_memory = traits.virtual_memory,
                                .is_expandable = stats.device_maps != 0,
                                .splits_all_sizes = stats.policy.max_split_size < 0,
                                .refused_bytes = observed_.refused_bytes()});
  }
  if (const std::string others = others_of(info); !others.empty())
    info.hint += (info.hint.empty() ? "" : "; ") + others;
  if (History* told = history()) {
    told->record({.action = HistoryAction::kOom,
                  .purpose = request.purpose,
                  .label = request.label,
                  .address = available_bytes(info),
                  .bytes = request.bytes,
                  .stream = request.stream});
  }
  notify_oom_observers(info);
  throw OutOfMemory(std::move(info));
}

}  // namespace tenon
