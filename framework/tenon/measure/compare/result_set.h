// What one file of results holds, whichever verb wrote it: cases with their figures.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::measure {

enum class ResultKind { kRun, kSweep, kReplay, kBench };
/// "a run", "a sweep" …
TENON_API std::string kind_name(ResultKind kind);

struct ResultFigure {
  double value = 0;
  /// Independent measurements of it: of several results of a side, one each. Empty where the side is one result: what
  /// is within one was measured at one time, and a machine is slower at one time than at another.
  std::vector<double> samples;
  /// Passes of a replay, rounds of a bench, all of one result: how its figure scattered while it was taken.
  std::vector<double> rounds = {};
};

/// The field of replays and benches that an allocator is.
inline constexpr char kAllocatorField[] = "allocator";

/// The allocator that a case is of, where it is a field of it: one of a replay, a bench, a sweep over allocators.
struct ResultAllocator {
  std::string field;    ///< "allocator", "allocator.name"; empty where it is not a field
  std::string name;     ///< of its plugin: "buddy"
  std::string options;  ///< "chunk=1MiB"
  std::string file;     ///< that was named; empty for one found by its name
};

/// Memory over the steps of a run or the events of a replay.
struct ResultCurve {
  std::string name;  ///< "requested", "reserved"
  std::vector<std::pair<double, double>> points;
};

/// A run, a cell of a sweep, a history under an allocator, a workload under an allocator.
struct TENON_API ResultCase {
  ResultKind kind = ResultKind::kRun;
  /// What tells it from other cases, in the order of its name: {"trace", …}, {"allocator", …}
  std::vector<std::pair<std::string, std::string>> fields;
  std::string name;  ///< the values of its fields: "gpt2_adam, caching"
  ResultAllocator allocator;
  std::map<std::string, ResultFigure> figures;  ///< by the key of a FigureInfo
  std::string losses_hash;                      ///< of a run; empty where there is none
  std::vector<double> losses;                   ///< of a run that wrote all of them
  std::size_t first_step = 0;                   ///< steps that were done before the first of these losses
  std::string failure;                          ///< empty, or why its figures mean nothing
  std::string mark;                             ///< of a failure, a word: "failed", "disqualified"
  std::int64_t cells_at_a_time = 1;             ///< of a sweep: how many shared the machine with it at most
  bool is_resumed = false;                      ///< of a run: it was interrupted, and went on
  std::string ran_out;                          ///< empty, or "OOM at event 12"
  bool is_oom_event_known = false;              ///< "OOM" alone says not where
  std::vector<ResultCurve> curves;              ///< none where the file holds no timeline

  /// Empty where there is none of that name.
  std::string field(std::string_view key) const;
};

struct ResultSet {
  std::string path;                  ///< as typed; of several results of one side, the first "and 4 more"
  std::vector<std::string> results;  ///< of a side of several, their paths
  ResultKind kind = ResultKind::kRun;
  std::vector<ResultCase> cases;
  std::map<std::string, std::string> settings;  ///< of a run, and what all cells of a sweep share
  std::map<std::string, std::string> plugins;   ///< "plugin mine": "sha256:" and the first digits, of each build of it
  std::vector<std::string> noise;               ///< what was said of a machine that was busy meanwhile
  std::map<std::string, std::string> environment;  ///< host, cpu, compiler, build type, version
};

/// Reads result.json of a run or a sweep (or the folder that it lies in; of a sweep what its cells left beside it too),
/// or what `--format json` of replay, run and bench wrote; "-" is standard input. Throws ConfigError that names the
/// file and says what it is instead.
TENON_API ResultSet read_result(const std::string& path);

/// The same from text that was read already; `path` is for messages.
TENON_API ResultSet parse_result(const std::string& text, const std::string& path);

}  // namespace tenon::measure
