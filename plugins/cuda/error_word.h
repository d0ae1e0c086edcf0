// Errors of data that a kernel finds: an index out of bounds, a divisor of zero.
//
// Note [Late errors]: the device runs behind the program, so a kernel cannot throw. The first that finds bad data
// writes what it found into a word of page-locked host memory, goes on with what does no harm, and the next
// synchronisation throws. The word needs no copy and no call, and works in a captured graph: the synchronisation after
// a replay reads it.
#pragma once

namespace tenon::cuda {

/// What an error says, written down once beside the kernel that finds it, in static memory.
struct ErrorText {
  enum class Kind { kError, kIndexError };
  Kind kind = Kind::kError;
  const char* kernel;  ///< its operator's name
  const char* format;  ///< for printf, with up to three %lld
};

/// The word. The device finds it at the host's address.
struct ErrorWord {
  enum State : unsigned { kNone, kWriting, kWritten };
  unsigned state = kNone;
  const ErrorText* text = nullptr;
  long long numbers[3] = {};
};

}  // namespace tenon::cuda
