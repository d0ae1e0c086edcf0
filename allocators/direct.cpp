// Direct allocator: every request goes to the device, every free back to it. The baseline, and the smallest real
// policy.
#include <tenon/core/units.h>
#include <tenon/plugin/allocator_plugin.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace {

using namespace tenon;

class Direct final : public Allocator {
 public:
  explicit Direct(MemorySource& source)
      : source_(source), granularity_(std::max<std::size_t>(source.traits().acquire_granularity, 1)) {}

  ~Direct() override {
    try {
      if (live_) source_.synchronize();
    } catch (const Error&) {
      // The device is lost or says so: its memory goes back all the same.
    }
    while (live_) {
      Record* record = live_;
      live_ = record->next;
      source_.release(record->address, record->bytes);
      delete record;
    }
  }

  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; }};
  }

  Block allocate(const Request& request) override {
    auto record = std::make_unique<Record>();
    // What the device rounds up to is taken, too.
    record->bytes = align_up(request.bytes, granularity_);
    if (record->bytes >= request.bytes) record->address = source_.acquire(record->bytes);
    if (!record->address) throw OutOfMemory({.requested_bytes = request.bytes});
    record->requested_bytes = request.bytes;
    record->stream = request.stream;
    std::lock_guard lock(mutex_);
    record->next = live_;
    if (live_) live_->previous = record.get();
    live_ = record.get();
    return {.data = live_->address, .bytes = live_->bytes, .cookie = record.release(), .request = request};
  }

  // cudaFree's implicit synchronisation, which a MemorySource leaves to the policy: no stream may still use the memory.
  void deallocate(const Block& block, StreamRef) noexcept override {
    auto* record = static_cast<Record*>(block.cookie);
    try {
      source_.synchronize();
    } catch (const Error&) {
      // Which streams still use it is unknown: it stays until teardown.
      std::lock_guard lock(mutex_);
      record->state = BlockState::kAwaitingStream;
      return;
    }
    {
      std::lock_guard lock(mutex_);
      (record->previous ? record->previous->next : live_) = record->next;
      if (record->next) record->next->previous = record->previous;
    }
    source_.release(record->address, record->bytes);
    delete record;
  }

  void walk(SegmentVisitor& visitor) const override {
    std::lock_guard lock(mutex_);
    for (const Record* record = live_; record; record = record->next) {
      visitor.segment({.address = record->address, .bytes = record->bytes, .stream = record->stream});
      visitor.block({.address = record->address,
                     .bytes = record->bytes,
                     .requested_bytes = record->requested_bytes,
                     .state = record->state});
    }
  }

  void check_invariants() const override {
    std::lock_guard lock(mutex_);
    const Record* previous = nullptr;
    for (const Record* record = live_; record; previous = record, record = record->next)
      if (record->previous != previous) throw Error("direct: the list of live blocks is broken");
  }

  bool is_thread_safe() const override { return true; }

 private:
  struct Record {
    void* address = nullptr;
    std::size_t bytes = 0;
    std::size_t requested_bytes = 0;
    StreamRef stream;
    BlockState state = BlockState::kActive;
    Record* next = nullptr;
    Record* previous = nullptr;
  };

  MemorySource& source_;
  const std::size_t granularity_;
  mutable std::mutex mutex_;
  Record* live_ = nullptr;
};

}  // namespace

TENON_ALLOCATOR(direct, "1.0", Direct, "every request goes to the device: the baseline")
