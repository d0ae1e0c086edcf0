// ATen/cuda/CUDAEvent.h of libtorch.
#pragma once

#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include <memory>

namespace tenon::cuda {

/// An event that is made when it is first recorded, on the device of that stream.
class CUDAEvent {
 public:
  /// With `timing` elapsed_time() works. libtorch has it off, too.
  explicit CUDAEvent(bool timing = false) : timing_(timing) {}

  bool isCreated() const { return event_ != nullptr; }
  void record() { record(getCurrentCUDAStream()); }
  /// Throws Error for a stream of another device than the first one's.
  void record(const CUDAStream& stream) {
    if (event_ == nullptr) event_ = std::make_unique<Event>(stream.device(), timing_);
    if (!(event_->device() == stream.device()))
      throw Error("Event device " + event_->device().str() + " does not match recording stream's device " +
                  stream.device().str() + ".");
    event_->record(stream);
  }
  /// What is queued on the stream from here on comes after the event. Nothing where it was never recorded.
  void block(const CUDAStream& stream) const {
    if (event_ == nullptr) return;
    device_state(stream.device()).driver().wait(stream, event_->ref());
  }
  /// Whether it was reached, or never recorded.
  bool query() const { return event_ == nullptr || event_->query(); }
  void synchronize() const {
    if (event_ != nullptr) event_->synchronize();
  }
  /// Milliseconds to the other one. Throws Error unless both were recorded with timing and reached.
  float elapsed_time(const CUDAEvent& other) const {
    if (event_ == nullptr || other.event_ == nullptr)
      throw Error("Both events must be recorded before calculating elapsed time.");
    return static_cast<float>(event_->elapsed_time(*other.event_));
  }

 private:
  bool timing_;
  std::unique_ptr<Event> event_;
};

}  // namespace tenon::cuda
