// Size classes and two ways back: at once, or when every stream that used the block has got there.
//
// PyTorch's requests for host memory name no stream. Here a block goes back to requests of the stream that it was made
// for, 0 unless the caller says otherwise, so that work on it may still run.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/pinned_cache.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

namespace tenon {

namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

class PinnedCache final : public Allocator {
 public:
  PinnedCache(MemorySource& source, const Options& options)
      : source_(source),
        compat_1_13_(options.text("compat") == "1.13"),
        round_threshold_(or_unlimited(options.size("max_round_threshold"))),
        cached_limit_(or_unlimited(options.size("max_cached_size"))) {}

  ~PinnedCache() override {
    try {
      source_.synchronize();
    } catch (const Error&) {  // the device is lost: its memory goes back all the same
    }
    for (const auto& [address, record] : records_) source_.release(record->address, record->bytes);
  }

  Block allocate(const Request& request) override {
    process_events();
    if (Record* record = take_cached(request)) return hand_out(*record, request);
    const std::size_t bytes = class_size(request.bytes);
    void* address = bytes == 0 ? nullptr : source_.acquire(bytes);
    if (address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    auto made = std::make_unique<Record>();
    *made = {.address = address, .bytes = bytes, .stream = request.stream};
    Record& record = *made;
    records_[address] = std::move(made);
    owned_bytes_ += bytes;
    return hand_out(record, request);
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    auto& record = *static_cast<Record*>(block.cookie);
    if (last_use != record.stream) record.uses.insert(last_use);
    if (record.uses.empty()) return cache(record);
    try {
      for (const StreamRef stream : record.uses) events_.push_back({source_.mark(stream), &record}), ++record.pending;
      record.uses.clear();
    } catch (const Error&) {
      record.pending = -1;  // never known to be reached: it stays out until the end
    }
  }

  void record_use(const Block& block, StreamRef stream) override {
    auto& record = *static_cast<Record*>(block.cookie);
    if (stream != record.stream) record.uses.insert(stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    const std::size_t before = owned_bytes_;
    process_events();
    if (cached_bytes_ <= keep_bytes) return before - owned_bytes_;
    source_.synchronize();
    for (auto& [key, records] : cached_) {
      while (!records.empty() && cached_bytes_ > keep_bytes) {  // the oldest first
        Record* record = records.front();
        records.erase(records.begin());
        cached_bytes_ -= record->bytes;
        release(*record);
      }
    }
    return before - owned_bytes_;
  }

  void report(PolicyStats& stats) const override {
    stats.cached_bytes = cached_bytes_;
    for (const auto& [key, records] : cached_)
      for (const Record* record : records) stats.largest_free_bytes = std::max(stats.largest_free_bytes, record->bytes);
  }

  void check_invariants() const override {
    std::size_t cached = 0;
    for (const auto& [key, records] : cached_)
      for (const Record* record : records) cached += record->bytes;
    if (cached != cached_bytes_) throw Error("pinned: the cached bytes do not add up");
  }

 private:
  struct Record {
    void* address = nullptr;
    std::size_t bytes = 0;
    StreamRef stream;
    std::set<StreamRef> uses;
    int pending = 0;
  };
  struct Event {
    Ticket ticket;
    Record* record;
  };
  /// Stream and size class: the power of two that is not below. 1.13 has one class.
  using Key = std::pair<StreamRef, int>;

  static std::size_t or_unlimited(std::size_t bytes) { return bytes == 0 ? kUnlimited : bytes; }
  Key key_of(std::size_t bytes, StreamRef stream) const {
    return {stream, compat_1_13_ ? 0 : std::bit_width(bytes - 1)};
  }

  /// 0 for what is too large to be a power of two.
  std::size_t class_size(std::size_t bytes) const {
    if (bytes > std::min(round_threshold_, cached_limit_)) return bytes;
    return bytes > (kUnlimited >> 1) + 1 ? 0 : std::bit_ceil(bytes);
  }

  static Block hand_out(Record& record, const Request& request) {
    return {.data = record.address, .bytes = record.bytes, .cookie = &record, .request = request};
  }

  Record* take_cached(const Request& request) {
    const auto found = cached_.find(key_of(request.bytes, request.stream));
    if (found == cached_.end()) return nullptr;
    std::vector<Record*>& records = found->second;
    auto best = records.end();
    for (auto it = records.end(); it != records.begin();) {
      --it;
      if ((*it)->bytes < request.bytes) continue;
      // 1.13: the smallest that suffices, however large, and of equal ones the lowest. Since 2.3 the last one freed.
      if (best == records.end() ||
          std::pair((*it)->bytes, (*it)->address) < std::pair((*best)->bytes, (*best)->address))
        best = it;
      if (!compat_1_13_) break;
    }
    if (best == records.end()) return nullptr;
    Record* record = *best;
    records.erase(best);
    cached_bytes_ -= record->bytes;
    return record;
  }

  void cache(Record& record) noexcept {
    if (record.bytes > cached_limit_) {
      try {
        source_.wait(source_.mark(record.stream));
      } catch (const Error&) {
        return;  // it stays out until the end
      }
      release(record);
      return;
    }
    cached_[key_of(record.bytes, record.stream)].push_back(&record);
    cached_bytes_ += record.bytes;
  }

  void release(Record& record) noexcept {
    source_.release(record.address, record.bytes);
    owned_bytes_ -= record.bytes;
    records_.erase(record.address);
  }

  /// One queue for all streams, as in PyTorch: what is behind a slow one waits.
  void process_events() {
    while (!events_.empty() && source_.reached(events_.front().ticket)) {
      Record& record = *events_.front().record;
      events_.pop_front();
      if (record.pending > 0 && --record.pending == 0) cache(record);
    }
  }

  MemorySource& source_;
  const bool compat_1_13_;
  const std::size_t round_threshold_;
  const std::size_t cached_limit_;
  std::unordered_map<void*, std::unique_ptr<Record>> records_;
  std::map<Key, std::vector<Record*>> cached_;
  std::deque<Event> events_;
  std::size_t owned_bytes_ = 0;
  std::size_t cached_bytes_ = 0;
};

}  // namespace

const AllocatorInfo& pinned_cache() {
  static const AllocatorInfo info{
      .name = "pinned",
      .summary = "PyTorch's cache of page-locked host memory: powers of two, the last freed first",
      .options = {OptionSpec::text("compat", "2.x", "whose decisions are reproduced").one_of({"1.13", "2.x"}),
                  OptionSpec::size("max_round_threshold", 0, "larger sizes are taken as they are; 0 = none"),
                  OptionSpec::size("max_cached_size", 0, "larger blocks are given back when freed; 0 = none")},
      .create = [](const AllocatorContext& context) {
        return std::make_unique<PinnedCache>(context.source, context.options);
      }};
  return info;
}

}  // namespace tenon
