// Calls about streams, events and host functions.
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

#include <utility>

using namespace tenon::emulated_cuda;

namespace {

/// Waiting for what is captured cannot end: the capture is lost.
bool captured(Stream& stream) {
  if (stream.capture == nullptr) return false;
  stream.capture->invalid = true;
  return true;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int) {
  Call call("cudaStreamCreateWithPriority");
  if (call.refused()) return call.refusal();
  Machine& machine = call.machine();
  Stream* stream = nullptr;
  if (!machine.stream_handles_to_give_again.empty()) {  // as CUDA does: an old handle may mean a new stream
    stream = machine.stream_handles_to_give_again.back();
    machine.stream_handles_to_give_again.pop_back();
  } else {
    stream = machine.stream_store.emplace_back(std::make_unique<Stream>()).get();
  }
  *stream = {};
  stream->id = machine.next_id++;
  stream->context = &call.context();
  stream->blocking = flags != cudaStreamNonBlocking;
  machine.streams.insert(stream);
  *handle = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}

/// What is queued still runs.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Call call("cudaStreamDestroy");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(handle);
  if (stream.legacy) return call.result(cudaErrorInvalidResourceHandle);
  if (stream.capture != nullptr) misuse("cudaStreamDestroy was called on a stream that is being captured");
  call.machine().streams.erase(&stream);
  call.machine().stream_handles_to_give_again.push_back(&stream);
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  Call call("cudaStreamGetId");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(handle);
  if (captured(stream)) return call.result(cudaErrorStreamCaptureUnsupported);  // whatever the mode
  *id = stream.id;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Call call("cudaStreamSynchronize");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(handle);
  if (captured(stream)) return call.result(cudaErrorStreamCaptureUnsupported);
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  std::vector<WorkRef> all{stream.last};
  if (stream.legacy) {
    for (const Stream* other : call.machine().streams) {
      if (other->context == stream.context && other->blocking) all.push_back(other->last);
    }
  }
  call.machine().queue.complete(all);
  call.machine().settle_pools(stream.context->device);
  return call.result(call.context().lost ? cudaErrorIllegalAddress : cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Call call("cudaStreamQuery");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(handle);
  if (captured(stream)) return call.result(cudaErrorStreamCaptureUnsupported);
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  if (stream.last == nullptr || stream.last->done) {
    call.machine().queue.host_has_seen(stream.last);
    return cudaSuccess;
  }
  call.machine().queue.nudge(stream.last);
  return call.result(cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags) {
  Call call("cudaStreamWaitEvent");
  if (call.refused()) return call.refusal();
  if (flags != 0) misuse("cudaStreamWaitEvent with flags is not emulated");
  Stream& stream = call.stream(handle);
  const Event& event = call.event(event_handle);
  if (event.capture != nullptr) {  // the stream joins the capture
    if (stream.legacy) return call.result(cudaErrorStreamCaptureImplicit);
    if (stream.capture != nullptr && stream.capture != event.capture) return call.result(cudaErrorStreamCaptureMerge);
    stream.capture = event.capture;
    stream.capture->streams.insert(&stream);
    stream.tail.insert(stream.tail.end(), event.nodes.begin(), event.nodes.end());
    return cudaSuccess;
  }
  if (stream.capture != nullptr) {
    if (!event.recorded) return cudaSuccess;
    stream.capture->invalid = true;
    return call.result(cudaErrorStreamCaptureIsolation);
  }
  if (event.work == nullptr) return cudaSuccess;
  return call.result(call.queue(stream, {.run = [] {}, .after = {event.work}}));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  Call call("cudaEventCreateWithFlags");
  if (call.refused()) return call.refusal();
  auto event = std::make_unique<Event>();
  event->context = &call.context();
  event->timing = (flags & cudaEventDisableTiming) == 0;
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  call.machine().event_store.push_back(std::move(event));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  Call call("cudaEventDestroy");
  if (call.refused()) return call.refusal();
  call.event(handle).alive = false;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  Call call("cudaEventRecord");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(stream_handle);
  Event& event = call.event(handle);
  if (event.context != stream.context) return call.result(cudaErrorInvalidResourceHandle);
  if (stream.capture != nullptr) {
    event.capture = stream.capture;
    event.nodes = stream.tail;
    event.work = nullptr;
    event.recorded = true;
    return call.result(stream.capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
  }
  const cudaError_t status = call.queue(stream, {.run = [] {}});
  if (status != cudaSuccess) return call.result(status);
  event.capture = nullptr;
  event.work = stream.last;
  event.recorded = true;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Call call("cudaEventQuery");
  if (call.refused()) return call.refusal();
  const Event& event = call.event(handle);
  if (event.capture != nullptr) return call.result(cudaErrorCapturedEvent);
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  if (event.work == nullptr || event.work->done) {
    call.machine().queue.host_has_seen(event.work);
    return cudaSuccess;
  }
  const WorkRef work = event.work;
  call.machine().queue.nudge(work);
  return call.result(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Call call("cudaEventSynchronize");
  if (call.refused()) return call.refusal();
  const Event& event = call.event(handle);
  if (event.capture != nullptr) return call.result(cudaErrorCapturedEvent);
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  const WorkRef work = event.work;
  call.machine().queue.complete({work});
  call.machine().settle_pools(event.context->device);
  return call.result(call.context().lost ? cudaErrorIllegalAddress : cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  Call call("cudaEventElapsedTime");
  if (call.refused()) return call.refusal();
  const Event& start = call.event(start_handle);
  const Event& end = call.event(end_handle);
  if (!start.timing || !end.timing || start.context != end.context || !start.recorded || !end.recorded) {
    return call.result(cudaErrorInvalidResourceHandle);
  }
  if (start.capture != nullptr || end.capture != nullptr) return call.result(cudaErrorCapturedEvent);
  if (!start.work->done || !end.work->done) return call.result(cudaErrorNotReady);
  *milliseconds = static_cast<float>(end.work->finished_ms - start.work->finished_ms);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  Call call("cudaLaunchHostFunc");
  if (call.refused()) return call.refusal();
  return call.result(call.queue(call.stream(handle), {.host = true, .run = [function, data] { function(data); }}));
}

}  // extern "C"
