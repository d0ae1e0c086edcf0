// A copy between devices, ordered by two events.
#include <tenon/device/order/peer_copy.h>

#include <tenon/core/scope/scope.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace tenon {

namespace {

/// An event without timing, for one wait.
class Milestone {
 public:
  Milestone(DeviceDriver& driver, StreamRef stream) : driver_(driver), event_(driver.create_event(false)) {
    driver_.record(event_, stream);
  }
  ~Milestone() { driver_.destroy_event(event_); }
  Milestone(const Milestone&) = delete;
  Milestone& operator=(const Milestone&) = delete;
  EventRef event() const { return event_; }

 private:
  DeviceDriver& driver_;
  EventRef event_;
};

enum Known : std::uint8_t { kUnknown, kSynchronous, kAsynchronous };

/// Asked once of each kind: a GPU's properties take milliseconds to read.
bool is_asynchronous(const DeviceState& state) {
  static constinit std::array<std::atomic<Known>, kMaxDeviceTypes> known{};
  std::atomic<Known>& kind = known[state.device().type().id()];
  if (kind.load(std::memory_order_relaxed) == kUnknown)
    kind.store(state.driver().properties().asynchronous ? kAsynchronous : kSynchronous, std::memory_order_relaxed);
  return kind.load(std::memory_order_relaxed) == kAsynchronous;
}

}  // namespace

bool have_common_order(const DeviceState& a, const DeviceState& b) {
  return a.device().type() == b.device().type() && is_asynchronous(a);
}

void copy_between(DeviceState& to, void* destination, DeviceState& from, const void* source, std::size_t bytes) {
  const scopes::CopyScope told({.from = from.device(), .to = to.device(), .bytes = bytes});
  const StreamRef there = current_stream(to.device());
  const StreamRef here = current_stream(from.device());
  {
    const Milestone free(to.driver(), there);  // whoever had the block before has done with it
    from.driver().wait(here, free.event());
  }
  from.driver().copy(destination, source, bytes, CopyKind::kPeerToPeer, here);
  const Milestone arrived(from.driver(), here);
  to.driver().wait(there, arrived.event());
}

}  // namespace tenon
