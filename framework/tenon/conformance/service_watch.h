// ServiceWatch: an allocator in service held against its contract, at a price that a training run does not feel. What
// costs more, whether blocks overlap and lie in memory that the device gave, is looked at in stretches of the run.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/watch/call_board.h>
#include <tenon/memory/watch/watched_allocator.h>

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::conformance {

/// What is wrong with an allocator: the first of each kind in words, and how often it happened. Thread-safe.
class TENON_API ServiceFaults {
 public:
  enum class Kind : std::uint8_t {
    kRequest,
    kBytes,
    kNull,
    kAlignment,
    kPlace,
    kMisuse,
    kLeak,
    kFigures,
    kException,
    kCount
  };
  /// Returns what is known of the moment: ", in step 3 of 100".
  using Moment = std::function<std::string()>;

  /// `on_new` is called after the first of each kind was added.
  explicit ServiceFaults(Moment moment, std::function<void()> on_new = {})
      : moment_(std::move(moment)), on_new_(std::move(on_new)) {}
  void add(Kind kind, const std::string& what);
  bool empty() const;
  /// "handed out 512 bytes for a request of 1024, in step 1 of 4; the first of 311 times".
  std::vector<std::string> sentences() const;

 private:
  struct Fault {
    std::string text;
    std::uint64_t times = 0;
    std::uint64_t order = 0;
  };
  const Moment moment_;
  const std::function<void()> on_new_;
  mutable std::mutex mutex_;
  std::array<Fault, static_cast<std::size_t>(Kind::kCount)> faults_;
  std::uint64_t kinds_ = 0;
};

/// A sentence without how often it happened: two parts of a run may have counted the same fault.
TENON_API std::string_view without_times(std::string_view sentence);

/// An allocator did what nothing above it can go on from: it threw what may not leave it, or answered with a null
/// address. The message names it, the call and what it did.
class TENON_EXPORT EndOfService : public Error {
 public:
  using Error::Error;
};

/// What makes `info`'s allocators: each of their calls is on the board while it is under way, as one of `number`, and
/// what they do wrong in `faults`. A segment that is given back twice, or with another size than it has, goes back as
/// it was taken. Board and faults outlive the allocators, whose calls may throw EndOfService, a fault too.
TENON_API AllocatorInfo watched_in_service(const AllocatorInfo& info, CallBoard& board, ServiceFaults& faults,
                                           std::uint8_t number = 0);

}  // namespace tenon::conformance
