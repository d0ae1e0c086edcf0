// Section numbers are those of the description of PyTorch's allocator that the worked examples come from too.
// Long: one class, in the order of the description's sections.
#include "reference_model.h"

#include <tenon/core/error.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tenon::test {

namespace {

constexpr std::size_t kSmall = 1 * MiB;

void up(PoolStats& stats, bool large, std::size_t amount) {
  stats[0].increase(static_cast<std::int64_t>(amount));
  stats[large ? 2 : 1].increase(static_cast<std::int64_t>(amount));
}

void down(PoolStats& stats, bool large, std::size_t amount) {
  stats[0].decrease(static_cast<std::int64_t>(amount));
  stats[large ? 2 : 1].decrease(static_cast<std::int64_t>(amount));
}

std::size_t up_to_multiple(std::size_t value, std::size_t quantum) { return (value + quantum - 1) / quantum * quantum; }

std::size_t power_of_two_below(std::size_t value) {
  std::size_t power = 1;
  while (power <= value / 2) power *= 2;
  return power;
}

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

bool usable(BlockState state) { return state == BlockState::kFree || state == BlockState::kUnmapped; }

}  // namespace

ReferenceModel::ReferenceModel(MemorySource& source, const Settings& settings)
    : source_(source), settings_(settings), compat_1_13_(settings.compat == caching::Compat::k1_13) {
  stats_.has_pools = true;
  if (settings_.max_split_bytes != caching::kUnlimited)
    stats_.max_split_size = static_cast<std::int64_t>(settings_.max_split_bytes);
  const std::size_t total = source_.traits().capacity_bytes;
  const double part = settings_.memory_fraction * static_cast<double>(total);
  if (total != 0 && settings_.memory_fraction < 1)
    limit_ = static_cast<std::size_t>(compat_1_13_ ? std::trunc(part) : std::round(part));
  address_space_ = total == 0 ? 9 * TiB : total + total / 8;
  if (settings_.reserve_bytes != 0) address_space_ = std::min(address_space_, settings_.reserve_bytes);
  if (settings_.reserve_share != 0) {
    const double share = settings_.reserve_share * static_cast<double>(total == 0 ? 8 * TiB : total);
    if (share < static_cast<double>(address_space_)) address_space_ = static_cast<std::size_t>(share);
  }
  if (settings_.throws_before_device_oom && total != 0) device_share_ = static_cast<std::size_t>(std::trunc(part));
}

// 2.1, 2.2
std::size_t ReferenceModel::rounded(std::size_t requested) const {
  if (requested < 512) return 512;
  std::size_t interval = 0;
  for (std::size_t end = 2 * MiB; requested >= end && interval < 15; end *= 2) ++interval;
  const std::size_t divisions = settings_.roundup_divisions[interval];
  const bool divides = compat_1_13_ ? divisions > 0 && requested <= settings_.roundup_bypass_bytes : divisions > 1;
  if (!divides || requested <= 512 * divisions) return up_to_multiple(requested, 512);
  if (divisions <= 1) return requested;  // only in 1.13
  const std::size_t floor = power_of_two_below(requested);
  if (floor == requested) return requested;
  const std::size_t step = floor / power_of_two_below(divisions);
  return step == 0 ? 2 * floor : up_to_multiple(requested, step);
}

// 2.4
std::size_t ReferenceModel::segment_bytes(std::size_t bytes) const {
  if (bytes <= kSmall) return 2 * MiB;
  return bytes < 10 * MiB ? settings_.large_segment_bytes : up_to_multiple(bytes, 2 * MiB);
}

bool ReferenceModel::has_left(At block) const {
  return block != blocks_.begin() && std::prev(block)->second.segment == block->second.segment;
}

bool ReferenceModel::has_right(At block) const {
  const auto next = std::next(block);
  return next != blocks_.end() && next->second.segment == block->second.segment;
}

// 3.1
std::vector<ReferenceModel::At> ReferenceModel::free_blocks(std::uint64_t pool, bool large) {
  std::vector<At> found;
  for (At block = blocks_.begin(); block != blocks_.end(); ++block) {
    const Segment& segment = segment_of(block);
    if (block->second.state == BlockState::kFree && segment.pool == pool && segment.large == large)
      found.push_back(block);
  }
  const auto key = [&](At block) {
    const Segment& segment = segment_of(block);
    return std::tuple(segment.stream, block->second.bytes, compat_1_13_ ? 0 : segment.registration, block->first);
  };
  std::sort(found.begin(), found.end(), [&](At a, At b) { return key(a) < key(b); });
  return found;
}

// 3.2
std::optional<ReferenceModel::At> ReferenceModel::find(const Wanted& wanted) {
  std::vector<At> free = free_blocks(wanted.pool, wanted.large);
  std::erase_if(
      free, [&](At block) { return segment_of(block).stream != wanted.stream || block->second.bytes < wanted.bytes; });
  if (free.empty()) return std::nullopt;
  std::size_t i = 0;
  const auto is_expandable = [&](std::size_t k) { return segment_of(free[k]).expandable; };
  if (is_expandable(0) && wanted.expandable) {
    const auto extended = [&](std::size_t k) {
      const At block = free[k];
      const bool grows = has_right(block) && std::next(block)->second.state == BlockState::kUnmapped;
      return block->second.bytes + (grows ? std::next(block)->second.bytes : 0);
    };
    while (is_expandable(i) && i + 1 < free.size() && extended(i + 1) < extended(i)) ++i;
  } else if (is_expandable(0)) {
    while (i < free.size() && is_expandable(i)) ++i;
    if (i == free.size()) return std::nullopt;
  }
  const std::size_t bytes = free[i]->second.bytes;
  const std::size_t most = settings_.max_split_bytes;
  if (wanted.bytes < most && bytes >= most) return std::nullopt;
  if (wanted.bytes >= most && bytes >= wanted.bytes + settings_.max_non_split_rounding_bytes) return std::nullopt;
  return free[i];
}

std::optional<ReferenceModel::Place> ReferenceModel::allocate(std::size_t requested, std::uint64_t stream) try {
  return allocate_or_throw(requested, stream);
} catch (const OutOfMemory&) {
  return std::nullopt;
}

// 4
std::optional<ReferenceModel::Place> ReferenceModel::allocate_or_throw(std::size_t requested, std::uint64_t stream) {
  if (requested >= std::size_t{1} << 60) return std::nullopt;
  const bool captures = compat_1_13_ && !scopes_.empty();
  if (!captures) process_events();
  Wanted wanted{.pool = scopes_.empty() ? 0 : scopes_.back(),
                .stream = stream,
                .large = false,
                .bytes = rounded(requested),
                .expandable = settings_.expandable};
  wanted.large = wanted.bytes > kSmall;
  const bool collects = limit_ != caching::kUnlimited && settings_.garbage_collection_threshold > 0;
  if (collects && wanted.large && wanted.pool == 0) ++lookups_;
  if (const auto hit = find(wanted)) return hand_out(*hit, wanted, requested);
  if (collects) collect_garbage();
  std::optional<At> block = from_device(wanted);
  if (!block && wanted.pool == 0) {
    if (const auto lent = from_pools_for_oom(wanted)) {
      wanted.expandable = false;
      return hand_out(*lent, wanted, requested);
    }
  }
  if (!block && release_available(wanted)) block = from_device(wanted);
  if (!block && !captures) {
    release_all(0);
    ++stats_.retries;
    block = from_device(wanted);
  }
  if (!block) return std::nullopt;
  return hand_out(*block, wanted, requested);
}

std::optional<ReferenceModel::At> ReferenceModel::from_pools_for_oom(Wanted wanted) {
  wanted.expandable = false;
  for (const auto& [pool, options] : pools_) {
    wanted.pool = pool;
    if (!options.use_on_oom || released_.contains(pool)) continue;
    if (const auto found = find(wanted)) return found;
  }
  return std::nullopt;
}

// 5
std::optional<ReferenceModel::At> ReferenceModel::from_device(const Wanted& wanted) {
  const std::size_t bytes = segment_bytes(wanted.bytes);
  if (limit_ != caching::kUnlimited && total_ + bytes > limit_) return std::nullopt;
  if (total_ + bytes > device_share_) throw OutOfMemory({.requested_bytes = wanted.bytes});
  if (wanted.expandable) return expand(wanted);
  void* const address = source_.acquire(bytes);
  if (address == nullptr) return std::nullopt;
  const int id = next_segment_++;
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  segments_[id] = {.pool = wanted.pool,
                   .stream = wanted.stream,
                   .registration = next_registration_++,
                   .address = start,
                   .bytes = bytes,
                   .large = wanted.large};
  total_ += bytes;
  up(stats_.segment, wanted.large, 1);
  up(stats_.reserved_bytes, wanted.large, bytes);
  if (bytes >= settings_.max_split_bytes) stats_.oversize_segments.increase(1);
  return blocks_.emplace(start, ModelBlock{.segment = id, .bytes = bytes}).first;
}

// 2.5, 4.2
ReferenceModel::Place ReferenceModel::hand_out(At block, const Wanted& wanted, std::size_t requested) {
  const Segment& segment = segment_of(block);
  const std::size_t rest = block->second.bytes - wanted.bytes;
  const bool was_split = !is_whole(block);
  bool splits = false;
  if (segment.pool != 0 && pools_.at(segment.pool).no_split)
    splits = false;
  else if (!segment.large || wanted.expandable)
    splits = rest >= 512;
  else
    splits = wanted.bytes < settings_.max_split_bytes && rest > 1 * MiB;
  if (splits) into_free_set(cut(block, wanted.bytes));
  if (!segment.expandable) {
    if (splits && was_split) {
      down(stats_.inactive_split_bytes, segment.large, wanted.bytes);
    } else if (splits) {
      up(stats_.inactive_split, segment.large, 1);
      up(stats_.inactive_split_bytes, segment.large, rest);
    } else if (was_split) {
      down(stats_.inactive_split, segment.large, 1);
      down(stats_.inactive_split_bytes, segment.large, block->second.bytes);
    }
  }
  block->second.state = BlockState::kActive;
  block->second.requested = requested;
  const std::size_t bytes = block->second.bytes;
  up(stats_.allocation, segment.large, 1);
  up(stats_.allocated_bytes, segment.large, bytes);
  up(stats_.active, segment.large, 1);
  up(stats_.active_bytes, segment.large, bytes);
  up(stats_.requested_bytes, segment.large, requested);
  if (bytes >= settings_.max_split_bytes) stats_.oversize_allocations.increase(1);
  return {block->first, bytes};
}

// 6.1
void ReferenceModel::free(std::uintptr_t address) {
  const At block = blocks_.find(address);
  ModelBlock& freed = block->second;
  const bool large = segment_of(block).large;
  down(stats_.allocation, large, 1);
  down(stats_.allocated_bytes, large, freed.bytes);
  if (freed.bytes >= settings_.max_split_bytes) stats_.oversize_allocations.decrease(1);
  if (freed.uses.empty()) return finish_free(block);
  freed.state = BlockState::kAwaitingStream;
  for (const std::uint64_t stream : freed.uses) marks_[stream].push_back({source_.mark({stream}), address});
  freed.marks = static_cast<int>(freed.uses.size());
  freed.uses.clear();
}

// 6.2
void ReferenceModel::use(std::uintptr_t address, std::uint64_t stream) {
  const At block = blocks_.find(address);
  if (stream != segment_of(block).stream) block->second.uses.insert(stream);
}

// 6.3
void ReferenceModel::finish_free(At block) {
  const Segment& segment = segment_of(block);
  const std::size_t bytes = block->second.bytes, requested = block->second.requested;
  std::int64_t count = 0, split_bytes = 0;
  block->second.state = BlockState::kFree;
  block->second.requested = 0;
  if (has_left(block) && std::prev(block)->second.state == BlockState::kFree) {
    --count, split_bytes -= static_cast<std::int64_t>(std::prev(block)->second.bytes);
    block = std::prev(block);
    absorb_right(block);
  }
  if (has_right(block) && std::next(block)->second.state == BlockState::kFree) {
    --count, split_bytes -= static_cast<std::int64_t>(std::next(block)->second.bytes);
    absorb_right(block);
  }
  into_free_set(block);
  if (!segment.expandable) {
    if (!is_whole(block)) ++count, split_bytes += static_cast<std::int64_t>(block->second.bytes);
    const auto change = [&](PoolStats& stats, std::int64_t by) {
      if (by > 0) up(stats, segment.large, static_cast<std::size_t>(by));
      if (by < 0) down(stats, segment.large, static_cast<std::size_t>(-by));
    };
    change(stats_.inactive_split, count);
    change(stats_.inactive_split_bytes, split_bytes);
  }
  down(stats_.active, segment.large, 1);
  down(stats_.active_bytes, segment.large, bytes);
  down(stats_.requested_bytes, segment.large, requested);
}

void ReferenceModel::into_free_set(At block) {
  block->second.state = BlockState::kFree;
  block->second.born = lookups_;
}

ReferenceModel::At ReferenceModel::cut(At block, std::size_t bytes) {
  ModelBlock rest{.segment = block->second.segment, .bytes = block->second.bytes - bytes, .state = block->second.state};
  block->second.bytes = bytes;
  return blocks_.emplace(block->first + bytes, rest).first;
}

void ReferenceModel::absorb_right(At block) {
  const At right = std::next(block);
  block->second.bytes += right->second.bytes;
  blocks_.erase(right);
}

// 6.4
void ReferenceModel::process_events() {
  std::vector<std::uintptr_t> done;
  for (auto& [stream, marks] : marks_) {
    while (!marks.empty() && source_.reached(marks.front().ticket)) {
      if (--blocks_.at(marks.front().address).marks == 0) done.push_back(marks.front().address);
      marks.pop_front();
    }
  }
  for (const std::uintptr_t address : done) finish_free(blocks_.find(address));
}

// 6.5
void ReferenceModel::synchronize(std::uint64_t only_pool) {
  ++stats_.synchronizations;
  std::vector<std::uintptr_t> done;
  for (auto& [stream, marks] : marks_) {
    std::erase_if(marks, [&](const Mark& mark) {
      const At block = blocks_.find(mark.address);
      if (only_pool != 0 && segment_of(block).pool != only_pool) return false;
      source_.wait(mark.ticket);
      if (--block->second.marks == 0) done.push_back(mark.address);
      return true;
    });
  }
  for (const std::uintptr_t address : done) finish_free(blocks_.find(address));
}

// 7.1
void ReferenceModel::release(At block) {
  const Segment segment = segment_of(block);
  source_.release(at(segment.address), segment.bytes);
  total_ -= segment.bytes;
  down(stats_.segment, segment.large, 1);
  down(stats_.reserved_bytes, segment.large, segment.bytes);
  if (segment.bytes >= settings_.max_split_bytes) stats_.oversize_segments.decrease(1);
  segments_.erase(block->second.segment);
  blocks_.erase(block);
}

// 7.2
void ReferenceModel::release_all(std::uint64_t only_pool) {
  if (only_pool == 0) {
    synchronize(0);
    release_free(0, true);
    release_free(0, false);
  }
  for (auto pool = pools_.begin(); pool != pools_.end();) {
    const std::uint64_t id = pool->first;
    const bool open = !released_.contains(id) || (only_pool != 0 && id != only_pool);
    ++pool;
    if (open) continue;
    if (only_pool != 0) synchronize(id);
    release_free(id, false);
    release_free(id, true);
    const bool gone = std::none_of(segments_.begin(), segments_.end(),
                                   [&](const auto& segment) { return segment.second.pool == id; });
    if (gone) pools_.erase(id), released_.erase(id);
  }
}

void ReferenceModel::release_free(std::uint64_t pool, bool large) {
  std::vector<std::uintptr_t> whole, expandable;
  for (const At block : free_blocks(pool, large)) {
    if (segment_of(block).expandable)
      expandable.push_back(block->first);
    else if (is_whole(block))
      whole.push_back(block->first);
  }
  if (!whole.empty()) source_.synchronize();  // as cudaFree does
  for (const std::uintptr_t address : whole) release(blocks_.find(address));
  for (const std::uintptr_t address : expandable) unmap(blocks_.find(address));
}

void ReferenceModel::empty_cache() { release_all(0); }

// 7.3
bool ReferenceModel::release_available(const Wanted& wanted) {
  const std::size_t most = settings_.max_split_bytes;
  if (most == caching::kUnlimited) return false;
  const std::size_t key = std::max(wanted.bytes, most);
  std::vector<At> own = free_blocks(wanted.pool, wanted.large);
  std::erase_if(own, [&](At block) { return segment_of(block).stream != wanted.stream; });
  const auto fit = std::find_if(own.begin(), own.end(), [&](At block) { return block->second.bytes >= key; });
  const auto take = [&](At block) {
    source_.wait(source_.mark({wanted.stream}));
    release(block);
  };
  if (fit != own.end() && !segment_of(*fit).expandable && is_whole(*fit)) {
    take(*fit);
    return true;
  }
  std::size_t released = 0;
  for (auto it = fit; it != own.begin() && released < key;) {
    --it;
    const std::size_t bytes = (*it)->second.bytes;
    if (bytes < most) break;
    if (segment_of(*it).expandable || !is_whole(*it)) continue;
    take(*it);
    released += bytes;
  }
  return released >= key;
}

// 7.4
void ReferenceModel::collect_garbage() {
  const auto allowed = static_cast<std::size_t>(settings_.garbage_collection_threshold * static_cast<double>(limit_));
  if (total_ <= allowed) return;
  const std::size_t target = total_ - allowed;
  std::size_t reclaimed = 0;
  for (bool freed = true; reclaimed < target && freed;) {
    freed = false;
    std::vector<At> candidates = free_blocks(0, true);
    std::erase_if(candidates, [&](At block) { return !is_whole(block) || segment_of(block).expandable; });
    double ages = 0;
    for (const At block : candidates) ages += static_cast<double>(lookups_ - block->second.born);
    const double average = ages / static_cast<double>(candidates.size());
    for (const At block : candidates) {
      if (static_cast<double>(lookups_ - block->second.born) < average) continue;
      source_.wait(source_.mark({segment_of(block).stream}));
      reclaimed += block->second.bytes;
      release(block);
      freed = true;
    }
  }
}

// 9.4
std::optional<ReferenceModel::At> ReferenceModel::expand(const Wanted& wanted) {
  std::optional<At> block = find_space(wanted);
  if (block && (*block)->second.state == BlockState::kUnmapped)
    block = map(*block, std::min((*block)->second.bytes, wanted.bytes));
  while (block && (*block)->second.bytes < wanted.bytes) {
    const At right = std::next(*block);
    block = map(right, std::min(wanted.bytes - (*block)->second.bytes, right->second.bytes));
  }
  return block;
}

// 9.2
std::optional<ReferenceModel::At> ReferenceModel::find_space(const Wanted& wanted) {
  for (At hole = blocks_.begin(); hole != blocks_.end(); ++hole) {
    const Segment& segment = segment_of(hole);
    if (hole->second.state != BlockState::kUnmapped || segment.pool != wanted.pool || segment.stream != wanted.stream ||
        segment.large != wanted.large)
      continue;
    const At start = has_left(hole) && usable(std::prev(hole)->second.state) ? std::prev(hole) : hole;
    std::size_t room = 0;
    for (At block = start; usable(block->second.state); ++block) {
      room += block->second.bytes;
      if (room >= wanted.bytes) return start;
      if (!has_right(block)) break;
    }
  }
  // Odd mebibytes are an error of the driver in PyTorch; here only switching to and fro leads there.
  const std::size_t page = wanted.large ? up_to_multiple(settings_.large_segment_bytes, 2 * MiB) : 2 * MiB;
  const std::size_t space = up_to_multiple(address_space_, page);
  const auto address = reinterpret_cast<std::uintptr_t>(source_.reserve(space));
  if (wanted.bytes > space) {
    source_.unreserve(at(address), space);
    return std::nullopt;
  }
  const int id = next_segment_++;
  segments_[id] = {.pool = wanted.pool,
                   .stream = wanted.stream,
                   .registration = next_registration_++,
                   .address = address,
                   .bytes = space,
                   .page = page,
                   .large = wanted.large,
                   .expandable = true};
  return blocks_.emplace(address, ModelBlock{.segment = id, .bytes = space, .state = BlockState::kUnmapped}).first;
}

// 9.3
std::optional<ReferenceModel::At> ReferenceModel::map(At block, std::size_t bytes) {
  Segment& segment = segment_of(block);
  const std::size_t mapped = up_to_multiple(bytes, segment.page);
  std::map<std::uintptr_t, std::uint64_t> created;
  for (std::uintptr_t page = block->first; page < block->first + mapped; page += segment.page) {
    const Physical physical = source_.create(segment.page);
    if (physical) {
      created[page] = physical.value;
      continue;
    }
    for (const auto& [undone, value] : created) source_.destroy({value}, segment.page);
    return std::nullopt;
  }
  segment.pages.merge(created);
  if (block->second.bytes > mapped) cut(block, mapped);
  if (has_left(block) && std::prev(block)->second.state == BlockState::kFree) {
    block = std::prev(block);
    absorb_right(block);
  }
  block->second.state = BlockState::kFree;
  if (has_right(block) && std::next(block)->second.state == BlockState::kFree) absorb_right(block);
  into_free_set(block);
  total_ += mapped;
  up(stats_.reserved_bytes, segment.large, mapped);
  return block;
}

// 9.6
void ReferenceModel::unmap(At block) {
  Segment& segment = segment_of(block);
  const std::uintptr_t start = segment.address;
  const std::uintptr_t begin = start + up_to_multiple(block->first - start, segment.page);
  const std::uintptr_t end = start + (block->first + block->second.bytes - start) / segment.page * segment.page;
  if (begin >= end) return;
  source_.wait(source_.mark({segment.stream}));
  for (std::uintptr_t page = begin; page < end; page += segment.page) {
    source_.destroy({segment.pages.at(page)}, segment.page);
    segment.pages.erase(page);
  }
  if (begin > block->first) {
    const At middle = cut(block, begin - block->first);
    into_free_set(block);
    block = middle;
  }
  if (block->second.bytes > end - begin) into_free_set(cut(block, end - begin));
  block->second.state = BlockState::kUnmapped;
  if (has_left(block) && std::prev(block)->second.state == BlockState::kUnmapped) {
    block = std::prev(block);
    absorb_right(block);
  }
  if (has_right(block) && std::next(block)->second.state == BlockState::kUnmapped) absorb_right(block);
  total_ -= end - begin;
  down(stats_.reserved_bytes, segment.large, end - begin);
  if (!is_whole(block)) return;
  source_.unreserve(at(segment.address), segment.bytes);
  segments_.erase(block->second.segment);
  blocks_.erase(block);
}

void ReferenceModel::begin_pool(std::uint64_t pool, PoolOptions options) {
  pools_[pool] = options;
  scopes_.push_back(pool);
}

void ReferenceModel::release_pool(std::uint64_t pool) {
  if (!pools_.contains(pool)) return;
  pools_[pool] = {};
  released_.insert(pool);
  release_all(pool);
}

void ReferenceModel::reset(bool peaks, bool accumulated) {
  const auto reset = [&](Stat& stat) {
    if (peaks) stat.reset_peak();
    if (accumulated) stat.reset_accumulated();
  };
  for (PoolStats* stats :
       {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split, &stats_.allocated_bytes,
        &stats_.reserved_bytes, &stats_.active_bytes, &stats_.inactive_split_bytes, &stats_.requested_bytes})
    for (Stat& stat : *stats) reset(stat);
  reset(stats_.oversize_allocations);
  reset(stats_.oversize_segments);
  if (accumulated) stats_.retries = stats_.synchronizations = 0;
}

std::vector<ReferenceModel::Shown> ReferenceModel::layout() const {
  std::vector<Shown> shown;
  for (const auto& [address, block] : blocks_) shown.push_back({address, block.bytes, block.state});
  return shown;
}

}  // namespace tenon::test
