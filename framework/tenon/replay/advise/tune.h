// Tune: searches allocator settings for traces, by replay. What decides, in this order: it runs at the capacity; the
// peak of reserved memory (within 1 %); the smallest capacity from which on every larger one runs; device calls; fewer
// settings.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/advise/capacity_curve.h>
#include <tenon/replay/advise/capacity_walk.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/replay/results/trust.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

struct TuneOptions {
  std::optional<std::uint64_t> capacity_bytes;
  double budget_seconds = 60;
  std::function<double()> elapsed_seconds;  ///< what the budget is compared with: the time since the start if empty
  std::function<bool()> is_stopping;        ///< once it says so, replays are ended: what is measured is judged
  unsigned jobs = 0;
  std::vector<FitCandidate> allocators;  ///< Tenon's own, besides PyTorch's settings
  std::vector<Trust> trust;              ///< by trace, where it was judged already
  std::function<void(std::size_t done, std::size_t total)> progress;
};

/// What one of Tenon's allocators saves beside the setting of PyTorch's that needs least, of all that were tried and
/// run.
struct Saving {
  std::string than;                        ///< that setting
  std::int64_t bytes = 0;                  ///< of peak reserved, in the history that needs most
  double fraction = 0;                     ///< of its peak reserved, mean over the traces
  std::optional<std::int64_t> safe_bytes;  ///< of the safe capacity; negative where more is needed
};

/// One setting with its figures, summed or taken at the worst over the traces.
struct Candidate {
  std::string label;  ///< the whole conf string, with what is kept of the recorded one; or the allocator's SPEC
  bool is_pytorch = true;
  bool is_baseline = false;  ///< what the recording used, or PyTorch's defaults
  StackConfig policy;
  std::uint64_t settings = 0;             ///< how many differ from the defaults
  std::uint64_t peak_reserved_bytes = 0;  ///< without a limit, the largest over the traces
  double relative_peak = 0;               ///< mean over the traces of peak reserved / peak requested
  std::uint64_t device_calls = 0;
  std::optional<std::uint64_t> safe_from_bytes;  ///< every larger capacity runs; only measured for finalists
  bool is_smallest = false;                      ///< no capacity below safe_from_bytes is safe
  bool is_sampled = false;                       ///< the setting looks at the capacity itself: single ones were tried
  std::uint64_t examined_from_bytes = 0;  ///< nothing is known of smaller capacities that are above the live peak
  std::optional<std::uint64_t> ooms_at_capacity;
  std::uint64_t peak_at_capacity = 0;
  std::optional<std::uint64_t> first_oom_event;  ///< at the capacity; of the first trace that runs out there
  bool is_pareto = false;
  bool is_recommended = false;
  bool is_planned = false;                 ///< serves from a plan of the history: it presumes that steps repeat
  std::optional<Saving> saving;            ///< of Tenon's, where it is something and not paid for by device calls
  bool is_for_tenon = false;               ///< what recommended_toml sets
  std::vector<CapacityPoint> sensitivity;  ///< over all traces, ascending: each up to the next, unless sampled
  std::optional<CapacityWalk> walk;        ///< while it is searched, unless sampled
  std::string failure;
};

struct TuneResult {
  std::vector<Candidate> finalists;  ///< best first
  std::size_t evaluated = 0;         ///< of the space
  std::size_t space_size = 0;        ///< sensible combinations of PyTorch's settings
  bool is_exhaustive = false;
  bool is_interrupted = false;             ///< by is_stopping; without a finalist where nothing was measured by then
  std::uint64_t peak_requested_bytes = 0;  ///< largest over the traces
  std::vector<Trust> trust;                ///< by trace
  std::vector<std::string>
      recorded_confs;         ///< by trace; empty where it was recorded under the defaults or does not say
  std::string recorded_conf;  ///< of all traces; empty as well where they differ
  std::vector<std::string> dropped_settings;  ///< of it, those that PyTorch's native allocator refuses: "key:value"
  bool is_baseline_recorded = false;          ///< the baseline is what a recording says it ran under
  std::string recommended_conf;               ///< as replayed, what was set before merged in; empty: the defaults
  std::string recommended_toml;
  double seconds = 0;
};

TENON_API TuneResult tune(const std::vector<Trace>& traces, const TuneOptions& options);

/// For tests, beside what the search found: the relative peak of every sensible combination of PyTorch's settings.
TENON_API std::vector<Candidate> exhaustive_grid(const std::vector<Trace>& traces, unsigned jobs);

}  // namespace tenon::replay
