// cub_bins: the policy of CUB's CachingDeviceAllocator (util_allocator.cuh), a baseline. Sizes are rounded up to powers
// of `bin_growth`; a freed block waits in its bin for a request of that bin, on its own stream at once and on another
// when its work is done. Blocks are neither split nor merged, and larger ones than the largest bin are not kept.
//
// Where CUB knows one stream for each block, a block that record_use() names others for waits for those as well.
#include <tenon/core/units.h>
#include <tenon/plugin/allocator_plugin.h>

#include <algorithm>
#include <limits>
#include <list>
#include <map>
#include <vector>

namespace {

using namespace tenon;

class CubBins final : public Allocator {
 public:
  static OptionSchema options() {
    return {
        OptionSpec::integer("bin_growth", 8, "the sizes of bins are powers of it").range(2, 64),
        OptionSpec::integer("min_bin", 3, "the smallest bin's power").range(0, 62),
        OptionSpec::integer("max_bin", 7, "the largest bin's power; larger requests go to the device").range(0, 62),
        OptionSpec::size("max_cached", 6'291'455,
                         "what is kept at most, all bins together; what is freed beyond it "
                         "goes back to the device"),
    };
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; }, .is_baseline = true};
  }

  explicit CubBins(const AllocatorContext& context)
      : source_(context.source),
        granularity_(std::max<std::size_t>(source_.traits().acquire_granularity, 1)),
        growth_(static_cast<std::size_t>(context.options.integer("bin_growth"))),
        smallest_(power(context.options.integer("min_bin"))),
        largest_(power(context.options.integer("max_bin"))),
        max_cached_(context.options.size("max_cached")) {
    if (smallest_ > largest_) throw ConfigError("cub_bins: min_bin is above max_bin");
  }
  ~CubBins() override {
    try {
      source_.synchronize();
    } catch (const Error&) {
      // The device is lost or says so: its memory goes back all the same.
    }
    for (const BlockRecord& record : records_) source_.release(record.address, record.bytes);
  }

  Block allocate(const Request& request) override {
    const std::size_t binned = bin_of(request.bytes);
    const std::size_t bytes = align_up(binned != 0 ? binned : request.bytes, granularity_);
    if (bytes < request.bytes) throw OutOfMemory({.requested_bytes = request.bytes});  // rounding has wrapped
    const Place record = binned != 0 ? cached(bytes, request.stream) : records_.end();
    return handed_out(record != records_.end() ? record : acquired(bytes, binned != 0, request), request);
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    const Place record = static_cast<BlockRecord*>(block.cookie)->place;
    try {
      const bool is_kept = record->is_binned && cached_bytes_ + record->bytes <= max_cached_;
      if (!is_kept) {
        source_.synchronize();  // as cudaFree does
        release(record);
        return;
      }
      add_stream(*record, last_use);
      record->own = source_.mark(record->stream);
      for (const StreamRef stream : record->other_streams) record->others.push_back(source_.mark(stream));
      free_.emplace(record->bytes, record);
      record->state = BlockState::kFree;
      cached_bytes_ += record->bytes;
    } catch (const Error&) {
      record->state = BlockState::kAwaitingStream;  // which streams still use it is unknown: it stays until teardown
    }
  }

  void record_use(const Block& block, StreamRef stream) override {
    add_stream(*static_cast<BlockRecord*>(block.cookie), stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    if (cached_bytes_ <= keep_bytes) return 0;
    source_.synchronize();
    std::size_t given_back = 0;
    while (cached_bytes_ > keep_bytes) {
      const auto last = std::prev(free_.end());
      given_back += last->first;
      cached_bytes_ -= last->first;
      release(last->second);
      free_.erase(last);
    }
    return given_back;
  }

  void walk(SegmentVisitor& visitor) const override {
    for (const BlockRecord& record : records_) {
      visitor.segment({.address = record.address, .bytes = record.bytes, .stream = record.stream});
      visitor.block({.address = record.address,
                     .bytes = record.bytes,
                     .requested_bytes = record.state == BlockState::kFree ? 0 : record.requested_bytes,
                     .state = record.state});
    }
  }

  void report(PolicyStats& stats) const override {
    stats.retries = retries_;
    stats.cached_bytes = cached_bytes_;
    stats.largest_free_bytes = free_.empty() ? 0 : std::prev(free_.end())->first;
  }

  void check_invariants() const override {
    std::size_t cached = 0;
    for (const auto& [bytes, record] : free_) {
      if (bytes != record->bytes || record->state != BlockState::kFree)
        throw Error("cub_bins: a bin holds a live block");
      cached += bytes;
    }
    if (cached != cached_bytes_) throw Error("cub_bins: the bytes in the bins differ from their count");
  }

 private:
  struct BlockRecord;
  using Records = std::list<BlockRecord>;
  using Place = Records::iterator;
  struct BlockRecord {
    Place place;  ///< of itself
    void* address = nullptr;
    std::size_t bytes = 0;
    std::size_t requested_bytes = 0;
    StreamRef stream;
    bool is_binned = false;
    BlockState state = BlockState::kActive;
    std::vector<StreamRef> other_streams;  ///< while it lives
    Ticket own;                            ///< while it waits: the end of its work on its stream
    std::vector<Ticket> others;            ///< and on others
  };

  std::size_t power(std::int64_t exponent) const {
    std::size_t value = 1;
    for (; exponent > 0; --exponent) {
      if (value > std::numeric_limits<std::size_t>::max() / 2 / growth_) return value;
      value *= growth_;
    }
    return value;
  }
  /// The bytes of the smallest bin that holds a request; 0 where none does.
  std::size_t bin_of(std::size_t bytes) const {
    if (bytes > largest_) return 0;
    std::size_t bin = smallest_;
    while (bin < bytes) bin *= growth_;
    return bin;
  }

  /// The one that waits longest in its bin of those that may be handed out on this stream; the end where none may.
  Place cached(std::size_t bytes, StreamRef stream) {
    const auto [first, last] = free_.equal_range(bytes);
    for (auto entry = first; entry != last; ++entry) {
      const Place record = entry->second;
      std::erase_if(record->others, [&](const Ticket& ticket) { return source_.reached(ticket); });
      if (!record->others.empty() || (record->stream != stream && !source_.reached(record->own))) continue;
      free_.erase(entry);
      cached_bytes_ -= bytes;
      return record;
    }
    return records_.end();
  }

  Place acquired(std::size_t bytes, bool is_binned, const Request& request) {
    const Place record = records_.emplace(records_.end());
    record->place = record;
    record->bytes = bytes;
    record->is_binned = is_binned;
    try {
      record->address = source_.acquire(bytes);
      if (record->address == nullptr && trim(0) != 0) {
        ++retries_;
        record->address = source_.acquire(bytes);
      }
      if (record->address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    } catch (...) {
      records_.erase(record);
      throw;
    }
    return record;
  }

  static Block handed_out(Place record, const Request& request) {
    record->state = BlockState::kActive;
    record->requested_bytes = request.bytes;
    record->stream = request.stream;
    record->other_streams.clear();
    return {.data = record->address, .bytes = record->bytes, .cookie = &*record, .request = request};
  }

  static void add_stream(BlockRecord& record, StreamRef stream) {
    if (stream == record.stream || std::ranges::find(record.other_streams, stream) != record.other_streams.end())
      return;
    record.other_streams.push_back(stream);
  }

  void release(Place record) {
    source_.release(record->address, record->bytes);
    records_.erase(record);
  }

  MemorySource& source_;
  const std::size_t granularity_, growth_, smallest_, largest_, max_cached_;
  Records records_;
  std::multimap<std::size_t, Place> free_;  ///< by bytes; of equal ones the first has waited longest
  std::size_t cached_bytes_ = 0;
  std::int64_t retries_ = 0;
};

}  // namespace

TENON_ALLOCATOR(cub_bins, "1.0", CubBins, "CUB's caching allocator: bins of powers, no splitting; a baseline")
