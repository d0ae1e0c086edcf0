// Journal: the calls of an allocator as they are made, in memory that a child process shares with its parent, so that
// after a crash or a hang the parent knows which call was under way and what led there.
#pragma once

#include <tenon/conformance/history.h>
#include <tenon/memory/watch/call.h>
#include <tenon/memory/watch/crash_note.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::conformance {

struct RunSettings;

class Journal {
 public:
  struct Entry {
    CallFacts facts;
    std::atomic<bool> is_done{false};
  };

  Journal();
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The child writes. A creation begins the list anew.
  Entry& begin(const CallFacts& facts);
  void end(Entry& entry, std::uint64_t address = 0);
  void note_seed(std::uint64_t seed);  ///< of the history that is about to run
  void note_settings(const RunSettings& settings);
  CrashNote& crash_note();

  bool judges_requests() const;  ///< whether a Block::request that is not the request ends the check

  // The parent reads.
  void clear();
  std::uint64_t progress() const;  ///< rises with each call's beginning and end
  std::uint64_t calls() const;     ///< of all allocators since clear()
  bool has_seed() const;
  std::uint64_t seed() const;
  /// The call that was under way, "allocate(4096 bytes, alignment 64, stream 0)"; empty when none was.
  std::string in_flight() const;
  /// Its name alone, "allocate".
  std::string in_flight_name() const;
  /// What was done to the last allocator, up to the call under way; empty when it does not fit the journal.
  Operations operations() const;
  RunSettings settings() const;
  const CrashNote& crash_note() const;

 private:
  struct Page;
  void begin_anew();
  const Entry* under_way() const;
  Page* page_ = nullptr;
};

}  // namespace tenon::conformance
