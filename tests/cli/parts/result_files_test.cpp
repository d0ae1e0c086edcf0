// Folders of results: who has them, what their files are called, and what becomes of those of an earlier run.
#include "support/message_of.h"
#include "support/scratch_folder.h"

#include <tenon/cli/process/output_folder.h>
#include <tenon/cli/results/former_results.h>
#include <tenon/cli/results/missing_recordings.h>
#include <tenon/cli/results/recording_names.h>
#include <tenon/cli/results/run_folder.h>
#include <tenon/core/error.h>
#include <tenon/runtime/config/config.h>
#include <tenon/train/run_experiment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ResultFolder : public testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    folder_ = fs::path(test::scratch_folder()) / ("results-" + std::to_string(++number));
    fs::create_directories(folder_);
  }
  void write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  std::string text_of(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  static ExperimentConfig recording(const std::string& formats) {
    ConfigRequest request;
    request.overrides = {"report.record=" + formats};
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }

  fs::path folder_;
};

TEST_F(ResultFolder, IsOneProcesssAtATime) {
  const fs::path wanted = folder_ / "a" / "b";
  std::optional<OutputFolder> first(std::in_place, wanted, "mine");
  EXPECT_EQ(first->path(), wanted);
  const std::string me = "process " + std::to_string(::getpid());
  EXPECT_EQ(writer_of(wanted), me);
  EXPECT_EQ(message_of([&] { OutputFolder(wanted, "mine"); }),
            me + " writes to " + wanted.string() + " at this moment; choose another folder with --out, or wait for it");
  first.reset();
  EXPECT_EQ(writer_of(wanted), "");
  EXPECT_EQ(writer_of(folder_ / "absent"), "");
  EXPECT_NO_THROW(OutputFolder(wanted, "mine"));
}

TEST_F(ResultFolder, ThatSomebodyRemovedIsMadeAgain) {
  OutputFolder output(folder_ / "a", "mine");
  EXPECT_FALSE(output.restore()) << "it is there";
  fs::remove(folder_ / "a");
  EXPECT_TRUE(output.restore());
  EXPECT_TRUE(has("a"));
  EXPECT_NE(writer_of(folder_ / "a"), "") << "and locked";
  fs::rename(folder_ / "a", folder_ / "old");
  {
    const OutputFolder other(folder_ / "a", "other");
    EXPECT_THAT(message_of([&] { output.restore(); }),
                HasSubstr("was removed, and another process has taken its place"));
  }
  EXPECT_TRUE(output.restore()) << "another folder of its name is not it";
}

TEST_F(ResultFolder, TakesBackTheFoldersThatItMadeAndNoOthers) {
  fs::create_directories(folder_ / "there");
  {
    OutputFolder output(folder_ / "there" / "a" / "b", "mine");
    output.remove_new();
  }
  EXPECT_TRUE(has("there"));
  EXPECT_FALSE(has("there/a"));
  OutputFolder output(folder_ / "there" / "a" / "b", "mine");
  write("there/a/kept");
  output.remove_new();
  EXPECT_FALSE(has("there/a/b"));
  EXPECT_TRUE(has("there/a/kept"));
}

TEST_F(ResultFolder, WithoutANameItIsCalledAfterTheExperimentAndTheTime) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  {
    OutputFolder first({}, "my run/1"), second({}, "my run/1");
    EXPECT_THAT(first.path().string(), testing::MatchesRegex("tenon-out/my-run-1-[0-9]{8}-[0-9]{6}"));
    EXPECT_NE(first.path(), second.path());
    EXPECT_THAT(second.path().string(), testing::StartsWith("tenon-out/my-run-1-"));
    second.remove_new();
    EXPECT_TRUE(fs::exists("tenon-out")) << "the first one is in it";
    first.remove_new();
    EXPECT_FALSE(fs::exists("tenon-out"));
  }
  fs::current_path(before);
  EXPECT_THAT(message_of([&] {
                write("file");
                OutputFolder(folder_ / "file" / "x", "mine");
              }),
              HasSubstr("cannot make the folder " + (folder_ / "file" / "x").string() + ": "));
}

TEST(PlainName, KeepsLettersDigitsAndWhatNamesOfFilesHave) {
  EXPECT_EQ(plain_name("aZ09-_.", '+'), "aZ09-_.");
  EXPECT_EQ(plain_name("a b/c=d\xc3", '+'), "a+b+c+d+");
}

TEST_F(ResultFolder, RecordingsAreAskedForByTheirWords) {
  EXPECT_THAT(recorded_formats(recording("")), IsEmpty());
  EXPECT_THAT(recorded_formats(recording("\"trace, folded\"")), ElementsAre("folded", "trace"));
  EXPECT_THAT(recorded_formats(recording("all")),
              ElementsAre("chrome", "folded", "snapshot", "tensorboard", "text", "trace"));
  EXPECT_THAT(
      message_of([] { recorded_formats(recording("snapshto")); }),
      HasSubstr("unknown format \"snapshto\"; did you mean snapshot?; known: trace, text, snapshot, chrome, folded, "
                "tensorboard, all"));
  EXPECT_THAT(message_of([] { recorded_formats(recording("xyzzyxyz")); }),
              HasSubstr("unknown format \"xyzzyxyz\"; known: trace"));
  EXPECT_THAT(recorded_files(), ElementsAre("memory.tenon", "memory.trace.gz", "memory.pickle", "memory.chrome.json",
                                            "memory.folded", "tensorboard"));
}

TEST_F(ResultFolder, ProfilesAreKnownByTheirNames) {
  for (const char* name : {"profile.txt", "profile.2.folded", "profile.until-step-40.chrome.json", "profile.json",
                           "profiles.txt", "my.profile.txt", "profile"})
    write(name);
  EXPECT_THAT(profile_files(folder_),
              UnorderedElementsAre("profile.txt", "profile.2.folded", "profile.until-step-40.chrome.json"));
  EXPECT_THAT(profile_files(folder_ / "absent"), IsEmpty());
}

TEST_F(ResultFolder, EarlierPartsAreKnownByTheirSteps) {
  for (const char* name : {"memory.until-step-40.trace.gz", "memory.until-step-40-2.trace.gz",
                           "memory.until-step-.trace.gz", "memory.until-step-4x.trace.gz", "memory.until-step-40.tenon",
                           "memory.trace.gz", "sub/x.until-step-1.csv", "sub/until", "my.memory.until-step-1.trace.gz"})
    write(name);
  EXPECT_THAT(earlier_recordings(folder_, "memory.trace.gz"),
              UnorderedElementsAre("memory.until-step-40.trace.gz", "memory.until-step-40-2.trace.gz"));
  EXPECT_THAT(earlier_recordings(folder_, "memory.tenon"), ElementsAre("memory.until-step-40.tenon"));
  EXPECT_THAT(earlier_recordings(folder_, "sub/x.csv"), ElementsAre("sub/x.until-step-1.csv"));
  EXPECT_THAT(earlier_recordings(folder_, "other.csv"), IsEmpty());
}

TEST_F(ResultFolder, KeepingARecordingOverwritesNone) {
  for (const char* text : {"first", "second", "third"}) {
    write("memory.trace.gz", text);
    keep_recording(folder_, "memory.trace.gz", 40);
  }
  EXPECT_EQ(text_of("memory.until-step-40.trace.gz"), "first");
  EXPECT_EQ(text_of("memory.until-step-40-2.trace.gz"), "second");
  EXPECT_EQ(text_of("memory.until-step-40-3.trace.gz"), "third");
  EXPECT_FALSE(has("memory.trace.gz"));
  EXPECT_EQ(keep_recording(folder_, "memory.trace.gz", 40), fs::path());
  write("log");
  EXPECT_EQ(keep_recording(folder_, "log", 7), folder_ / "log.until-step-7");
  fs::create_directories(folder_ / "tensorboard");
  EXPECT_EQ(keep_recording(folder_, "tensorboard", 7), fs::path()) << "a folder of many";
  EXPECT_TRUE(has("tensorboard"));
}

TEST_F(ResultFolder, RecordingsOfARunThatBeginsAgainGetTheNameOfItsLastStep) {
  write("memory.tenon");
  write("mine.csv");
  EXPECT_EQ(keep_recordings(folder_, {"mine.csv"}, {.file = folder_ / "absent", .go_on = true}, 12), "");
  EXPECT_TRUE(has("memory.until-step-12.tenon"));
  EXPECT_TRUE(has("mine.until-step-12.csv"));
  write("memory.tenon");
  EXPECT_EQ(keep_recordings(folder_, {}, {}, std::nullopt), "");
  EXPECT_TRUE(has("memory.until-step-0.tenon"));
}

TEST_F(ResultFolder, ResultsOfARunAreMovedTogetherAndComeBack) {
  const ResultFiles files(folder_, {"mine.csv"});
  EXPECT_FALSE(files.has_results());
  write("config.resolved.toml");
  write("run.json", "manifest");
  EXPECT_FALSE(files.has_results()) << "that is written when a run begins";
  for (const char* name : {"result.json", "report.html", "mine.csv", "mine.until-step-3.csv",
                           "memory.until-step-3.tenon", "profile.txt", "cells/001/result.json", "notes.txt"})
    write(name);
  EXPECT_TRUE(files.has_results());
  EXPECT_EQ(files.keep(), folder_ / "previous-1");
  for (const char* name :
       {"config.resolved.toml", "run.json", "result.json", "report.html", "mine.csv", "mine.until-step-3.csv",
        "memory.until-step-3.tenon", "profile.txt", "cells/001/result.json"}) {
    EXPECT_FALSE(has(name)) << name;
    EXPECT_TRUE(has("previous-1/" + std::string(name))) << name;
  }
  EXPECT_TRUE(has("notes.txt")) << "the user's own";
  EXPECT_FALSE(files.has_results());
  write("run.json", "second");
  write("result.json");
  EXPECT_EQ(files.keep(), folder_ / "previous-2");
  files.put_back(folder_ / "previous-1");
  EXPECT_EQ(text_of("run.json"), "manifest");
  EXPECT_TRUE(has("cells/001/result.json"));
  EXPECT_FALSE(has("previous-1")) << "nothing is left in it";
  files.remove();
  for (const char* name : {"run.json", "result.json", "cells", "mine.csv", "profile.txt"})
    EXPECT_FALSE(has(name)) << name;
  EXPECT_TRUE(has("notes.txt"));
  EXPECT_TRUE(has("previous-2/run.json"));
}

TEST_F(ResultFolder, AMoveThatWasCutOffGoesOnInItsFolder) {
  write("previous-1/result.json");
  write("report.html");
  write("run.json");
  EXPECT_EQ(ResultFiles(folder_, {}).keep(), folder_ / "previous-1")
      << "no manifest is there yet, and nothing is in the way";
  write("previous-2/report.html");
  write("report.html");
  EXPECT_EQ(ResultFiles(folder_, {}).keep(), folder_ / "previous-3") << "a report is in the way in both";
}

TEST_F(ResultFolder, AResultThatCannotBeMovedNamesBothPlaces) {
  write("result.json");
  write("previous-1");
  EXPECT_THAT(message_of([&] { ResultFiles(folder_, {}).keep(); }),
              HasSubstr("the results in " + folder_.string() + " cannot be kept in " +
                        (folder_ / "previous-1").string() + ": "));
}

TEST_F(ResultFolder, WhatWasAskedForAndIsNotThereIsMissing) {
  write("memory.trace.gz");
  EXPECT_THAT(missing_recordings(recording("all"), folder_),
              ElementsAre("memory.tenon", "memory.pickle", "memory.chrome.json", "memory.folded", "tensorboard"));
  EXPECT_THAT(missing_recordings(recording("text"), folder_), IsEmpty());
  EXPECT_EQ(missing_recordings_message(recording("text"), folder_, "tenon run x.toml"), "");
}

TEST_F(ResultFolder, MissingRecordingsAreMadeOfThoseThatHoldWhatTheyNeed) {
  const std::string at = folder_.string() + "/";
  const std::vector<std::string> all = {"memory.tenon",  "memory.pickle", "memory.chrome.json",
                                        "memory.folded", "tensorboard",   "odd"};
  EXPECT_EQ(commands_that_make(all, folder_), "") << "of nothing";
  write("memory.trace.gz");
  const auto line = [&](const std::string& from, const std::string& to) {
    return "\n  tenon trace convert " + at + from + " " + at + to;
  };
  EXPECT_EQ(commands_that_make(all, folder_), line("memory.trace.gz", "memory.tenon") +
                                                  line("memory.trace.gz", "memory.pickle") +
                                                  line("memory.trace.gz", "memory.chrome.json"));
  write("memory.pickle");
  EXPECT_EQ(commands_that_make({"memory.folded"}, folder_), line("memory.pickle", "memory.folded"))
      << "stacks are in it alone";
  EXPECT_EQ(commands_that_make({"memory.pickle", "memory.folded"}, folder_), line("memory.trace.gz", "memory.pickle"))
      << "one that is cut short is no source";
}

TEST_F(ResultFolder, OfWhatCannotBeMadeTheCommandThatRecordsItIsTold) {
  const std::string at = folder_.string();
  EXPECT_EQ(missing_recordings_message(recording("trace"), folder_, ""),
            "not in " + at + " though asked for: memory.tenon");
  EXPECT_EQ(missing_recordings_message(recording("trace"), folder_, "tenon run x.toml"),
            "not in " + at + " though asked for: memory.tenon; only another run records them:\n  tenon run x.toml");
  write("memory.trace.gz");
  EXPECT_EQ(missing_recordings_message(recording("\"trace,tensorboard\""), folder_, "tenon run x.toml"),
            "not in " + at +
                " though asked for: memory.tenon, tensorboard; make what can be made of the recordings with\n" +
                "  tenon trace convert " + at + "/memory.trace.gz " + at + "/memory.tenon\n" +
                "only another run records tensorboard:\n  tenon run x.toml");
  EXPECT_EQ(missing_recordings_message(recording("trace"), folder_, "tenon run x.toml"),
            "not in " + at + " though asked for: memory.tenon; make what can be made of the recordings with\n" +
                "  tenon trace convert " + at + "/memory.trace.gz " + at + "/memory.tenon");
}

TEST_F(ResultFolder, SaysWhatIsInIt) {
  FolderContent content = content_of(folder_);
  EXPECT_FALSE(content.is_run || content.is_sweep || content.is_finished || content.has_state);
  EXPECT_EQ(content.finished_cells, 0U);
  write("result.json", "{}");
  content = content_of(folder_);
  EXPECT_TRUE(content.is_run && content.is_finished) << "by a result alone";
  EXPECT_FALSE(content.is_sweep);
  write("cells/001/x");
  content = content_of(folder_);
  EXPECT_TRUE(content.is_sweep);
  EXPECT_FALSE(content.is_run);
  RunManifest manifest;
  write_manifest(folder_, manifest);
  content = content_of(folder_);
  EXPECT_TRUE(content.is_run) << "as the manifest says";
  EXPECT_FALSE(content.is_sweep || content.is_finished || content.has_state);
  EXPECT_EQ(exit_code_of_finished(RunStatus::kOutOfMemory), ExitCode::kOutOfMemory);
  EXPECT_EQ(exit_code_of_finished(RunStatus::kDisqualified), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of_finished(RunStatus::kDone), ExitCode::kDone);
  EXPECT_FALSE(has_finished_result(folder_)) << "a result that says nothing";
}

}  // namespace
}  // namespace tenon::cli
