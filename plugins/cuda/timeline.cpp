// Timeline: events are recorded, queried from the oldest on, and recycled.
#include "timeline.h"

#include "handles.h"

#include <algorithm>
#include <utility>

namespace tenon::cuda {

constexpr std::uint64_t kByHandle = std::uint64_t{1} << 63;  ///< CUDA's ids are small

bool is_capturing(StreamRef stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(native(stream), &status);
  if (error == cudaErrorStreamCaptureImplicit) {  // the legacy stream, while a stream captures that waits for it
    cudaGetLastError();
    return true;
  }
  check(error, "cudaStreamIsCapturing");
  return status == cudaStreamCaptureStatusActive;
}

Timeline::Event::Event(CUcontext context) : context(context) {
  const ContextGuard guard(context);
  check(cudaEventCreateWithFlags(&native, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

Timeline::Event::~Event() {
  const ContextGuard guard(context, std::nothrow);
  if (guard) cudaEventDestroy(native);
}

Timeline::Place& Timeline::place_locked(CUcontext context) {
  const auto [found, added] = places_.try_emplace(context);
  Place& place = found->second;
  if (added && context != context_.native()) {
    const ContextGuard guard(context);
    CUdevice device = 0;
    driver_api().check(driver_api().context_device(&device), "cuCtxGetDevice");
    place.kept = std::make_unique<Context>(device);
  }
  return place;
}

std::shared_ptr<Timeline::Event> Timeline::recorded_locked(CUcontext context, StreamRef stream) {
  std::vector<std::shared_ptr<Event>>& spare = place_locked(context).spare;
  std::shared_ptr<Event> event;
  if (spare.empty()) {
    event = std::make_shared<Event>(context);
  } else {
    event = std::move(spare.back());
    spare.pop_back();
  }
  check(cudaEventRecord(event->native, native(stream)), "cudaEventRecord");
  return event;
}

void Timeline::recycle_locked(std::shared_ptr<Event> event) {
  // Who waits for it has a share: recorded anew, it would make him wait for something else.
  if (event.use_count() == 1) places_.at(event->context).spare.push_back(std::move(event));
}

CUcontext Timeline::context_of(StreamRef stream) const {
  CUcontext context = context_.native();
  if (stream.id != 0) driver_api().check(driver_api().stream_context(native(stream), &context), "cuStreamGetCtx");
  return context;
}

std::uint64_t Timeline::line_of(StreamRef stream, bool is_captured) {
  if (stream.id == 0) return 0;
  if (is_captured) return kByHandle | stream.id;
  unsigned long long id = 0;
  check(cudaStreamGetId(native(stream), &id), "cudaStreamGetId");
  return id + 1;
}

Ticket Timeline::mark_locked(StreamRef stream) {
  const auto own = own_.find(stream.id);
  const bool is_own = own != own_.end(), is_captured = is_capturing(stream);
  const CUcontext context = is_own ? context_.native() : context_of(stream);
  const ContextGuard guard(context);
  const std::uint64_t id = is_own ? own->second : line_of(stream, is_captured);
  std::shared_ptr<Event> event;
  if (!is_captured) event = recorded_locked(context, stream);
  Line& line = lines_[id];
  line.context = context;
  line.stream = stream;
  line.pending.push_back({++newest_, std::move(event)});
  return {.stream = id, .value = newest_};
}

Ticket Timeline::mark(StreamRef stream) {
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  const std::lock_guard lock(mutex_);
  const auto retired = retired_.find(stream.id);
  return retired != retired_.end() ? retired->second : mark_locked(stream);
}

void Timeline::advance_locked(Line& line) {
  while (!line.pending.empty()) {
    Pending& oldest = line.pending.front();
    if (oldest.event == nullptr) {
      const ContextGuard guard(line.context);
      if (is_capturing(line.stream)) return;
      oldest.event = recorded_locked(line.context, line.stream);
    }
    const cudaError_t status = cudaEventQuery(oldest.event->native);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // not an error, but CUDA remembers it as one
      return;
    }
    check(status, "cudaEventQuery");
    recycle_locked(std::move(oldest.event));
    line.pending.pop_front();
  }
}

bool Timeline::reached_locked(Ticket ticket) {
  const auto found = lines_.find(ticket.stream);
  if (found == lines_.end()) return true;
  Line& line = found->second;
  if (line.pending.front().value > ticket.value) return true;
  advance_locked(line);
  const bool reached = line.pending.empty() || line.pending.front().value > ticket.value;
  if (line.pending.empty()) lines_.erase(found);
  return reached;
}

bool Timeline::reached(Ticket ticket) {
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  const std::lock_guard lock(mutex_);
  return reached_locked(ticket);
}

std::shared_ptr<Timeline::Event> Timeline::event_locked(Ticket ticket) {
  const auto& pending = lines_.at(ticket.stream).pending;
  return std::find_if(pending.begin(), pending.end(), [&](const Pending& one) { return one.value >= ticket.value; })
      ->event;
}

void Timeline::let_wait(cudaStream_t waiter, StreamRef stream) {
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  const std::lock_guard lock(mutex_);
  if (const auto retired = retired_.find(stream.id); retired != retired_.end()) {
    if (reached_locked(retired->second)) return;
    check(cudaStreamWaitEvent(waiter, event_locked(retired->second)->native, 0), "cudaStreamWaitEvent");
    return;
  }
  const CUcontext context = context_of(stream);
  std::shared_ptr<Event> event;
  {
    const ContextGuard of_stream(context);
    event = recorded_locked(context, stream);
  }
  const cudaError_t status = cudaStreamWaitEvent(waiter, event->native, 0);
  recycle_locked(std::move(event));  // the wait is for what was recorded, whatever is recorded later
  check(status, "cudaStreamWaitEvent");
}

bool Timeline::is_retired(StreamRef stream) {
  const std::lock_guard lock(mutex_);
  return retired_.contains(stream.id);
}

void Timeline::wait(Ticket ticket) {
  const ContextGuard guard(context_);
  std::shared_ptr<Event> event;
  {
    const WhileCapturing allowed;
    const std::lock_guard lock(mutex_);
    if (reached_locked(ticket)) return;
    event = event_locked(ticket);
  }
  if (event == nullptr) throw Error("cuda: work that is being captured cannot be waited for; end the capture first");
  check(cudaEventSynchronize(event->native), "cudaEventSynchronize");
}

std::uint64_t Timeline::newest() {
  const std::lock_guard lock(mutex_);
  return newest_;
}

void Timeline::reached_until(std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  for (auto at = lines_.begin(); at != lines_.end();) {
    auto& [id, line] = *at;
    const bool own = line.context == context_.native();
    while (own && !line.pending.empty() && line.pending.front().event != nullptr &&
           line.pending.front().value <= value) {
      recycle_locked(std::move(line.pending.front().event));
      line.pending.pop_front();
    }
    at = line.pending.empty() ? lines_.erase(at) : std::next(at);
  }
}

void Timeline::retire(StreamRef stream) {
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  const std::lock_guard lock(mutex_);
  const Ticket last = mark_locked(stream);
  own_.erase(stream.id);
  retired_.insert_or_assign(stream.id, last);
  for (Pending& pending : lines_.at(last.stream).pending) {  // no capture survives its stream
    if (pending.event == nullptr) pending.event = recorded_locked(context_.native(), stream);
  }
}

void Timeline::revive(StreamRef stream) {
  const std::lock_guard lock(mutex_);
  retired_.erase(stream.id);
}

void Timeline::made(StreamRef stream) {
  const ContextGuard guard(context_);
  const std::lock_guard lock(mutex_);
  own_.insert_or_assign(stream.id, line_of(stream, false));
  retired_.erase(stream.id);
}

}  // namespace tenon::cuda
