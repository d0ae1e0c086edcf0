// Timeline: events are recorded, queried from the oldest on, and recycled.
#include "timeline.h"

#include "check.h"

namespace tenon::cuda {

Timeline::~Timeline() {
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  for (auto& [id, stream] : streams_) {
    for (const Pending& pending : stream.pending) cudaEventDestroy(pending.event);
  }
}

Ticket Timeline::mark(StreamRef stream) {
  const DeviceGuard guard(device_);
  std::lock_guard lock(mutex_);
  cudaEvent_t event = nullptr;
  if (spare_.empty()) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  const cudaError_t status = cudaEventRecord(event, reinterpret_cast<cudaStream_t>(stream.id));
  if (status != cudaSuccess) {
    spare_.push_back(event);
    check(status, "cudaEventRecord");
  }
  Stream& line = streams_[stream.id];
  line.pending.push_back({++line.marked, event});
  return {.stream = stream.id, .value = line.marked};
}

void Timeline::advance_locked(Stream& stream) {
  while (!stream.pending.empty()) {
    const Pending oldest = stream.pending.front();
    const cudaError_t status = cudaEventQuery(oldest.event);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // not an error, but CUDA remembers it as one
      return;
    }
    check(status, "cudaEventQuery");
    stream.completed = oldest.value;
    spare_.push_back(oldest.event);
    stream.pending.pop_front();
  }
}

bool Timeline::reached(Ticket ticket) {
  const DeviceGuard guard(device_);
  std::lock_guard lock(mutex_);
  Stream& stream = streams_[ticket.stream];
  if (stream.completed < ticket.value) advance_locked(stream);
  return stream.completed >= ticket.value;
}

void Timeline::wait(Ticket ticket) {
  if (reached(ticket)) return;
  const DeviceGuard guard(device_);
  // Waits for the stream, not for the event: the event may be recycled by another thread meanwhile.
  check(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(ticket.stream)), "cudaStreamSynchronize");
  reached(ticket);
}

void Timeline::all_reached() {
  std::lock_guard lock(mutex_);
  for (auto& [id, stream] : streams_) {
    for (const Pending& pending : stream.pending) spare_.push_back(pending.event);
    stream.pending.clear();
    stream.completed = stream.marked;
  }
}

}  // namespace tenon::cuda
