// Section numbers are those of the description of PyTorch's allocator that the worked examples come from too.
#include "reference_model.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tenon::testing {

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
    : source_(source), settings_(settings), old_(settings.compat == caching::Compat::k1_13) {
  stats_.has_pools = true;
  if (settings_.max_split_bytes != caching::kUnlimited)
    stats_.max_split_size = static_cast<std::int64_t>(settings_.max_split_bytes);
  const std::size_t total = source_.traits().capacity_bytes;
  const double part = settings_.memory_fraction * static_cast<double>(total);
  if (total != 0 && settings_.memory_fraction < 1)
    limit_ = static_cast<std::size_t>(old_ ? std::trunc(part) : std::round(part));
  address_space_ = total == 0 ? 9 * TiB : total + total / 8;
}

// 2.1, 2.2
std::size_t ReferenceModel::rounded(std::size_t requested) const {
  if (requested < 512) return 512;
  std::size_t interval = 0;
  for (std::size_t end = 2 * MiB; requested >= end && interval < 15; end *= 2) ++interval;
  const std::size_t divisions = settings_.roundup_divisions[interval];
  const bool divides = old_ ? divisions > 0 && requested <= settings_.roundup_bypass_bytes : divisions > 1;
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

bool ReferenceModel::has_left(At piece) const {
  return piece != pieces_.begin() && std::prev(piece)->second.segment == piece->second.segment;
}

bool ReferenceModel::has_right(At piece) const {
  const auto next = std::next(piece);
  return next != pieces_.end() && next->second.segment == piece->second.segment;
}

// 3.1
std::vector<ReferenceModel::At> ReferenceModel::free_pieces(std::uint64_t pool, bool large) {
  std::vector<At> found;
  for (At piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
    const Segment& segment = segment_of(piece);
    if (piece->second.state == BlockState::kFree && segment.pool == pool && segment.large == large)
      found.push_back(piece);
  }
  const auto key = [&](At piece) {
    const Segment& segment = segment_of(piece);
    return std::tuple(segment.stream, piece->second.bytes, old_ ? 0 : segment.registration, piece->first);
  };
  std::sort(found.begin(), found.end(), [&](At a, At b) { return key(a) < key(b); });
  return found;
}

// 3.2
std::optional<ReferenceModel::At> ReferenceModel::find(const Wanted& wanted) {
  std::vector<At> free = free_pieces(wanted.pool, wanted.large);
  std::erase_if(
      free, [&](At piece) { return segment_of(piece).stream != wanted.stream || piece->second.bytes < wanted.bytes; });
  if (free.empty()) return std::nullopt;
  std::size_t i = 0;
  const auto is_expandable = [&](std::size_t k) { return segment_of(free[k]).expandable; };
  if (is_expandable(0) && wanted.expandable) {
    const auto extended = [&](std::size_t k) {
      const At piece = free[k];
      const bool grows = has_right(piece) && std::next(piece)->second.state == BlockState::kUnmapped;
      return piece->second.bytes + (grows ? std::next(piece)->second.bytes : 0);
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

// 4
std::optional<ReferenceModel::Place> ReferenceModel::allocate(std::size_t requested, std::uint64_t stream) {
  if (requested >= std::size_t{1} << 60) return std::nullopt;
  const bool captures = old_ && !scopes_.empty();
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
  std::optional<At> piece = from_device(wanted);
  if (!piece && wanted.pool == 0) {
    if (const auto lent = from_pools_for_oom(wanted)) {
      wanted.expandable = false;
      return hand_out(*lent, wanted, requested);
    }
  }
  if (!piece && release_available(wanted)) piece = from_device(wanted);
  if (!piece && !captures) {
    release_all(0);
    ++stats_.retries;
    piece = from_device(wanted);
  }
  if (!piece) return std::nullopt;
  return hand_out(*piece, wanted, requested);
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
  return pieces_.emplace(start, Piece{.segment = id, .bytes = bytes}).first;
}

// 2.5, 4.2
ReferenceModel::Place ReferenceModel::hand_out(At piece, const Wanted& wanted, std::size_t requested) {
  const Segment& segment = segment_of(piece);
  const std::size_t rest = piece->second.bytes - wanted.bytes;
  const bool was_split = !is_whole(piece);
  bool splits = false;
  if (segment.pool != 0 && pools_.at(segment.pool).no_split)
    splits = false;
  else if (!segment.large || wanted.expandable)
    splits = rest >= 512;
  else
    splits = wanted.bytes < settings_.max_split_bytes && rest > 1 * MiB;
  if (splits) into_free_set(cut(piece, wanted.bytes));
  if (!segment.expandable) {
    if (splits && was_split) {
      down(stats_.inactive_split_bytes, segment.large, wanted.bytes);
    } else if (splits) {
      up(stats_.inactive_split, segment.large, 1);
      up(stats_.inactive_split_bytes, segment.large, rest);
    } else if (was_split) {
      down(stats_.inactive_split, segment.large, 1);
      down(stats_.inactive_split_bytes, segment.large, piece->second.bytes);
    }
  }
  piece->second.state = BlockState::kActive;
  piece->second.requested = requested;
  const std::size_t bytes = piece->second.bytes;
  up(stats_.allocation, segment.large, 1);
  up(stats_.allocated_bytes, segment.large, bytes);
  up(stats_.active, segment.large, 1);
  up(stats_.active_bytes, segment.large, bytes);
  up(stats_.requested_bytes, segment.large, requested);
  if (bytes >= settings_.max_split_bytes) stats_.oversize_allocations.increase(1);
  return {piece->first, bytes};
}

// 6.1
void ReferenceModel::free(std::uintptr_t address) {
  const At piece = pieces_.find(address);
  Piece& freed = piece->second;
  const bool large = segment_of(piece).large;
  down(stats_.allocation, large, 1);
  down(stats_.allocated_bytes, large, freed.bytes);
  if (freed.bytes >= settings_.max_split_bytes) stats_.oversize_allocations.decrease(1);
  if (freed.uses.empty()) return finish_free(piece);
  freed.state = BlockState::kAwaitingStream;
  for (const std::uint64_t stream : freed.uses) marks_[stream].push_back({source_.mark({stream}), address});
  freed.marks = static_cast<int>(freed.uses.size());
  freed.uses.clear();
}

// 6.2
void ReferenceModel::use(std::uintptr_t address, std::uint64_t stream) {
  const At piece = pieces_.find(address);
  if (stream != segment_of(piece).stream) piece->second.uses.insert(stream);
}

// 6.3
void ReferenceModel::finish_free(At piece) {
  const Segment& segment = segment_of(piece);
  const std::size_t bytes = piece->second.bytes, requested = piece->second.requested;
  std::int64_t count = 0, split_bytes = 0;
  piece->second.state = BlockState::kFree;
  piece->second.requested = 0;
  if (has_left(piece) && std::prev(piece)->second.state == BlockState::kFree) {
    --count, split_bytes -= static_cast<std::int64_t>(std::prev(piece)->second.bytes);
    piece = std::prev(piece);
    absorb_right(piece);
  }
  if (has_right(piece) && std::next(piece)->second.state == BlockState::kFree) {
    --count, split_bytes -= static_cast<std::int64_t>(std::next(piece)->second.bytes);
    absorb_right(piece);
  }
  into_free_set(piece);
  if (!segment.expandable) {
    if (!is_whole(piece)) ++count, split_bytes += static_cast<std::int64_t>(piece->second.bytes);
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

void ReferenceModel::into_free_set(At piece) {
  piece->second.state = BlockState::kFree;
  piece->second.born = lookups_;
}

ReferenceModel::At ReferenceModel::cut(At piece, std::size_t bytes) {
  Piece rest{.segment = piece->second.segment, .bytes = piece->second.bytes - bytes, .state = piece->second.state};
  piece->second.bytes = bytes;
  return pieces_.emplace(piece->first + bytes, rest).first;
}

void ReferenceModel::absorb_right(At piece) {
  const At right = std::next(piece);
  piece->second.bytes += right->second.bytes;
  pieces_.erase(right);
}

// 6.4
void ReferenceModel::process_events() {
  std::vector<std::uintptr_t> done;
  for (auto& [stream, marks] : marks_) {
    while (!marks.empty() && source_.reached(marks.front().ticket)) {
      if (--pieces_.at(marks.front().address).marks == 0) done.push_back(marks.front().address);
      marks.pop_front();
    }
  }
  for (const std::uintptr_t address : done) finish_free(pieces_.find(address));
}

// 6.5
void ReferenceModel::synchronize(std::uint64_t only_pool) {
  ++stats_.synchronizations;
  std::vector<std::uintptr_t> done;
  for (auto& [stream, marks] : marks_) {
    std::erase_if(marks, [&](const Mark& mark) {
      const At piece = pieces_.find(mark.address);
      if (only_pool != 0 && segment_of(piece).pool != only_pool) return false;
      source_.wait(mark.ticket);
      if (--piece->second.marks == 0) done.push_back(mark.address);
      return true;
    });
  }
  for (const std::uintptr_t address : done) finish_free(pieces_.find(address));
}

// 7.1
void ReferenceModel::release(At piece) {
  const Segment segment = segment_of(piece);
  source_.release(at(segment.address), segment.bytes);
  total_ -= segment.bytes;
  down(stats_.segment, segment.large, 1);
  down(stats_.reserved_bytes, segment.large, segment.bytes);
  if (segment.bytes >= settings_.max_split_bytes) stats_.oversize_segments.decrease(1);
  segments_.erase(piece->second.segment);
  pieces_.erase(piece);
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
  for (const At piece : free_pieces(pool, large)) {
    if (segment_of(piece).expandable)
      expandable.push_back(piece->first);
    else if (is_whole(piece))
      whole.push_back(piece->first);
  }
  if (!whole.empty()) source_.synchronize();  // as cudaFree does
  for (const std::uintptr_t address : whole) release(pieces_.find(address));
  for (const std::uintptr_t address : expandable) unmap(pieces_.find(address));
}

void ReferenceModel::empty_cache() { release_all(0); }

// 7.3
bool ReferenceModel::release_available(const Wanted& wanted) {
  const std::size_t most = settings_.max_split_bytes;
  if (most == caching::kUnlimited) return false;
  const std::size_t key = std::max(wanted.bytes, most);
  std::vector<At> own = free_pieces(wanted.pool, wanted.large);
  std::erase_if(own, [&](At piece) { return segment_of(piece).stream != wanted.stream; });
  const auto fit = std::find_if(own.begin(), own.end(), [&](At piece) { return piece->second.bytes >= key; });
  const auto take = [&](At piece) {
    source_.wait(source_.mark({wanted.stream}));
    release(piece);
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
    std::vector<At> candidates = free_pieces(0, true);
    std::erase_if(candidates, [&](At piece) { return !is_whole(piece) || segment_of(piece).expandable; });
    double ages = 0;
    for (const At piece : candidates) ages += static_cast<double>(lookups_ - piece->second.born);
    const double average = ages / static_cast<double>(candidates.size());
    for (const At piece : candidates) {
      if (static_cast<double>(lookups_ - piece->second.born) < average) continue;
      source_.wait(source_.mark({segment_of(piece).stream}));
      reclaimed += piece->second.bytes;
      release(piece);
      freed = true;
    }
  }
}

// 9.4
std::optional<ReferenceModel::At> ReferenceModel::expand(const Wanted& wanted) {
  std::optional<At> piece = find_space(wanted);
  if (piece && (*piece)->second.state == BlockState::kUnmapped)
    piece = map(*piece, std::min((*piece)->second.bytes, wanted.bytes));
  while (piece && (*piece)->second.bytes < wanted.bytes) {
    const At right = std::next(*piece);
    piece = map(right, std::min(wanted.bytes - (*piece)->second.bytes, right->second.bytes));
  }
  return piece;
}

// 9.2
std::optional<ReferenceModel::At> ReferenceModel::find_space(const Wanted& wanted) {
  for (At hole = pieces_.begin(); hole != pieces_.end(); ++hole) {
    const Segment& segment = segment_of(hole);
    if (hole->second.state != BlockState::kUnmapped || segment.pool != wanted.pool || segment.stream != wanted.stream ||
        segment.large != wanted.large)
      continue;
    const At start = has_left(hole) && usable(std::prev(hole)->second.state) ? std::prev(hole) : hole;
    std::size_t room = 0;
    for (At piece = start; usable(piece->second.state); ++piece) {
      room += piece->second.bytes;
      if (room >= wanted.bytes) return start;
      if (!has_right(piece)) break;
    }
  }
  const std::size_t page = wanted.large ? settings_.large_segment_bytes : 2 * MiB;
  const std::size_t space = up_to_multiple(address_space_, page);
  if (wanted.bytes > space) return std::nullopt;
  const auto address = reinterpret_cast<std::uintptr_t>(source_.reserve(space));
  const int id = next_segment_++;
  segments_[id] = {.pool = wanted.pool,
                   .stream = wanted.stream,
                   .registration = next_registration_++,
                   .address = address,
                   .bytes = space,
                   .page = page,
                   .large = wanted.large,
                   .expandable = true};
  return pieces_.emplace(address, Piece{.segment = id, .bytes = space, .state = BlockState::kUnmapped}).first;
}

// 9.3
std::optional<ReferenceModel::At> ReferenceModel::map(At piece, std::size_t bytes) {
  Segment& segment = segment_of(piece);
  const std::size_t mapped = up_to_multiple(bytes, segment.page);
  std::map<std::uintptr_t, std::uint64_t> created;
  for (std::uintptr_t page = piece->first; page < piece->first + mapped; page += segment.page) {
    const Physical physical = source_.create(segment.page);
    if (physical) {
      created[page] = physical.value;
      continue;
    }
    for (const auto& [undone, value] : created) source_.destroy({value}, segment.page);
    return std::nullopt;
  }
  segment.pages.merge(created);
  if (piece->second.bytes > mapped) cut(piece, mapped);
  if (has_left(piece) && std::prev(piece)->second.state == BlockState::kFree) {
    piece = std::prev(piece);
    absorb_right(piece);
  }
  piece->second.state = BlockState::kFree;
  if (has_right(piece) && std::next(piece)->second.state == BlockState::kFree) absorb_right(piece);
  into_free_set(piece);
  total_ += mapped;
  up(stats_.reserved_bytes, segment.large, mapped);
  return piece;
}

// 9.6
void ReferenceModel::unmap(At piece) {
  Segment& segment = segment_of(piece);
  const std::uintptr_t start = segment.address;
  const std::uintptr_t begin = start + up_to_multiple(piece->first - start, segment.page);
  const std::uintptr_t end = start + (piece->first + piece->second.bytes - start) / segment.page * segment.page;
  if (begin >= end) return;
  source_.wait(source_.mark({segment.stream}));
  for (std::uintptr_t page = begin; page < end; page += segment.page) {
    source_.destroy({segment.pages.at(page)}, segment.page);
    segment.pages.erase(page);
  }
  if (begin > piece->first) {
    const At middle = cut(piece, begin - piece->first);
    into_free_set(piece);
    piece = middle;
  }
  if (piece->second.bytes > end - begin) into_free_set(cut(piece, end - begin));
  piece->second.state = BlockState::kUnmapped;
  if (has_left(piece) && std::prev(piece)->second.state == BlockState::kUnmapped) {
    piece = std::prev(piece);
    absorb_right(piece);
  }
  if (has_right(piece) && std::next(piece)->second.state == BlockState::kUnmapped) absorb_right(piece);
  total_ -= end - begin;
  down(stats_.reserved_bytes, segment.large, end - begin);
  if (!is_whole(piece)) return;
  source_.unreserve(at(segment.address), segment.bytes);
  segments_.erase(piece->second.segment);
  pieces_.erase(piece);
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
  for (const auto& [address, piece] : pieces_) shown.push_back({address, piece.bytes, piece.state});
  return shown;
}

}  // namespace tenon::testing
