// What others recorded on GPUs, replayed: every segment_alloc and segment_free of their histories, one by one. The
// table in bench/results/fidelity.md is what this test finds; TENON_WRITE_FIDELITY=FILE writes it anew.
#include "replay/support.h"
#include "support/recorded_histories.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/results/fidelity.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

namespace tenon::replay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead =
    "# Device calls of recorded histories, reproduced\n\n"
    "Each file is replayed under the settings that it was recorded with, from the segments that were there when the\n"
    "recording began; a call counts as reproduced when kind, size and event are the same, from the first call on.\n"
    "Written by `TENON_WRITE_FIDELITY=FILE tests/tenon_replay_test --gtest_filter='PublicSnapshots.*'`, and compared "
    "by\n"
    "the same test where the files lie beside the checkout. `public` holds snapshots that others took on GPUs, "
    "`synth`\n"
    "snapshots made from histories by a model of PyTorch's allocator.\n\n"
    "| file | events | from an empty device | calls recorded | reproduced | peak recorded, MiB | replayed | why not |\n"
    "|---|---:|---|---:|---:|---:|---:|---|\n";

/// Why a file cannot be reproduced, where the file itself does not say so.
const std::map<std::string, std::string> kReasons{
    {"mosaic_random.pickle.gz",
     "random entries made to test a tool: its segments are not those of any allocator that served these requests"}};

struct Row {
  std::string text;
  bool is_exact = false;
  bool has_history = false;
};

Row row_of(const fs::path& path, const std::string& kind) {
  const std::string name = path.filename().string();
  const Trace trace = read_traces(path.string()).front();
  const std::string conf = trace.recorded ? trace.recorded->pytorch_conf : "";
  const Fidelity found = measure_fidelity(trace, policy_of_conf(conf), conf);
  const auto reason = kReasons.find(name);
  const std::string why = found.is_exact               ? ""
                          : reason != kReasons.end()   ? reason->second
                          : !found.why_unknown.empty() ? found.why_unknown
                                                       : found.sentence();
  const auto mib = [](std::uint64_t bytes) { return fmt::format("{:.0f}", static_cast<double>(bytes) / MiB); };
  const bool whole = trace.recorded && trace.recorded->is_whole;
  return {fmt::format("| {}/{} | {} | {} | {} | {} | {} | {} | {} |\n", kind, name, trace.facts.events,
                      !found.is_known ? "no history"
                      : whole         ? "yes"
                                      : "no",
                      found.recorded_actions,
                      found.is_known && reason == kReasons.end()
                          ? fmt::format("{}{}", found.matching_actions, found.is_exact ? " (all)" : "")
                          : "-",
                      found.is_known ? mib(found.recorded_peak_bytes) : "-",
                      found.is_known ? mib(found.replayed_peak_bytes) : "-", why),
          found.is_exact, found.is_known && reason == kReasons.end()};
}

TEST(PublicSnapshots, EveryDeviceCallOfARealHistoryIsReproduced) {
  const fs::path folder = test::recorded_histories();
  std::vector<std::pair<fs::path, std::string>> files;
  for (const auto& [sub, kind] : {std::pair("public", "public"), std::pair("synth_snapshots", "synth")}) {
    TENON_NEEDS_RECORDED(sub);
    for (const auto& entry : fs::directory_iterator(folder / sub))
      if (entry.path().string().ends_with(".pickle.gz")) files.emplace_back(entry.path(), kind);
  }
  std::sort(files.begin(), files.end());
  std::string table = kHead;
  for (const auto& [path, kind] : files) {
    const Row row = row_of(path, kind);
    EXPECT_TRUE(row.is_exact || !row.has_history) << row.text;
    table += row.text;
  }
  if (const char* target = std::getenv("TENON_WRITE_FIDELITY")) std::ofstream(target) << table;
  std::ifstream recorded(TENON_SOURCE_DIR "/bench/results/fidelity.md");
  std::stringstream text;
  text << recorded.rdbuf();
  EXPECT_EQ(text.str(), table) << "bench/results/fidelity.md says something else";
}

}  // namespace
}  // namespace tenon::replay
