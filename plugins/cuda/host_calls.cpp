// Host functions in stream order: queued through cudaLaunchHostFunc.
#include "host_calls.h"

#include <utility>

namespace tenon::cuda {

unsigned long long capture_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  check(cudaStreamGetCaptureInfo(stream, &status, &id), "cudaStreamGetCaptureInfo");
  return status == cudaStreamCaptureStatusActive ? id : 0;
}

// CUDA calls back from a C frame: an exception there has nowhere to go, so it ends the program as in a thread.
void HostCalls::run_once(void* data) noexcept {
  Calls mine;
  {
    auto* call = static_cast<Call*>(data);
    const std::lock_guard lock(call->owner->mutex_);
    mine.splice(mine.begin(), call->owner->queued_, call->self);
  }
  mine.front().work();
}

void HostCalls::run_again(void* data) noexcept { static_cast<Call*>(data)->work(); }

void HostCalls::enqueue(cudaStream_t stream, std::function<void()> work) {
  const unsigned long long capture = capture_of(stream);
  Call* call = nullptr;
  Calls* calls = nullptr;
  {
    const std::lock_guard lock(mutex_);
    calls = capture == 0 ? &queued_ : &captured_[capture];
    call = &calls->emplace_back(Call{.owner = this, .work = std::move(work), .self = {}});
    call->self = std::prev(calls->end());
  }
  const cudaError_t status = cudaLaunchHostFunc(stream, capture == 0 ? run_once : run_again, call);
  if (status == cudaSuccess) return;
  {
    const std::lock_guard lock(mutex_);
    calls->erase(call->self);
  }
  check(status, "cudaLaunchHostFunc");
}

HostCalls::Calls HostCalls::take(unsigned long long capture) {
  const std::lock_guard lock(mutex_);
  const auto found = captured_.find(capture);
  if (found == captured_.end()) return {};
  Calls calls = std::move(found->second);
  captured_.erase(found);
  return calls;
}

}  // namespace tenon::cuda
