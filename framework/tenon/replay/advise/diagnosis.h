// Diagnosis: a run that died, or a smaller device. What was in use is found out from the history, the other settings
// are replayed beside it, and the recording is judged: how far does that prove anything?
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/results/growth.h>
#include <tenon/replay/results/holders.h>
#include <tenon/replay/results/trust.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {

/// What the user says of the run, where the file does not or is overruled.
struct DiagnosisRequest {
  std::uint64_t capacity_bytes = 0;  ///< 0: what the process could have when the recording ran out of memory
  std::string allocator;             ///< Tenon's, as a SPEC
  std::string pytorch_conf;
  std::vector<std::string> also;      ///< further allocators of Tenon's to try, as SPECs
  bool names_all_frames = false;      ///< of call stacks; otherwise the program's own (own_frames.h)
  std::function<bool()> is_stopping;  ///< asked now and then: what is replayed until then is the answer
};

/// What is found out about one history.
struct Diagnosis {
  std::string trace;
  std::string file;                           ///< that the history is in
  std::optional<int> device;                  ///< its number, where the file has the histories of several
  std::optional<RecordedOom> failed_request;  ///< the last one
  bool is_pytorch = true;                     ///< what was in use is PyTorch's, so are the others
  FitReport report;
  Trust trust;
  std::vector<std::string> dropped_settings;  ///< of the recording's, which PyTorch's native allocator does not take
  /// Who held what lived at the peak, largest first, each with its call_site(); empty where the file has no stacks.
  std::vector<std::pair<std::string, Holder>> holders;
  HistoryGrowth growth;                      ///< what there is more of with every step
  std::optional<FitAttempt> without_growth;  ///< what was in use, replayed without that; empty where nothing grows
  /// The stretch that would have served the failed request, and what pins it, the largest first; where the file shows
  /// the device's memory.
  std::size_t hole_bytes = 0;
  std::vector<std::pair<std::string, std::size_t>> pins;
  /// What lived at the peak, in bytes by Purpose; empty where the file does not say.
  std::vector<std::uint64_t> purposes;
  bool is_interrupted = false;  ///< not every setting was replayed, and the recording was not judged
  bool is_known = true;         ///< false: the file is too poor, so that a setting did not run out proves nothing

  /// More lives at once than the device has: that much is certain however poor the history is.
  TENON_API bool is_hopeless() const;
  /// As a user sets it: PyTorch's string, or a SPEC of Tenon's; with the name that a plan of the history gets.
  TENON_API std::string how_to_set(const FitAttempt& attempt, bool is_own = false) const;
  /// What has gone wrong in itself, one sentence for each setting.
  TENON_API std::vector<std::string> complaints() const;
};

/// The allocator of Tenon's that the history says it was recorded under, as `tenon run` writes it.
struct RecordedPolicy {
  std::string name, options;
  std::string plugin;  ///< the file that supplied it, where the history says so
};
TENON_API std::optional<RecordedPolicy> recorded_policy(const Trace& trace);

/// Throws ConfigError for a setting or an allocator that is unknown.
TENON_API Diagnosis diagnose(const Trace& trace, const DiagnosisRequest& request);

/// "caching:max_split_size=128MiB", as allocator_from_spec takes it.
TENON_API std::string spec_of(const StackConfig& config);

}  // namespace tenon::replay
