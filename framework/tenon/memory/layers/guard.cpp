// Layer `guard`: red zones around every block, poison in fresh and in freed memory, and a quarantine for freed blocks.
//
//   | red zone | the block, exactly as long as requested | red zone |
//     0xFD…      0xCD… when fresh, 0xDD… when freed       0xFD…
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/layers/fault_log.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/wider_block.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

namespace tenon {

namespace {

constexpr unsigned char kZone = 0xFD;
constexpr unsigned char kFresh = 0xCD;
constexpr unsigned char kFreed = 0xDD;

/// The first byte in [begin, begin + bytes) that is not `expected`, or `bytes`.
std::size_t first_other(const unsigned char* begin, std::size_t bytes, unsigned char expected) {
  return static_cast<std::size_t>(std::find_if(begin, begin + bytes, [&](unsigned char c) { return c != expected; }) -
                                  begin);
}

class Guard final : public LayerAllocator {
 public:
  Guard(std::unique_ptr<Allocator> inner, const LayerContext& context)
      : LayerAllocator(std::move(inner)),
        source_(context.source),
        faults_("guard", context.options),
        zone_bytes_(context.options.size("red_zone")),
        poison_fresh_(context.options.boolean("poison_on_allocate")),
        poison_freed_(context.options.boolean("poison_on_free")),
        quarantine_limit_(context.options.size("quarantine")) {}

  ~Guard() override { drain(0); }

  Block allocate(const Request& request) override {
    faults_.throw_pending();
    auto record = std::make_unique<Record>();
    // The front zone keeps the alignment, the rear one starts with the first byte that was not asked for.
    record->front = align_up(zone_bytes_, request.alignment);
    const Request wider = widened(request, record->front + zone_bytes_);
    try {
      record->inner = inner_->allocate(wider);
    } catch (const OutOfMemory&) {
      if (quarantine_.empty()) throw;
      drain(0);
      record->inner = inner_->allocate(wider);
    }
    record->inner.request = wider;
    record->requested = request;
    unsigned char* zone = begin(*record);
    try {
      // The block may still be in use by earlier work of its stream: the host writes after that.
      source_.wait(source_.mark(request.stream));
    } catch (...) {
      inner_->deallocate(record->inner, request.stream);
      throw;
    }
    std::memset(zone, kZone, record->front);
    if (poison_fresh_) std::memset(zone + record->front, kFresh, request.bytes);
    std::memset(zone + record->front + request.bytes, kZone, record->inner.bytes - record->front - request.bytes);
    return {.data = zone + record->front, .bytes = request.bytes, .cookie = record.release(), .request = request};
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    std::unique_ptr<Record> record(static_cast<Record*>(block.cookie));
    record->last_use = last_use;
    try {
      source_.wait(source_.mark(block.request.stream));
      if (last_use != block.request.stream) source_.wait(source_.mark(last_use));
      for (const StreamRef stream : record->used_on) source_.wait(source_.mark(stream));
      check_zones(*record);
      if (poison_freed_) std::memset(begin(*record) + record->front, kFreed, record->requested.bytes);
      record->is_poisoned = poison_freed_;
    } catch (const Error& error) {  // the device would not wait: its memory is not touched
      faults_.add(error.what());
    }
    quarantine_bytes_ += record->inner.bytes;
    quarantine_.push_back(std::move(record));
    drain(quarantine_limit_);
  }

  void record_use(const Block& block, StreamRef stream) override {
    auto* record = static_cast<Record*>(block.cookie);
    record->used_on.push_back(stream);
    inner_->record_use(record->inner, stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    drain(0);
    return inner_->trim(keep_bytes);
  }

  void check_invariants() const override {
    faults_.throw_first();
    inner_->check_invariants();
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    std::vector<std::pair<std::string, std::string>> entries{
        {"quarantined_bytes", fmt::format("{}", quarantine_bytes_)}};
    faults_.summarize(entries);
    return entries;
  }

 private:
  struct Record {
    Block inner;
    Request requested;
    std::size_t front = 0;
    StreamRef last_use;
    std::vector<StreamRef> used_on;
    bool is_poisoned = false;  ///< since its free
  };

  static unsigned char* begin(const Record& record) { return static_cast<unsigned char*>(record.inner.data); }

  static std::string name(const Record& record) {
    return fmt::format("block {} of {} bytes ({}{}{})", fmt::ptr(begin(record) + record.front), record.requested.bytes,
                       name_of(record.requested.purpose), record.requested.label != 0 ? " of " : "",
                       label_name(record.requested.label));
  }

  void check_zones(const Record& record) {
    const unsigned char* zone = begin(record);
    if (const std::size_t at = first_other(zone, record.front, kZone); at != record.front) {
      faults_.add(fmt::format("written before its start: {}, {} bytes before", name(record), record.front - at));
    }
    const std::size_t rear = record.inner.bytes - record.front - record.requested.bytes;
    if (const std::size_t at = first_other(zone + record.front + record.requested.bytes, rear, kZone); at != rear) {
      faults_.add(fmt::format("written past its end: {}, {} bytes past", name(record), at));
    }
  }

  /// Frees the oldest of the quarantine until at most `keep` bytes are in it.
  void drain(std::size_t keep) noexcept {
    while (!quarantine_.empty() && quarantine_bytes_ > keep) {
      const std::unique_ptr<Record> record = std::move(quarantine_.front());
      quarantine_.pop_front();
      quarantine_bytes_ -= record->inner.bytes;
      if (record->is_poisoned && quarantine_limit_ != 0) {
        const std::size_t at = first_other(begin(*record) + record->front, record->requested.bytes, kFreed);
        if (at != record->requested.bytes)
          faults_.add(fmt::format("written after it was freed: {}, at byte {}", name(*record), at));
      }
      inner_->deallocate(record->inner, record->last_use);
    }
  }

  MemorySource& source_;
  FaultLog faults_;
  const std::size_t zone_bytes_;
  const bool poison_fresh_, poison_freed_;
  const std::size_t quarantine_limit_;
  std::deque<std::unique_ptr<Record>> quarantine_;
  std::size_t quarantine_bytes_ = 0;
};

}  // namespace

LayerInfo guard_layer() {
  return {
      .name = "guard",
      .summary = "red zones, poison and a quarantine: finds writes outside of blocks and after their free",
      .options = {OptionSpec::size("red_zone", 64, "bytes before and after each block").range(std::size_t{1}, MiB),
                  OptionSpec::boolean("poison_on_allocate", true, "fill fresh blocks with 0xCD"),
                  OptionSpec::boolean("poison_on_free", true, "fill freed blocks with 0xDD"),
                  OptionSpec::size("quarantine", 0, "freed bytes to hold back before they are used again"),
                  FaultLog::option()},
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        if (!context.traits.host_accessible) {
          throw ConfigError(
              fmt::format("layer 'guard' writes into blocks, and the host cannot touch the memory of {}: take "
                          "the layer out, or use it on the CPU or a simulated device with memory behind it",
                          context.traits.device));
        }
        return std::make_unique<Guard>(std::move(inner), context);
      }};
}

}  // namespace tenon
