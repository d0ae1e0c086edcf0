// The word in which kernels of one device leave what they found: Note [Late errors] in error_word.h.
#pragma once

#include "error_word.h"
#include "memory/pinned_memory_source.h"

#include <mutex>

namespace tenon::cuda {

class DeviceErrors {
 public:
  explicit DeviceErrors(PinnedMemorySource& memory) : memory_(memory) {}
  ~DeviceErrors() { memory_.release(word_, sizeof(ErrorWord)); }
  DeviceErrors(const DeviceErrors&) = delete;
  DeviceErrors& operator=(const DeviceErrors&) = delete;

  /// Taken when the first kernel asks for it.
  ErrorWord* word();
  /// After a synchronisation: throws what a kernel found since the last time, as Error or IndexError.
  void report();

 private:
  PinnedMemorySource& memory_;
  std::mutex mutex_;  // guards what follows
  ErrorWord* word_ = nullptr;
};

}  // namespace tenon::cuda
