// The table of events.
#include "events.h"

#include <tenon/core/error.h>

#include <string>
#include <utility>

namespace tenon::simulated {

EventRef Events::create(bool timing) {
  const std::lock_guard lock(mutex_);
  const EventRef event{next_++};
  events_[event.id].timing = timing;
  return event;
}

void Events::destroy(EventRef event) noexcept {
  const std::lock_guard lock(mutex_);
  events_.erase(event.id);
}

Event Events::find(EventRef event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event.id);
  if (found == events_.end()) throw Error("simulated: there is no event " + std::to_string(event.id));
  return found->second;
}

void Events::update(EventRef event, Event updated) {
  const std::lock_guard lock(mutex_);
  events_[event.id] = std::move(updated);
}

}  // namespace tenon::simulated
