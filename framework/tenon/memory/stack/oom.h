// Who wants to know that memory ran out, and what to tell the user.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/memory/memory_source.h>
#include <tenon/memory/stats.h>

#include <cstdint>
#include <functional>
#include <string>

namespace tenon {

/// Runs after a request failed for good and before OutOfMemory is thrown, on the failing thread, with no lock held: it
/// may read statistics and take snapshots. What it throws is dropped.
using OomObserver = std::function<void(const OutOfMemoryInfo& info)>;

/// Adds an observer for all devices (PyTorch: _cuda_attach_out_of_memory_observer); the id takes it away again.
TENON_API std::uint64_t add_oom_observer(OomObserver observer);
TENON_API void remove_oom_observer(std::uint64_t id);

/// What is known at the moment of failure besides the figures.
struct OomCircumstances {
  const MemoryStats& stats;
  bool has_virtual_memory = false;
  bool is_expandable = false;     ///< the policy already grows segments page by page
  bool splits_all_sizes = true;   ///< no max_split_size is set
  std::size_t refused_bytes = 0;  ///< what the policy asked the device for in vain; 0: unknown
};

/// Why a request failed, as far as the figures tell.
enum class OomCause : std::uint8_t {
  kLimit,     ///< a configured limit is below what was needed, and the device is not
  kTooLarge,  ///< the request alone is larger than the device
  kPieces,    ///< what is cached would be enough, but no cached block is: another policy may serve it
  kFull       ///< what lives and what was asked for are more than there is
};
TENON_API OomCause oom_cause(const OutOfMemoryInfo& info);

/// What of a device that is full others have: other processes, other allocators. Two figures of `info` tell how much,
/// and `names` who, where somebody can: "3.0 GiB of the device are in other hands: process 4711 (python) has 2.9 GiB".
/// Empty where a limit decides, and where hardly anything is.
TENON_API std::string oom_others(const OutOfMemoryInfo& info, const std::string& names);

/// Names the other processes that use a device, with what they have of it; empty: nobody knows.
using OtherProcesses = std::function<std::string(const std::string& device)>;
/// Who is asked for them when memory has run out.
TENON_API void set_other_processes(OtherProcesses names);

/// One sentence on what would have helped; never a setting that is on already. Empty when nothing is known.
TENON_API std::string oom_hint(const OutOfMemoryInfo& info, const OomCircumstances& circumstances);

}  // namespace tenon
