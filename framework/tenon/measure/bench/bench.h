// The bench: allocators under workloads, in turn.
//
//   for each round                     drawn by the seed: order of the workloads, and where memory lies; another core
//     for each workload                a process for each subject: load, warm up
//       for each slice                 subjects in an order drawn by the seed, about 1 ms each; 200 ms of threads
//         figure of the round = median of its slices; ratio of the round = median of the slices' ratios
//
// Rounds are independent of each other, and what disturbs the machine for longer than a slice disturbs all subjects
// alike: the ratios of a round are pairs, and the interval is that of their median over the rounds (order statistics).
//
// Note [Slices of threads]
// The time of threads ends with the last one of them. Where there are more threads than processors, each gets one for
// some milliseconds at a time, and others wait: in a stretch of 1 ms some begin when others have ended, all of them
// begin with cold caches, and a processor stands still at the end for as long as the stretch. So a slice is 200 times
// as long, of which the end is a fiftieth, and there are a fifth as many.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/bench/workload.h>
#include <tenon/measure/statistics/verdict.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::measure {

struct BenchOptions {
  std::vector<std::string> specs;  ///< of the allocators; the first is what the others are held against
  std::vector<WorkloadSpec> workloads;
  int rounds = 20;
  int slices = 14;        ///< a round; of threads fewer, and
  double slice_ns = 1e6;  ///< longer: see Note [Slices of threads]
  std::uint64_t seed = 47;
  double confidence = 0.99;  ///< of all verdicts together
  double deadline_s = 10;    ///< for each answer of a subject's process
  bool pin = true;           ///< the subjects of a round share a core
  /// Told after each workload of a round: how many of these are done, of how many.
  std::function<void(std::size_t done, std::size_t total)> progress;
  /// Asked between slices: what is measured until then is the result, without the round of the workload under way.
  std::function<bool()> is_stopping;
};

/// One subject under one workload.
struct TENON_API BenchCell {
  std::vector<double> round_ns;      ///< nanoseconds per pair, by round
  std::vector<double> round_ratios;  ///< to the first subject, by round; empty for the first itself
  std::string failure;               ///< empty, or why there are no figures
  bool is_too_slow = false;          ///< that is why: it was at work at its deadline, and broke no promise

  double ns() const;                            ///< median over the rounds
  std::optional<Interval> ns_interval() const;  ///< of 95 %
};

struct BenchSubject {
  std::string name;         ///< as typed; of several that are typed alike, with a number
  std::string spec;         ///< empty: the harness
  std::string plugin_json;  ///< where it came from
};

struct TENON_API BenchResult {
  std::vector<BenchSubject> subjects;  ///< the harness is the last
  std::vector<std::string> workloads;
  std::vector<std::vector<BenchCell>> cells;  ///< by workload, then by subject
  double confidence = 0;                      ///< of one verdict, so that all of them together have what was asked for
  int rounds = 0;                             ///< that every workload had
  bool is_interrupted = false;                ///< before all the rounds that were asked for

  std::size_t allocators() const { return subjects.size() - 1; }
  /// Time of a subject over that of another, for one workload or, past the last, the geometric mean of all workloads
  /// by round.
  std::vector<double> ratios(std::size_t workload, std::size_t subject, std::size_t other) const;
  /// Empty where there are too few rounds, or figures are missing.
  std::optional<Interval> ratio(std::size_t workload, std::size_t subject, std::size_t other) const;
  bool has_failed() const;
};

/// The SPECs; of several that are typed alike, the later ones with a number: "caching#2".
TENON_API std::vector<std::string> subject_names(const std::vector<std::string>& specs);

/// 20, or as many as it takes for a verdict on each of so many allocators and workloads, with some to spare; up to 60
/// where there are few of them: on a busy machine 5 % take that many.
TENON_API int enough_rounds(const BenchOptions& options);

/// Throws an Error with the exit code of usage or of plugins for a SPEC that names nothing; what an allocator does
/// wrong later is in its cells. One that hands out overlapping memory is not timed at all.
TENON_API BenchResult run_bench(const BenchOptions& options);

}  // namespace tenon::measure
