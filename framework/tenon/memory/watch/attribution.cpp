// What is told of scopes and blocks, added up.
#include <tenon/memory/watch/attribution.h>

#include <tenon/core/scope/context.h>
#include <tenon/memory/history/pinned_hole.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::memory {

namespace {

/// Blocks that may belong to a module that did not allocate them.
bool may_have_owner(Purpose purpose) {
  return purpose == Purpose::kParameter || purpose == Purpose::kGradient || purpose == Purpose::kOptimizerState ||
         purpose == Purpose::kCast;
}

/// Those with bytes, the largest first.
template <class Sums>
std::vector<AttributedBytes> rows_of(const Sums& sums) {
  std::vector<AttributedBytes> all;
  for (const auto& [row, sum] : sums) {
    if (sum.bytes <= 0) continue;
    all.push_back(row);
    all.back().bytes = static_cast<std::size_t>(sum.bytes);
    all.back().blocks = static_cast<std::size_t>(std::max<std::int64_t>(0, sum.blocks));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &AttributedBytes::bytes);
  return all;
}

/// A step has more operators than these, and whoever waits for as many is not in the middle of something.
constexpr std::uint64_t kLongAgo = 16;

/// Of a block that backward made the engine may be the holder, until all that is added to a gradient is there.
bool may_be_idle(Purpose purpose, scopes::ContextId made_in) {
  return (purpose == Purpose::kActivation || purpose == Purpose::kOther) &&
         scopes::innermost(made_in, scopes::Kind::kBackward) == 0;
}

/// What a step makes for itself.
bool is_of_a_step(Purpose purpose) {
  return purpose == Purpose::kGradient || purpose == Purpose::kActivation || purpose == Purpose::kWorkspace;
}

}  // namespace

Attribution::Attribution(const AllocatorStack& stack, const MemoryStats& stats) : stack_(stack) {
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    const std::int64_t bytes = stats.requested_by_purpose[i].current;
    if (bytes != 0) change_locked({.purpose = static_cast<Purpose>(i)}, bytes, 0);
  }
  peak_bytes_ = live_bytes_;
  peak_ = now_;
  pending_.clear();
  scopes::add_listener(*this, scopes::kWantsScopes | scopes::kWantsMemory);
}

Attribution::~Attribution() { scopes::remove_listener(*this); }

void Attribution::add(Table& table, const Key& key, Amount amount) {
  const auto [entry, is_new] = table.try_emplace(key);
  entry->second.bytes += amount.bytes;
  entry->second.blocks += amount.blocks;
  if (entry->second.bytes == 0 && entry->second.blocks == 0) table.erase(entry);
}

void Attribution::change_locked(const Key& key, std::int64_t bytes, std::int64_t blocks) {
  add(now_, key, {bytes, blocks});
  add(pending_, key, {bytes, blocks});
  by_purpose_[static_cast<std::size_t>(key.purpose)] += bytes;
  live_bytes_ += bytes;
}

void Attribution::allocated(const scopes::MemoryCall& call) noexcept {
  if (call.stack != &stack_) return;
  std::lock_guard lock(mutex_);
  const auto purpose = static_cast<Purpose>(call.purpose);
  const Key key{.context = call.context, .purpose = purpose, .block = may_have_owner(purpose) ? ++blocks_ : 0};
  live_[call.address] = {.key = key,
                         .bytes = call.bytes,
                         .mark = marks_,
                         .name = uses_.next(call.context, purpose, call.bytes),
                         .used_at = operators_.load(std::memory_order_relaxed),
                         .used_in = call.context};
  change_locked(key, static_cast<std::int64_t>(call.bytes), 1);
  for (OpenPhase& phase : open_) {
    if (static_cast<std::size_t>(live_bytes_) <= phase.memory.peak_bytes) continue;
    phase.memory.peak_bytes = static_cast<std::size_t>(live_bytes_);
    phase.memory.peak_request_bytes = call.bytes;
    phase.context = call.context;
  }
  if (live_bytes_ <= peak_bytes_) return;
  peak_bytes_ = live_bytes_;
  peak_context_ = call.context;
  peak_request_bytes_ = call.bytes;
  peak_mark_ = mark_;
  for (const auto& [changed, amount] : pending_) add(peak_, changed, amount);
  pending_.clear();
}

void Attribution::freed(const scopes::MemoryCall& call) noexcept {
  if (call.stack != &stack_) return;
  std::lock_guard lock(mutex_);
  const auto found = live_.find(call.address);
  if (found == live_.end()) {  // it was there before
    change_locked({.purpose = static_cast<Purpose>(call.purpose)}, -static_cast<std::int64_t>(call.bytes), 0);
    return;
  }
  change_locked(found->second.key, -static_cast<std::int64_t>(found->second.bytes), -1);
  live_.erase(found);
}

void Attribution::used(const void* address) {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) return;
  found->second.used_at = operators_.load(std::memory_order_relaxed);
  found->second.used_in = scopes::current_context();
  if (found->second.mark == marks_) uses_.used(found->second.name);
}

void Attribution::entered(const scopes::Entered& scope) noexcept {
  if (scope.kind == scopes::Kind::kOperator || scope.kind == scopes::Kind::kBackward)
    operators_.fetch_add(1, std::memory_order_relaxed);
  if (scope.kind != scopes::Kind::kPhase) return;
  std::lock_guard lock(mutex_);
  const auto live = static_cast<std::size_t>(live_bytes_);
  open_.push_back({.memory = {.phase = name_of(scope.phase), .before_bytes = live, .peak_bytes = live, .mark = mark_},
                   .thread = scopes::thread_number()});
}

void Attribution::left(scopes::Kind kind, scopes::ContextId context) noexcept {
  if (kind != scopes::Kind::kPhase) return;
  std::lock_guard lock(mutex_);
  const auto last = std::find_if(open_.rbegin(), open_.rend(),
                                 [](const OpenPhase& phase) { return phase.thread == scopes::thread_number(); });
  if (last == open_.rend()) return;  // it was entered before there was anybody to be told
  OpenPhase ended = std::move(*last);
  open_.erase(std::next(last).base());
  ended.memory.after_bytes = static_cast<std::size_t>(live_bytes_);
  PhaseMemory& most = phases_[scopes::phase_of(context)];
  ended.memory.times = most.times + 1;
  if (most.times == 0 || ended.memory.peak_bytes > most.peak_bytes) {
    ended.memory.peak_at = ended.context == 0 ? "" : scopes::path_of(ended.context);
    most = std::move(ended.memory);
  }
  most.times = std::max(most.times, ended.memory.times);
}

void Attribution::marked(std::string_view name) noexcept {
  std::lock_guard lock(mutex_);
  mark_ = name;
  ++marks_;
  operators_before_step_ = operators_.load(std::memory_order_relaxed);
  uses_.begin_step();
}

void Attribution::own(const void* address, const Owner& owner, std::size_t bytes, Purpose purpose) {
  std::lock_guard lock(mutex_);
  auto found = live_.find(address);
  if (found == live_.end() && may_have_owner(purpose)) {
    // Known as bytes of its purpose until now, at the peak too if that is after it.
    const Key before{.purpose = purpose}, now{.purpose = purpose, .block = ++blocks_};
    const auto unknown = now_.find(before);
    const auto size = static_cast<std::int64_t>(bytes);
    if (bytes == 0 || unknown == now_.end() || unknown->second.bytes < size) return;
    found = live_.emplace(address, Live{.key = now, .bytes = bytes}).first;
    for (Table* table : {&now_, &peak_}) {
      const auto has = table->find(before);
      if (has == table->end() || has->second.bytes < size) continue;
      add(*table, before, {-size, 0});
      add(*table, now, {size, 1});
    }
  }
  if (found == live_.end()) return;
  Live& live = found->second;
  if (live.key.block == 0) {  // made for something else: a parameter of random numbers that a program registered
    Key own = live.key;
    own.block = ++blocks_;
    const Amount amount{static_cast<std::int64_t>(live.bytes), 1};
    const auto later = pending_.find(live.key);
    for (Table* table : {&now_, later != pending_.end() && later->second.bytes >= amount.bytes ? &pending_ : &peak_}) {
      add(*table, live.key, {-amount.bytes, -amount.blocks});
      add(*table, own, amount);
    }
    live.key = own;
  }
  owners_[live.key.block] = owner;
}

void Attribution::check(const MemoryStats& stats, std::string_view when) {
  std::lock_guard lock(mutex_);
  ++checks_;
  if (!disagreement_.empty()) return;
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    if (by_purpose_[i] == stats.requested_by_purpose[i].current) continue;
    disagreement_ = fmt::format("{}: {} bytes of {} are attributed, and the allocator has {}", when, by_purpose_[i],
                                name_of(static_cast<Purpose>(i)), stats.requested_by_purpose[i].current);
    return;
  }
  const auto compare = [&](std::string_view by, std::int64_t bytes) {
    if (bytes != stats.requested_bytes.current && disagreement_.empty())
      disagreement_ = fmt::format("{}: {} bytes are attributed{}, and the allocator has {}", when, bytes, by,
                                  stats.requested_bytes.current);
  };
  compare("", live_bytes_);
  std::map<std::string, std::int64_t> by_module, by_operator;
  for (const AttributedBytes& row : composition_locked(now_, {})) {
    by_module[row.module] += static_cast<std::int64_t>(row.bytes);
    by_operator[row.operator_name] += static_cast<std::int64_t>(row.bytes);
  }
  const auto sum = [](const std::map<std::string, std::int64_t>& rows) {
    std::int64_t bytes = 0;
    for (const auto& [name, of_one] : rows) bytes += of_one;
    return bytes;
  };
  compare(" to modules", sum(by_module));
  compare(" to operators", sum(by_operator));
}

Owner Attribution::owner_locked(const Key& key) const {
  const auto owner = owners_.find(key.block);
  if (key.block != 0 && owner != owners_.end()) return owner->second;
  const scopes::Context module = scopes::context_of(scopes::innermost(key.context, scopes::Kind::kModule));
  const bool is_root = *module.name == '\0' && *module.root == '\0';
  return {.root = is_root ? module.type : module.root, .path = module.name};
}

Attribution::Roots Attribution::roots_to_name_locked() const {
  std::set<Owner> owners;
  for (const Table* table : {&now_, &peak_})
    for (const auto& [key, amount] : *table) owners.insert(owner_locked(key));
  return scopes::roots_to_name(owners);
}

/// Without figures.
AttributedBytes Attribution::row_locked(const Key& key, const Roots& named) const {
  const Owner owner = owner_locked(key);
  return {.module = scopes::shown_name(owner, named),
          .operator_name = std::string(scopes::operator_name(key.context)),
          .phase = name_of(scopes::phase_of(key.context)),
          .purpose = key.purpose,
          .root = owner.root,
          .is_root = owner.path.empty() && !owner.root.empty()};
}

std::vector<AttributedBytes> Attribution::composition_locked(const Table& table, const Roots& named) const {
  std::map<AttributedBytes, Amount> sums;
  for (const auto& [key, amount] : table) {
    Amount& sum = sums[row_locked(key, named)];
    sum.bytes += amount.bytes;
    sum.blocks += amount.blocks;
  }
  return rows_of(sums);
}

std::vector<AttributedBytes> Attribution::live_with_sites_locked(const SiteOf& site_of, const Roots& named) const {
  std::map<AttributedBytes, Amount> sums;
  for (const auto& [key, amount] : now_) {
    Amount& sum = sums[row_locked(key, named)];
    sum.bytes += amount.bytes;
    sum.blocks += amount.blocks;
  }
  for (const auto& [address, live] : live_) {
    AttributedBytes row = row_locked(live.key, named);
    Amount& without = sums[row];
    row.site = site_of(address);
    Amount& with = sums[row];
    without.bytes -= static_cast<std::int64_t>(live.bytes), --without.blocks;
    with.bytes += static_cast<std::int64_t>(live.bytes), ++with.blocks;
  }
  return rows_of(sums);
}

AttributionReport Attribution::report() const {
  std::lock_guard lock(mutex_);
  const Roots named = roots_to_name_locked();
  AttributionReport report{.live = composition_locked(now_, named),
                           .peak = composition_locked(peak_, named),
                           .live_bytes = static_cast<std::size_t>(live_bytes_),
                           .peak_bytes = static_cast<std::size_t>(peak_bytes_),
                           .peak_mark = peak_mark_,
                           .peak_at = peak_context_ == 0 ? "" : scopes::path_of(peak_context_),
                           .peak_request_bytes = peak_request_bytes_,
                           .phases = {},
                           .checks = checks_,
                           .disagreement = disagreement_};
  for (const auto& [phase, memory] : phases_) report.phases.push_back(memory);
  Table held_over;
  for (const auto& [address, live] : live_)
    if (live.mark > 0 && live.mark < marks_ && is_of_a_step(live.key.purpose))
      add(held_over, live.key, {static_cast<std::int64_t>(live.bytes), 1});
  report.held_over = composition_locked(held_over, named);
  return report;
}

std::vector<IdleBytes> Attribution::idle_locked(const SiteOf& site_of, const KeptBlocks& kept,
                                                const Roots& named) const {
  const std::uint64_t now = operators_.load(std::memory_order_relaxed), step = now - operators_before_step_;
  std::map<std::pair<AttributedBytes, std::string>, IdleBytes> rows;
  for (const auto& [address, live] : live_) {
    const std::uint64_t ago = now - live.used_at;
    if (live.mark != marks_ || ago < kLongAgo || kept.contains(address)) continue;
    if (!may_be_idle(live.key.purpose, live.key.context)) continue;
    const auto to_come = uses_.uses_to_come(live.name);
    if (to_come ? *to_come > 0 : 4 * ago < step) continue;  // in a first step nobody knows: it may be used again
    AttributedBytes whose = row_locked(live.key, named);
    if (site_of) whose.site = site_of(address);
    const std::string last_use = scopes::path_of(live.used_in);
    IdleBytes& row = rows[{whose, last_use}];
    row.operators_ago = row.whose.blocks == 0 ? ago : std::min(row.operators_ago, ago);
    row.is_known = to_come.has_value() && (row.whose.blocks == 0 || row.is_known);
    row.last_use = last_use;
    const std::size_t bytes = row.whose.bytes + live.bytes, blocks = row.whose.blocks + 1;
    row.whose = std::move(whose);
    row.whose.bytes = bytes;
    row.whose.blocks = blocks;
  }
  std::vector<IdleBytes> idle;
  for (auto& [key, row] : rows) idle.push_back(std::move(row));
  std::ranges::stable_sort(idle, std::ranges::greater(), [](const IdleBytes& row) { return row.whose.bytes; });
  return idle;
}

AttributionReport Attribution::report_at_failure(const std::vector<Segment>& segments, std::size_t failed_bytes,
                                                 const SiteOf& site_of, const KeptBlocks* kept) const {
  AttributionReport report = this->report();
  const PinnedHole hole = pinned_hole(segments, failed_bytes);
  report.failed_bytes = failed_bytes;
  report.hole_bytes = hole.bytes;
  report.hole_free_bytes = hole.free_bytes;
  for (const Segment& segment : segments)
    for (const BlockInfo& block : segment.blocks)
      if (block.state == BlockState::kAwaitingStream) report.awaiting_bytes += block.bytes;
  std::lock_guard lock(mutex_);
  const Roots named = roots_to_name_locked();
  if (site_of) report.live = live_with_sites_locked(site_of, named);
  report.are_uses_told = kept != nullptr;
  report.step_operators = operators_.load(std::memory_order_relaxed) - operators_before_step_;
  if (kept != nullptr) report.idle = idle_locked(site_of, *kept, named);
  for (const BlockInfo& block : hole.pins) {
    // A block that was handed out in part, for its alignment, is known by another address.
    const auto found = live_.find(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(block.address)));
    Pin pin{.bytes = block.bytes, .whose = {}};
    if (found != live_.end()) {
      pin.whose = row_locked(found->second.key, named);
      pin.whose.bytes = found->second.bytes;
      pin.whose.blocks = 1;
      if (site_of) pin.whose.site = site_of(found->first);
    }
    report.pins.push_back(std::move(pin));
  }
  std::ranges::stable_sort(report.pins, std::ranges::greater(), &Pin::bytes);
  return report;
}

}  // namespace tenon::memory
