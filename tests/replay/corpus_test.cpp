// Every recorded history that lies beside the checkout loads, and what is known of each is found again.
#include "replay/support.h"
#include "support/recorded_histories.h"

#include <map>

namespace tenon::replay {
namespace {

using test::recorded_histories;

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && !name.ends_with(".md")) files.push_back(entry.path());
  }
  return files;
}

TEST(Corpus, EveryTextHistoryAgreesWithItsHeader) {
  TENON_NEEDS_RECORDED("");
  for (const auto& file : files_in(recorded_histories())) {
    const Trace trace = read_traces(file.string()).front();
    EXPECT_EQ(std::to_string(trace.facts.peak_requested_bytes), trace.header.at("peak_live_bytes")) << file;
    EXPECT_EQ(std::to_string(trace.facts.total_requested_bytes), trace.header.at("total_alloc_bytes")) << file;
    EXPECT_EQ(std::to_string(trace.facts.marks), trace.header.at("markers")) << file;
  }
}

TEST(Corpus, EveryPublishedFileLoads) {
  for (const char* folder : {"public", "synth_snapshots", "chrome"}) {
    TENON_NEEDS_RECORDED(folder);
    for (const auto& file : files_in(recorded_histories() / folder)) {
      const std::vector<Trace> traces = read_traces(file.string(), {.with_stacks = true});
      ASSERT_EQ(traces.size(), 1u) << file;
      EXPECT_GT(traces.front().facts.peak_requested_bytes, 0u) << file;
    }
  }
}

TEST(Corpus, TheRingBufferSnapshotIsSeeded) {
  TENON_NEEDS_RECORDED("synth_snapshots");
  const Trace trace =
      read_traces((recorded_histories() / "synth_snapshots/gpt2_varlen_midrun_ring.pickle.gz").string()).front();
  EXPECT_EQ(trace.facts.seeded_blocks, 162u + 592u);
}

TEST(Corpus, AProfilersTraceIsTheTextHistoryOfTheSameRun) {
  TENON_NEEDS_RECORDED("chrome");
  const Trace chrome = read_traces((recorded_histories() / "chrome/resnet50_train.pt.trace.json.gz").string()).front();
  const Trace text = read_traces((recorded_histories() / "resnet50_train.trace.gz").string()).front();
  EXPECT_EQ(chrome.facts.peak_requested_bytes, text.facts.peak_requested_bytes);
}

TEST(Corpus, EveryPrefixOfASnapshotIsRefusedOrRead) {
  TENON_NEEDS_RECORDED("public");
  InputFile input((recorded_histories() / "public/cs336_tiny.pickle.gz").string());
  std::string bytes;
  for (int byte = input.get(); byte >= 0; byte = input.get()) bytes.push_back(static_cast<char>(byte));
  for (std::size_t size = 0; size + 1 < bytes.size(); size += 97)
    EXPECT_THROW(read_bytes(std::string_view(bytes).substr(0, size)), TraceError) << size;
}

}  // namespace
}  // namespace tenon::replay
