// Layouts of memory, compared by hash.
#include <tenon/train/step/settling.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/snapshot.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace tenon::train {
namespace {

class Hash {
 public:
  void add(std::uint64_t value) {
    constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a, a word at a time
    value_ = (value_ ^ value) * kPrime;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

bool has_free_block(const Segment& segment) {
  return std::ranges::any_of(segment.blocks, [](const BlockInfo& block) { return !block.is_in_use(); });
}

std::uint64_t hash_of(const Segment& segment) {
  Hash hash;
  for (const std::uint64_t value : {std::uint64_t{segment.bytes}, segment.stream.id, segment.pool}) hash.add(value);
  for (const BlockInfo& block : segment.blocks) {
    hash.add(block.address - segment.address);
    hash.add(block.bytes);
    hash.add(block.requested_bytes);
    hash.add(static_cast<std::uint64_t>(block.state));
  }
  return hash.value();
}

}  // namespace

Settling::Layout Settling::layout() const {
  Layout layout;
  Hash all;
  for (const Device& device : devices_) {
    SegmentCollector shown;
    device_state(device).allocator().walk(shown);
    std::vector<Segment> segments = shown.take();  // with what is not mapped: memory may come to lie there
    std::ranges::sort(segments, {}, [](const Segment& segment) { return std::uint64_t{segment.address}; });
    layout.is_known = layout.is_known || !segments.empty();
    // Which of two cached blocks is taken may depend on what lies first; of segments without one nothing does.
    const bool is_in_order = std::ranges::any_of(segments, has_free_block);
    layout.has_cache = layout.has_cache || is_in_order;
    std::uint64_t sum = 0;
    for (const Segment& segment : segments) {
      const std::uint64_t one = hash_of(segment);
      if (is_in_order) all.add(one);
      sum += one;
    }
    all.add(sum);
  }
  layout.hash = all.value();
  return layout;
}

std::int64_t Settling::device_calls() const {
  std::int64_t calls = 0;
  for (const Device& device : devices_) calls += device_state(device).allocator().stats().device_calls();
  return calls;
}

std::int64_t Settling::most_reserved() const {
  std::int64_t bytes = 0;
  for (const Device& device : devices_) bytes += device_state(device).allocator().stats().reserved_bytes.peak;
  return bytes;
}

void Settling::epoch_begins() {
  ++epochs_;
  steps_of_epoch_ = 0;
}

bool Settling::has_settled_after_step() {
  ++steps_;
  ++steps_of_epoch_;
  const std::int64_t reserved = most_reserved();  // in this step
  quiet_steps_ = reserved > reserved_bytes_ ? 0 : quiet_steps_ + 1;
  reserved_bytes_ = std::max(reserved_bytes_, reserved);
  const Layout now = layout();
  const std::int64_t calls = device_calls(), calls_before = std::exchange(device_calls_, calls);
  const bool is_known = !layouts_.insert(now.hash).second;
  calm_steps_ = is_known && (calls == calls_before || !now.has_cache) ? calm_steps_ + 1 : 0;
  const bool is_quiet = (!now.is_known || are_steps_dear_) && quiet_steps_ >= kQuietSteps;
  has_settled_ = is_quiet || (now.is_known && calm_steps_ >= kCalmSteps);
  return has_settled_ || steps_ >= kMostSteps;
}

}  // namespace tenon::train
