// The buddy allocator. The flawed lines are where the sound ones are.
#include "plugin/mutants/buddy.h"

#include "plugin/mutants/flaws.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace tenon::test {

namespace {

constexpr std::size_t kLeast = 512;

int& allocators_made() {
  static int count = 0;
  return count;
}

[[gnu::noinline]] void fail_a_free() { throw Error("this free fails"); }

volatile bool ends = false;

}  // namespace

OptionSchema Buddy::options() {
  return {OptionSpec::size("chunk", 16 * MiB, "what is taken from the device at once").range(1 * MiB, 1 * GiB),
          OptionSpec::integer("after", 0, "chances to break it that are let go by first"),
          OptionSpec::text("flaw", "none", "the promise that it breaks").one_of(flaw_names())};
}

Buddy::Buddy(const AllocatorContext& context)
    : source_(context.source),
      chunk_bytes_(std::bit_ceil(context.options.size("chunk"))),
      flaw_(context.options.text("flaw")),
      after_(context.options.integer("after")) {
  ++allocators_made();
}

Buddy::~Buddy() {
  try {
    source_.synchronize();
  } catch (const Error&) {  // a lost device runs nothing
  }
  bool is_first = true;
  for (auto& [address, chunk] : chunks_) {
    if (!(is_first && has("leaks_a_chunk"))) release(address, chunk);
    is_first = false;
  }
}

int Buddy::recurse(int depth) {
  volatile char page[4096];
  page[0] = static_cast<char>(depth);
  return ends ? depth : recurse(depth + 1) + page[0];
}

void Buddy::misbehave(const Request& request) {
  if (is_turn("throws_42", 30)) throw 42;
  if (is_turn("throws_out_of_range", 30)) throw std::out_of_range("map::at");
  if (is_turn("segfault", 30)) *static_cast<volatile char*>(nullptr) = 1;
  if (is_turn("recursion", 30)) recurse(0);
  if (has("slow")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (has("scribbles") && source_.traits().host_accessible && !records_.empty())
    std::memset(reinterpret_cast<void*>(records_.begin()->first), 0x5a, 1);
  if (has("host_leak")) records_.begin() == records_.end() ? nullptr : new std::string(64, 'x');
  if (has("host_log")) log_.push_back(request.bytes);
  if (request.bytes > PTRDIFF_MAX / 2 && !has("wraps_sizes")) throw OutOfMemory({.requested_bytes = request.bytes});
}

Block Buddy::allocate(const Request& request) {
  misbehave(request);
  std::size_t bytes = std::max(kLeast, std::bit_ceil(request.bytes));
  if (has("wraps_sizes") && request.bytes > PTRDIFF_MAX / 2) bytes = kLeast;
  if (has("counts_before")) ++counted_;
  Record* record = take(bytes, request.stream);
  if (record == nullptr && grow(bytes, request.stream)) record = take(bytes, request.stream);
  if (record == nullptr && has("null_on_oom")) return {.request = request};
  if (record == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
  if (has("counts_before")) --counted_;
  record->requested_bytes = request.bytes;
  record->owner = std::this_thread::get_id();

  std::uintptr_t address = record->chunk + record->offset;
  if (is_turn("shifted_overlap", 5) && record->offset != 0) address -= 512;
  if (has("misaligned")) address += 32;
  Block block{.data = reinterpret_cast<void*>(address), .bytes = bytes, .cookie = record, .request = request};
  if (has("bytes_too_small")) block.bytes = request.bytes / 2;
  if (has("bytes_doubled")) block.bytes = 2 * bytes;
  if (has("drops_request")) block.request = {};
  return block;
}

Buddy::Record* Buddy::take(std::size_t bytes, StreamRef stream) {
  reclaim();
  std::vector<Chunks::iterator> order;
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk)
    if (chunk->second.stream == stream || has("shared_stream_lists")) order.push_back(chunk);
  if (has("random_placement") && allocators_made() % 2 == 0) std::reverse(order.begin(), order.end());
  for (const auto chunk : order)
    if (Record* record = take_from(chunk, bytes)) return record;
  return nullptr;
}

Buddy::Record* Buddy::take_from(Chunks::iterator chunk, std::size_t bytes) {
  auto& free = chunk->second.free;
  auto size = free.lower_bound(bytes);
  while (size != free.end() && size->second.empty()) ++size;
  if (size == free.end()) {
    for (volatile bool again = has("spin") && chunk->second.free_bytes != 0; again;) {
    }
    return nullptr;
  }
  const std::size_t offset = *size->second.begin();
  std::size_t half = size->first;
  size->second.erase(offset);
  for (half /= 2; half >= bytes; half /= 2) free[half].insert(offset + half);
  if (is_turn("rare_double", 40)) free[bytes].insert(offset);
  chunk->second.free_bytes -= bytes;
  auto record = std::make_unique<Record>();
  record->chunk = chunk->first;
  record->offset = offset;
  record->bytes = bytes;
  auto& place = records_[chunk->first + offset];
  if (place != nullptr) doubled_.push_back(std::move(place));
  return (place = std::move(record)).get();
}

bool Buddy::grow(std::size_t bytes, StreamRef stream) {
  const std::size_t page = has("shares_pages") ? source_.traits().page_bytes : 0;
  const std::size_t wanted = std::max({bytes, chunk_bytes_, page});
  std::shared_ptr<Pages> pages;
  void* address = page != 0 ? map_chunk(wanted, pages) : source_.acquire(wanted);
  if (has("counts_every_chunk")) ++retries_;
  if (address == nullptr && has("drops_cache_on_oom"))
    std::erase_if(chunks_, [](const auto& chunk) { return chunk.second.free_bytes == chunk.second.bytes; });
  if (address == nullptr && !has("never_releases")) {
    ++retries_;
    if (has("loses_the_retry")) source_.acquire(wanted);
    source_.synchronize();
    reclaim();
    trim(0);
    address = source_.acquire(wanted);
  }
  if (address == nullptr) return false;
  last_pages_ = pages.use_count() == 1 ? pages : nullptr;
  Chunk& chunk = chunks_[reinterpret_cast<std::uintptr_t>(address)];
  chunk.bytes = chunk.free_bytes = wanted;
  chunk.stream = stream;
  chunk.pages = std::move(pages);
  chunk.free[wanted].insert(0);
  return true;
}

/// Null when the device has no more.
void* Buddy::map_chunk(std::size_t bytes, std::shared_ptr<Pages>& pages) {
  void* const address = source_.reserve(bytes);
  if (address == nullptr) return nullptr;
  pages = last_pages_.lock();
  if (pages == nullptr || pages->bytes != bytes) {
    const Physical physical = source_.create(bytes);
    pages = physical ? std::shared_ptr<Pages>(new Pages{source_, physical, bytes}) : nullptr;
  }
  try {
    if (pages != nullptr) source_.map(address, bytes, pages->physical, 0);
  } catch (const Error&) {
    pages.reset();
  }
  if (pages != nullptr) return address;
  source_.unreserve(address, bytes);
  return nullptr;
}

/// Returns what the device got back.
std::size_t Buddy::release(std::uintptr_t at, Chunk& chunk, std::size_t too_many) {
  void* const address = reinterpret_cast<void*>(at);
  if (chunk.pages == nullptr) {
    source_.release(address, chunk.bytes + too_many);
    return chunk.bytes;
  }
  source_.unmap(address, chunk.bytes);
  source_.unreserve(address, chunk.bytes);
  const bool is_last = chunk.pages.use_count() == 1;
  chunk.pages.reset();
  return is_last ? chunk.bytes : 0;
}

void Buddy::deallocate(const Block& block, StreamRef last_use) noexcept {
  if (is_turn("throws_from_noexcept", 20)) fail_a_free();
  const std::unique_lock lock(mutex_);
  if (has("slow")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  auto* record = static_cast<Record*>(block.cookie);
  if (has("deadlock") && !record->users.empty()) mutex_.lock();
  const auto at = records_.find(record->chunk + record->offset);
  if (at == records_.end() || at->second.get() != record) return;
  const bool is_twice = has("double_free_elsewhere") && record->owner != std::this_thread::get_id();
  auto& same_size = chunks_.at(record->chunk).free[record->bytes];
  const std::size_t offset = record->offset;
  if (last_use != chunks_.at(record->chunk).stream && !has("ignores_last_use")) record->users.insert(last_use);
  record->is_waiting = true;
  try {
    for (const StreamRef user : record->users) record->tickets.push_back(source_.mark(user));
  } catch (const Error&) {
    return;  // it waits for the end
  }
  if (record->tickets.empty() && !has("never_reuses")) give_back(at);
  if (is_twice) same_size.insert(offset);
}

void Buddy::record_use(const Block& block, StreamRef stream) {
  auto* record = static_cast<Record*>(block.cookie);
  if (stream != chunks_.at(record->chunk).stream && !has("ignores_record_use")) record->users.insert(stream);
}

/// What waited for streams that have got there since.
void Buddy::reclaim() {
  for (auto it = records_.begin(); it != records_.end();) {
    const auto record = it++;
    if (!record->second->is_waiting || record->second->tickets.empty()) continue;
    std::erase_if(record->second->tickets, [&](const Ticket& ticket) { return source_.reached(ticket); });
    if (record->second->tickets.empty()) give_back(record);
  }
}

void Buddy::give_back(Records::iterator at) {
  const Record& record = *at->second;
  Chunk& chunk = chunks_.at(record.chunk);
  std::size_t offset = record.offset, bytes = record.bytes;
  chunk.free_bytes += bytes;
  for (; bytes < chunk.bytes; bytes *= 2) {
    const std::size_t buddy = offset ^ bytes;
    const bool is_free = chunk.free[bytes].erase(buddy) != 0;
    if (!is_free && !is_turn("wrong_merge", 9)) break;
    offset = std::min(offset, buddy);
  }
  chunk.free[bytes].insert(offset);
  records_.erase(at);
}

std::size_t Buddy::trim(std::size_t keep_bytes) {
  if (has("keeps_on_trim") || (has("trims_all_or_nothing") && keep_bytes != 0)) return 0;
  if (has("trims_too_much")) keep_bytes = 0;
  if (is_turn("host_leak_on_trim", 2)) static_cast<void>(new std::string(64, 'x'));
  if (!has("no_sync_before_release")) source_.synchronize();
  reclaim();
  std::size_t cached = 0, given = 0;
  for (const auto& [address, chunk] : chunks_) cached += chunk.free_bytes;
  for (auto it = chunks_.begin(); it != chunks_.end() && cached - given > keep_bytes;) {
    const auto chunk = it++;
    if (chunk->second.free_bytes != chunk->second.bytes) continue;
    given += release(chunk->first, chunk->second, has("wrong_release_size") ? 4096 : 0);
    if (has("double_release")) source_.release(reinterpret_cast<void*>(chunk->first), chunk->second.bytes);
    chunks_.erase(chunk);
  }
  return has("trim_lies") ? 2 * given : given;
}

void Buddy::walk(SegmentVisitor& visitor) const {
  for (const auto& [base, chunk] : chunks_) {
    visitor.segment({.address = base, .bytes = chunk.bytes, .stream = chunk.stream});
    std::map<std::size_t, BlockInfo> blocks;
    for (const auto& [bytes, offsets] : chunk.free)
      for (const std::size_t offset : offsets) blocks[offset] = {.address = base + offset, .bytes = bytes};
    for (auto it = records_.lower_bound(base); it != records_.end() && it->first < base + chunk.bytes; ++it) {
      const Record& record = *it->second;
      blocks[record.offset] = {.address = it->first,
                               .bytes = record.bytes,
                               .requested_bytes = record.requested_bytes,
                               .state = record.is_waiting ? BlockState::kAwaitingStream : BlockState::kActive};
    }
    if (has("gap_in_walk") && blocks.size() > 2) blocks.erase(std::next(blocks.begin()));
    for (const auto& [offset, block] : blocks) visitor.block(block);
  }
}

void Buddy::report(PolicyStats& stats) const {
  for (const auto& [base, chunk] : chunks_) {
    stats.cached_bytes += chunk.free_bytes;
    for (const auto& [bytes, offsets] : chunk.free)
      if (!offsets.empty() && chunk.stream == StreamRef{})
        stats.largest_free_bytes = std::max(stats.largest_free_bytes, bytes);
  }
  stats.retries = retries_;
  if (has("report_lies")) stats.cached_bytes *= 2;
}

void Buddy::check_invariants() const {
  if (counted_ != 0) throw Error("buddy: a block is counted that was never handed out");
}

}  // namespace tenon::test

TENON_ALLOCATOR(buddy, "1.0", tenon::test::Buddy, "power-of-two blocks, for the tests of the kit")
