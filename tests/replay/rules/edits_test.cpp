// Small files of every format with one thing changed: what is read of each, or why it is refused. Recorded in edits.txt
// as a hash for each kind of change; who changes a reading or a message on purpose writes the table anew
// (support/recorded_table.h), with the filter EditsTable*.
#include "replay/drawn_history.h"
#include "replay/formats/read_formats.h"
#include "replay/support.h"
#include "support/recorded_table.h"

#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

test::RecordedTable& table_of_edits() {
  static test::RecordedTable table("tests/replay/rules/edits.txt");
  return table;
}

/// All that is read, or the refusal: of broken JSON without the words of the library that found it.
std::string read_or_refused(const std::function<std::vector<Trace>()>& read) {
  try {
    std::string all;
    for (const Trace& trace : read()) {
      all += all_of(trace);
      if (!trace.recorded) continue;
      for (const RecordedSegment& segment : trace.recorded->acquired)
        all += fmt::format("{} {}\n", segment.address, segment.bytes);
    }
    return all;
  } catch (const Error& error) {
    const std::string words = error.what();
    const std::size_t json = words.find("invalid JSON");
    return "refused: " + (json == std::string::npos ? words : words.substr(0, json));
  }
}

std::string read_or_refused(const std::string& bytes, const ReadOptions& options) {
  return read_or_refused([&] { return read_bytes(bytes, options); });
}

using Edit = std::function<void(std::string& bytes, std::size_t at)>;
const std::vector<std::pair<const char*, Edit>>& edits() {
  static const auto* made = new std::vector<std::pair<const char*, Edit>>{
      {"cut", [](std::string& bytes, std::size_t at) { bytes.resize(at); }},
      {"without a byte", [](std::string& bytes, std::size_t at) { bytes.erase(at, 1); }},
      {"a byte twice", [](std::string& bytes, std::size_t at) { bytes.insert(at, 1, bytes[at]); }},
      {"one more", [](std::string& bytes, std::size_t at) { ++bytes[at]; }},
      {"one less", [](std::string& bytes, std::size_t at) { --bytes[at]; }},
      {"nothing", [](std::string& bytes, std::size_t at) { bytes[at] = '0' & (bytes[at] < ' ' ? 0 : 0xff); }},
      {"most", [](std::string& bytes, std::size_t at) { bytes[at] = bytes[at] < ' ' ? '\xff' : '9'; }},
      {"a space", [](std::string& bytes, std::size_t at) { bytes[at] = ' '; }},
      {"a long number",
       [](std::string& bytes, std::size_t at) {
         if (bytes[at] >= '0' && bytes[at] <= '9') bytes.insert(at, "4611686018427387904");
       }},
      {"two bytes exchanged",
       [](std::string& bytes, std::size_t at) {
         if (at + 1 < bytes.size()) std::swap(bytes[at], bytes[at + 1]);
       }},
      {"without a line",
       [](std::string& bytes, std::size_t at) {
         if (at == 0 || bytes[at - 1] == '\n') bytes.erase(at, bytes.find('\n', at) - at + 1);
       }},
      {"a line twice", [](std::string& bytes, std::size_t at) {
         if (at == 0 || bytes[at - 1] == '\n') bytes.insert(at, bytes.substr(at, bytes.find('\n', at) - at + 1));
       }}};
  return *made;
}

using Outcome = std::function<std::string(const std::string& bytes)>;

/// Of each kind of edit, at `most_places` of the file, what comes of all of them together.
std::string hashes_of_edits(const std::string& bytes, std::size_t most_places, const Outcome& outcome_of) {
  std::string hashes;
  const std::size_t stride = 1 + bytes.size() / most_places;
  for (const auto& [what, edit] : edits()) {
    std::string outcomes;
    for (std::size_t at = 0; at < bytes.size(); at += stride) {
      std::string edited = bytes;
      edit(edited, at);
      if (edited != bytes) outcomes += outcome_of(edited) + "\n";
    }
    hashes += fmt::format(", {} {}", what, hash_of(outcomes));
  }
  return hashes;
}

void expect_edits_read(const Format& format, const std::string& name, const std::string& bytes,
                       std::size_t most_places) {
  const ReadOptions options{.with_stacks = true, .with_columns = true};
  const auto outcome_of = [&](std::string edited) {
    if (format.mend != nullptr) {  // or a checksum refuses all of them
      std::vector<std::uint8_t> mended(edited.begin(), edited.end());
      format.mend(mended);
      edited.assign(mended.begin(), mended.end());
    }
    return read_or_refused(edited, options);
  };
  table_of_edits().expect(name, "as it is " + hash_of(read_or_refused(bytes, options)) + ", as a replay wrote it " +
                                    hash_of(read_or_refused(bytes, {.as_replayed = true})) +
                                    hashes_of_edits(bytes, most_places, outcome_of));
}

class EditsTable : public ::testing::TestWithParam<const Format*> {};

TEST_P(EditsTable, OfTheFilesOfTheCorpusIsAsItWas) {
  constexpr std::uintmax_t kMostBytes = 1200;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR "/fuzz/corpus/") +
                                                               std::string(GetParam()->name)))
    if (entry.file_size() <= kMostBytes) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files)
    expect_edits_read(*GetParam(), fmt::format("{} {}", GetParam()->name, file.filename().string()),
                      content(file.string()), std::max<std::size_t>(60, 600 / files.size()));
}

TEST_P(EditsTable, OfADrawnHistoryIsAsItWas) {
  if (GetParam()->write == nullptr || GetParam()->name == "chrome") return;  // which writes counters and reads events
  load_all_plugins();
  Trace trace = drawn_history(71, 40, false);
  const std::string path = test::scratch_folder() + "edited";
  GetParam()->write(trace, path, {.place = [](const Trace& it) {
                      return image_of_replay(it, policy_of_conf(""), std::nullopt, Failures::kKept);
                    }});
  const std::string bytes = content(path);
  std::filesystem::remove(path);
  expect_edits_read(*GetParam(), fmt::format("drawn {}", GetParam()->name), bytes, 600);
}

TEST(EditsTableOfGz, OfCompressedFilesIsAsItWas) {
  const std::string path = scratch("edited.gz");
  const auto outcome_of = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    std::string outcome = read_or_refused([&] { return read_traces(path); });
    for (std::size_t at = outcome.find(path); at != std::string::npos; at = outcome.find(path))
      outcome.replace(at, path.size(), "PATH");
    return outcome;
  };
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/fuzz/corpus/gz"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files) {
    const std::string bytes = content(file.string());
    table_of_edits().expect(fmt::format("gz {}", file.filename().string()),
                            "as it is " + hash_of(outcome_of(bytes)) + hashes_of_edits(bytes, 24, outcome_of));
  }
}

INSTANTIATE_TEST_SUITE_P(OfEvery, EditsTable, testing::ValuesIn(formats_that_are_read()),
                         [](const auto& format) { return std::string(format.param->name); });

}  // namespace
}  // namespace tenon::replay
