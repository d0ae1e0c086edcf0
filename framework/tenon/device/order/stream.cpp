// Streams and events over what drivers give.
#include <tenon/device/order/stream.h>

#include <tenon/core/error.h>

#include <fmt/format.h>

namespace tenon {

struct Stream::Owned {
  Owned(DeviceState& on, int priority) : state(on), stream(on.driver().create_stream(priority)) {}
  ~Owned() { state.driver().destroy_stream(stream); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  DeviceState& state;
  StreamRef stream;
};

Stream::Stream(Device device, int priority) : owned_(std::make_shared<const Owned>(device_state(device), priority)) {}

Device Stream::device() const { return owned_->state.device(); }
StreamRef Stream::ref() const { return owned_->stream; }
void Stream::synchronize() const { owned_->state.driver().synchronize(owned_->stream); }

bool Stream::query() const {
  MemorySource& memory = owned_->state.driver().memory();
  return memory.reached(memory.mark(owned_->stream));
}

void Stream::wait_stream(const Stream& other) const {
  Event done(other.device());
  done.record(other.ref());
  wait_event(done);
}

void Stream::wait_event(const Event& event) const { event.block(*this); }

StreamGuard::StreamGuard(const Stream& stream) : StreamGuard(stream.device(), stream.ref()) {}

Event::Event(Device device, bool timing) : state_(device_state(device)), event_(state_.driver().create_event(timing)) {}
Event::~Event() { state_.driver().destroy_event(event_); }

void Event::record() { record(current_stream(device())); }
void Event::record(StreamRef stream) { state_.driver().record(event_, stream); }
void Event::block(StreamRef stream) const { state_.driver().wait(stream, event_); }

void Event::block(const Stream& stream) const {
  const Device waiting = stream.device();
  if (waiting.type() != device().type()) {
    throw Error(
        fmt::format("a stream of {} cannot wait for an event of {}: they are of two kinds; synchronize() the "
                    "event instead",
                    waiting.str(), device().str()));
  }
  device_state(waiting).driver().wait(stream.ref(), event_);
}

bool Event::query() const { return state_.driver().query(event_); }
void Event::synchronize() const { state_.driver().synchronize(event_); }
double Event::elapsed_time(const Event& end) const { return state_.driver().elapsed_ms(event_, end.event_); }

}  // namespace tenon
