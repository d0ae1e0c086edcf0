// Errors of data that a kernel finds, thrown by the synchronisation that comes next.
#include "device_errors.h"

#include <atomic>
#include <cstdio>
#include <new>
#include <string>

namespace tenon::cuda {

ErrorWord* DeviceErrors::word() {
  const std::lock_guard lock(mutex_);
  if (word_ == nullptr) {
    void* memory = memory_.acquire(sizeof(ErrorWord));
    if (memory == nullptr) throw Error(memory_.traits().device + " has no room for the word of device errors");
    word_ = new (memory) ErrorWord;
  }
  return word_;
}

void DeviceErrors::report() {
  const std::lock_guard lock(mutex_);
  if (word_ == nullptr) return;
  const std::atomic_ref<unsigned> state(word_->state);
  if (state.load(std::memory_order_acquire) != ErrorWord::kWritten) return;
  const ErrorText text = *word_->text;
  const long long(&n)[3] = word_->numbers;
  char message[256];
  std::snprintf(message, sizeof message, text.format, n[0], n[1], n[2]);
  state.store(ErrorWord::kNone, std::memory_order_release);
  const std::string whole = std::string(message) + " (found by '" + text.kernel +
                            "', which ran behind the program: an operator before this synchronisation was given it)";
  if (text.kind == ErrorText::Kind::kIndexError) throw IndexError(whole);
  throw Error(whole);
}

}  // namespace tenon::cuda
