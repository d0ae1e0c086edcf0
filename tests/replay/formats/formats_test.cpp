// The table of formats: each is whole in itself, none is taken for another.
#include "replay/support.h"

#include <tenon/replay/formats/readers.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace tenon::replay {
namespace {

TEST(Formats, EachHasANameOfItsOwnAndIsReadOrWritten) {
  std::set<std::string_view> names, endings;
  for (const Format* const format : formats()) {
    SCOPED_TRACE(std::string(format->name));
    EXPECT_TRUE(names.insert(format->name).second);
    EXPECT_EQ(find_format(format->name), format);
    EXPECT_FALSE(format->files.empty());
    EXPECT_TRUE(format->read != nullptr || format->write != nullptr);
    EXPECT_EQ(format->read != nullptr, format->likeness != nullptr) << "what is read has to be told from the others";
    EXPECT_EQ(format->endings.empty(), format->written_as.empty());
    for (const std::string_view ending : format->endings) {
      EXPECT_TRUE(endings.insert(ending).second) << ending << " means two formats";
      EXPECT_TRUE(ending.starts_with('.')) << ending;
    }
  }
}

TEST(Formats, TheEndingOfANameSaysWhatIsWritten) {
  EXPECT_EQ(format_of_name("x.trace.gz").name, "text");
  EXPECT_EQ(format_of_name("x.pickle").name, "snapshot");
  EXPECT_THROW(format_of_name("x.doc"), ConfigError);
  for (const Format* const format : formats()) {
    for (const std::string_view ending : format->endings) {
      EXPECT_EQ(format_of_ending("x" + std::string(ending)), format) << ending;
      EXPECT_EQ(format_of_ending("x" + std::string(ending) + ".gz"), format) << ending;
    }
  }
}

TEST(Formats, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    written_format("doc");
    FAIL();
  } catch (const ConfigError& error) {
    for (const Format* const format : formats()) {
      if (format->write == nullptr) continue;
      EXPECT_NE(std::string_view(error.what()).find(format->name), std::string_view::npos) << format->name;
    }
  }
}

std::string refusal_of_ending(const std::string& path) {
  try {
    format_of_name(path);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(Formats, AreListedInWords) {
  EXPECT_EQ(written_names(), "text, binary, snapshot, chrome, folded, rmm, minimalloc or mtrace");
  EXPECT_EQ(written_endings(), ".trace, .tenon, .pickle, .json, .folded, .csv, .mtrace");
  EXPECT_EQ(
      read_files(),
      "text histories, Tenon's binary histories, PyTorch snapshots (pickle protocol 2 to 5), torch.profiler traces "
      "(JSON), RMM logs, minimalloc problems, mtrace logs");
  const std::string known =
      ".trace (text), .tenon (binary), .pickle (PyTorch snapshot), .json (Chrome counters), .folded (flame graph), "
      ".csv "
      "(RMM log) and .mtrace (mtrace log) do, each also with .gz; or use --to";
  EXPECT_EQ(refusal_of_ending("runs/x.doc"), "runs/x.doc: the ending says no format; " + known);
  EXPECT_EQ(refusal_of_ending("runs/x.trac.gz"),
            "runs/x.trac.gz: the ending says no format; did you mean runs/x.trace.gz?; " + known);
  EXPECT_EQ(refusal_of_ending("runs/x"), "runs/x: the ending says no format; " + known);
  EXPECT_EQ(find_format("nothing"), nullptr);
  EXPECT_EQ(format_of_ending("x.doc"), nullptr);
}

/// Of a history with one of everything.
TEST(Formats, SayWhatTheyHaveNoPlaceForInWords) {
  const Trace trace = read_one(
      "# recorded_peak_reserved_bytes: 4096\na 0 8 0\nm recording starts\n#t 5\n#p gradient\na 1 8 7\nu 0 7\nm x\n"
      "m tenon:deferred 1\nf 1\ne\nu 0 9\n",
      {.with_columns = true});
  std::string all;
  for (const std::string& part : find_format("mtrace")->left_out(trace)) all += part + "; ";
  EXPECT_EQ(all,
            "2 uses on other streams; 1 free that waited (it is immediate there); 1 emptied cache; 2 marks; which "
            "blocks are older than the recording (1); when events were; what blocks are for; what is known of the "
            "recording (settings, reserved memory); 3 streams (there is one there); ");
  EXPECT_TRUE(find_format("mtrace")->left_out(read_one("a 0 8 0\nf 0\n")).empty());
}

// Each file of a fuzz corpus that its own reader takes is found to be of that format by its first bytes.
TEST(Formats, AFileIsToldFromThoseOfEveryOtherFormat) {
  std::size_t files = 0;
  for (const Format* const format : formats()) {
    if (format->read == nullptr) continue;
    for (const auto& entry :
         std::filesystem::directory_iterator(TENON_SOURCE_DIR "/fuzz/corpus/" + std::string(format->name))) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      try {
        InputFile input(entry.path().string());
        format->read(input, {});
      } catch (const TraceError&) {
        continue;
      }
      EXPECT_EQ(detect_format(bytes), format) << entry.path();
      ++files;
    }
  }
  EXPECT_GT(files, 20u);
}

TEST(Formats, RemarksInFrontOfACsvHeaderDoNotMakeItText) {
  EXPECT_EQ(detect_format("# made by hand\nid,lower,upper,size\n")->name, "minimalloc");
  EXPECT_EQ(detect_format("# made by hand\na 0 8 0\n")->name, "text");
  EXPECT_EQ(detect_format("hello"), nullptr);
}

}  // namespace
}  // namespace tenon::replay
