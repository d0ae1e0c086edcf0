// Two allocators, two devices, one history.
#include "model_driver.h"

#include <caching/caching_allocator.h>
#include <tenon/core/error.h>
#include <tenon/memory/sources/address_only_source.h>

#include <fmt/format.h>

#include <array>
#include <map>

namespace tenon::test {

namespace {

constexpr std::uint64_t kPools = 3;

class Layout final : public SegmentVisitor {
 public:
  void segment(const SegmentInfo&) override {}
  void block(const BlockInfo& info) override { shown.push_back({info.address, info.bytes, info.state}); }
  std::vector<ReferenceModel::Shown> shown;
};

class Pair {
 public:
  explicit Pair(const ModelCase& of)
      : ours_device_({.capacity_bytes = of.capacity_bytes, .manual_completion = true}),
        model_device_({.capacity_bytes = of.capacity_bytes, .manual_completion = true}),
        ours_(ours_device_, of.settings),
        model_(model_device_, of.settings),
        expandable_(of.settings.expandable),
        compat_1_13_(of.settings.compat == caching::Compat::k1_13) {}

  ~Pair() {
    for (const auto& [slot, block] : live_) ours_.deallocate(block, block.request.stream);
    while (!open_.empty()) close();
  }

  std::string step(const ModelStep& step);

 private:
  std::string allocate(const ModelStep& step);
  std::string compare() const;
  void close() {
    ours_.end_pool(open_.back());
    open_.pop_back();
  }

  AddressOnlySource ours_device_, model_device_;
  caching::CachingAllocator ours_;
  ReferenceModel model_;
  bool expandable_;
  const bool compat_1_13_;
  std::map<std::uint32_t, Block> live_;
  std::vector<std::uint64_t> open_;
  std::array<std::uint64_t, kPools> pool_ids_{1, 2, 3};
  std::uint64_t next_pool_ = 4;
};

std::string Pair::allocate(const ModelStep& step) {
  const std::size_t bytes = size_of(step.size);
  const auto wanted = model_.allocate(bytes, step.stream);
  try {
    const Block block = ours_.allocate({.bytes = bytes, .stream = {step.stream}});
    live_[step.slot] = block;
    const ReferenceModel::Place place{reinterpret_cast<std::uintptr_t>(block.data), block.bytes};
    if (!wanted) return fmt::format("{} bytes were served, PyTorch runs out of memory", bytes);
    if (place == *wanted) return {};
    return fmt::format("{} bytes: {} at {:#x}, PyTorch {} at {:#x}", bytes, place.bytes, place.address, wanted->bytes,
                       wanted->address);
  } catch (const OutOfMemory&) {
    return wanted ? fmt::format("{} bytes: out of memory, PyTorch serves them", bytes) : std::string();
  }
}

std::string Pair::step(const ModelStep& step) {
  const auto live = live_.find(step.slot);
  std::string wrong;
  switch (step.kind) {
    case ModelStep::kAllocate:
      if (live == live_.end()) wrong = allocate(step);
      break;
    case ModelStep::kFree:
      if (live == live_.end()) break;
      model_.free(reinterpret_cast<std::uintptr_t>(live->second.data));
      ours_.deallocate(live->second, live->second.request.stream);
      live_.erase(live);
      break;
    case ModelStep::kUse:
      if (live == live_.end()) break;
      model_.use(reinterpret_cast<std::uintptr_t>(live->second.data), step.stream);
      ours_.record_use(live->second, {step.stream});
      break;
    case ModelStep::kComplete:
      ours_device_.complete(StreamRef{step.stream});
      model_device_.complete(StreamRef{step.stream});
      break;
    case ModelStep::kEmptyCache:
      ours_.trim(0);
      model_.empty_cache();
      break;
    case ModelStep::kOpenPool: {
      if (open_.size() == 2) break;
      const std::uint64_t pool = pool_ids_[step.slot % kPools];
      const PoolOptions options{.use_on_oom = pool % 3 == 1 && !compat_1_13_,
                                .no_split = pool % 3 == 2 && !compat_1_13_};
      ours_.begin_pool(pool, {});
      ours_.configure_pool(pool, options);
      model_.begin_pool(pool, options);
      open_.push_back(pool);
      break;
    }
    case ModelStep::kClosePool:
      if (open_.empty()) break;
      close();
      model_.end_pool();
      break;
    case ModelStep::kReleasePool: {
      std::uint64_t& pool = pool_ids_[step.slot % kPools];
      if (!open_.empty()) break;
      ours_.release_pool(pool);
      model_.release_pool(pool);
      pool = next_pool_++;
      break;
    }
    case ModelStep::kToggleExpandable:
      if (compat_1_13_) break;
      expandable_ = !expandable_;
      ours_.set_expandable(expandable_);
      model_.set_expandable(expandable_);
      break;
    case ModelStep::kReset:
      ours_.reset_stats(step.size % 2 == 0, step.size % 3 == 0);
      model_.reset(step.size % 2 == 0, step.size % 3 == 0);
      break;
  }
  if (wrong.empty()) wrong = compare();
  return wrong;
}

std::string Pair::compare() const {
  try {
    ours_.check_invariants();
  } catch (const Error& error) {
    return error.what();
  }
  PolicyStats ours;
  ours_.report(ours);
  const PolicyStats& model = model_.stats();
  std::string wrong;
  const auto same = [&](const char* name, const Stat& a, const Stat& b) {
    if (wrong.empty() &&
        (a.current != b.current || a.peak != b.peak || a.allocated != b.allocated || a.freed != b.freed))
      wrong = fmt::format("{}: current {} peak {} allocated {} freed {}, PyTorch {} {} {} {}", name, a.current, a.peak,
                          a.allocated, a.freed, b.current, b.peak, b.allocated, b.freed);
  };
  static constexpr std::array kPoolNames{".all", ".small_pool", ".large_pool"};
  const auto pools = [&](const char* name, const PoolStats& a, const PoolStats& b) {
    for (std::size_t i = 0; i < 3; ++i) same((std::string(name) + kPoolNames[i]).c_str(), a[i], b[i]);
  };
  pools("allocation", ours.allocation, model.allocation);
  pools("allocated_bytes", ours.allocated_bytes, model.allocated_bytes);
  pools("active", ours.active, model.active);
  pools("active_bytes", ours.active_bytes, model.active_bytes);
  pools("requested_bytes", ours.requested_bytes, model.requested_bytes);
  pools("segment", ours.segment, model.segment);
  pools("reserved_bytes", ours.reserved_bytes, model.reserved_bytes);
  pools("inactive_split", ours.inactive_split, model.inactive_split);
  pools("inactive_split_bytes", ours.inactive_split_bytes, model.inactive_split_bytes);
  same("oversize_allocations", ours.oversize_allocations, model.oversize_allocations);
  same("oversize_segments", ours.oversize_segments, model.oversize_segments);
  if (!wrong.empty()) return wrong;
  if (ours.retries != model.retries || ours.synchronizations != model.synchronizations)
    return fmt::format("{} retries, {} synchronizations; PyTorch {}, {}", ours.retries, ours.synchronizations,
                       model.retries, model.synchronizations);
  if (ours_device_.used_bytes() != model_device_.used_bytes())
    return fmt::format("{} bytes of the device are used, PyTorch uses {}", ours_device_.used_bytes(),
                       model_device_.used_bytes());
  Layout layout;
  ours_.walk(layout);
  return layout.shown == model_.layout() ? std::string() : "the layouts differ";
}

}  // namespace

std::size_t size_of(std::uint32_t number) {
  const std::uint32_t kind = number % 8, rest = number / 8;
  static constexpr std::size_t kEdges[] = {1,        512,      1 * MiB,  2 * MiB,  9 * MiB,  10 * MiB,
                                           11 * MiB, 20 * MiB, 24 * MiB, 40 * MiB, 44 * MiB, 60 * MiB};
  if (kind < 3) {
    const std::size_t edge = kEdges[rest % 12];
    const std::size_t off = rest / 12 % 5;  // around it: by one, and by a block
    return off == 0   ? edge
           : off == 1 ? edge + 1
           : off == 2 ? std::max<std::size_t>(edge - 1, 1)
                      : edge + (off - 2) * 512;
  }
  const std::size_t most = std::size_t{1} << (rest % 26);
  return 1 + rest / 26 % most + (kind == 7 ? 25 * MiB : 0);
}

std::vector<ModelCase> model_cases() {
  using caching::Compat;
  std::vector<ModelCase> cases;
  const std::array<std::uint32_t, 16> list{4, 0, 8, 2, 0, 16, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2};
  const auto add = [&](const char* name, caching::Settings settings) {
    for (const std::size_t capacity : {std::size_t{0}, 64 * MiB, 130 * MiB, 301 * MiB})
      cases.push_back({fmt::format("{}, capacity {} MiB", name, capacity / MiB), settings, capacity});
  };
  for (const Compat compat : {Compat::kCurrent, Compat::k1_13}) {
    const bool old = compat == Compat::k1_13;
    add(old ? "1.13" : "current", {.compat = compat});
    add(old ? "1.13, max_split_size 24MiB" : "max_split_size 24MiB", {.compat = compat, .max_split_bytes = 24 * MiB});
    add(old ? "1.13, garbage" : "garbage",
        {.compat = compat, .garbage_collection_threshold = 0.4, .memory_fraction = 0.8});
    add(old ? "1.13, garbage and max_split_size" : "garbage and max_split_size",
        {.compat = compat, .max_split_bytes = 40 * MiB, .garbage_collection_threshold = 0.7, .memory_fraction = 0.9});
    caching::Settings rounded{.compat = compat, .max_split_bytes = 32 * MiB};
    if (old) {
      rounded.roundup_divisions.fill(4);
      rounded.roundup_bypass_bytes = 16 * MiB;
    } else {
      rounded.roundup_divisions = list;
    }
    add(old ? "1.13, divisions" : "divisions", rounded);
  }
  caching::Settings unrounded{.compat = Compat::k1_13};
  unrounded.roundup_divisions.fill(1);
  add("1.13, one division", unrounded);
  add("large segments of 40MiB",
      {.max_split_bytes = 44 * MiB, .max_non_split_rounding_bytes = 50 * MiB, .large_segment_bytes = 40 * MiB});
  add("large segments of 33MiB",
      {.max_split_bytes = 44 * MiB, .max_non_split_rounding_bytes = 33 * MiB, .large_segment_bytes = 33 * MiB});
  add("throws before the device does", {.max_split_bytes = 24 * MiB, .throws_before_device_oom = true});
  add("throws before a share of the device is exceeded", {.memory_fraction = 0.8, .throws_before_device_oom = true});
  add("expandable", {.expandable = true});
  add("expandable, throws before the device does", {.expandable = true, .throws_before_device_oom = true});
  add("expandable, short ranges", {.expandable = true, .reserve_bytes = 41 * MiB});
  add("expandable, ranges of a share", {.expandable = true, .reserve_share = 0.3});
  add("expandable, max_split_size 24MiB", {.expandable = true, .max_split_bytes = 24 * MiB});
  add("expandable, garbage", {.expandable = true, .garbage_collection_threshold = 0.4, .memory_fraction = 0.8});
  return cases;
}

std::string first_difference(const ModelCase& of, const std::vector<ModelStep>& history) {
  Pair pair(of);
  for (std::size_t i = 0; i < history.size(); ++i) {
    std::string wrong;
    try {
      wrong = pair.step(history[i]);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) return fmt::format("{}: step {}: {}", of.name, i, wrong);
  }
  return {};
}

std::string to_string(const std::vector<ModelStep>& history) {
  static constexpr const char* kNames[] = {"allocate",          "free",      "use",        "complete",
                                           "empty_cache",       "open pool", "close pool", "release pool",
                                           "toggle expandable", "reset"};
  std::string text;
  for (const ModelStep& step : history)
    text += fmt::format("  {} #{}, {} bytes, stream {}\n", kNames[step.kind], step.slot,
                        step.kind == ModelStep::kAllocate ? size_of(step.size) : step.size, step.stream);
  return text;
}

}  // namespace tenon::test
