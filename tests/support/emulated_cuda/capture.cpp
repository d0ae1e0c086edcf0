// What is queued goes to the stream, or into a capture. Declared in machine.h.
#include "support/emulated_cuda/machine.h"

#include <algorithm>
#include <utility>

namespace tenon::emulated_cuda {

namespace {

/// The legacy stream waits for the blocking streams of its device, and they wait for it.
void add_legacy_order(Machine& machine, const Stream& stream, Work& work) {
  if (stream.legacy) {
    for (const Stream* other : machine.streams) {
      if (other->context == stream.context && other->blocking) work.after.push_back(other->last);
    }
  } else if (stream.blocking) {
    work.after.push_back(machine.legacy[static_cast<std::size_t>(stream.context->device)]->last);
  }
}

/// Using the legacy stream would tie it to a captured stream, which cannot be.
bool ties_to_a_capture(Machine& machine, const Stream& stream) {
  if (!stream.legacy) return false;
  bool tied = false;
  for (Stream* other : machine.streams) {
    if (other->context != stream.context || !other->blocking || other->capture == nullptr) continue;
    other->capture->invalid = true;
    tied = true;
  }
  return tied;
}

}  // namespace

bool Call::forbidden_by_capture() {
  const cudaStreamCaptureMode mode = thread_state().mode;
  if (mode == cudaStreamCaptureModeRelaxed) return false;
  bool forbidden = false;
  for (const auto& capture : machine_.captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool counts = own ? capture->mode != cudaStreamCaptureModeRelaxed
                            : capture->mode == cudaStreamCaptureModeGlobal && mode == cudaStreamCaptureModeGlobal;
    if (!counts) continue;
    capture->invalid = true;
    forbidden = true;
  }
  return forbidden;
}

cudaError_t Call::queue(Stream& stream, Work work) {
  work.what = name_;
  work.device = stream.context->device;
  work.told.what = name_;
  work.told.device = work.device;
  work.told.stream = stream.id;
  if (tool().tag != nullptr) work.told.tag = tool().tag();
  if (ties_to_a_capture(machine_, stream)) return cudaErrorStreamCaptureImplicit;
  if (stream.capture != nullptr) {
    if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
    stream.capture->nodes.push_back({std::move(work), stream.tail});
    stream.tail = {stream.capture->nodes.size() - 1};
    return cudaSuccess;
  }
  add_legacy_order(machine_, stream, work);
  work.after.push_back(stream.last);
  auto queued = std::make_shared<Work>(std::move(work));
  stream.last = queued;
  machine_.queue.add(queued);
  return cudaSuccess;
}

}  // namespace tenon::emulated_cuda
