// A copy between devices, ordered by two events.
#include <tenon/device/order/peer_copy.h>

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

}  // namespace

bool have_common_order(const DeviceState& a, const DeviceState& b) {
  return a.device().type() == b.device().type() && a.driver().properties().asynchronous;
}

void copy_between(DeviceState& to, void* destination, DeviceState& from, const void* source, std::size_t bytes) {
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
