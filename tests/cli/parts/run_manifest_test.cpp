// run.json: what it keeps, and what has changed between two of them.
#include "support/scratch_folder.h"

#include <tenon/cli/results/run_manifest.h>
#include <tenon/memory/factory.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/train/run_experiment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

RunManifest of(const std::string& settings) {
  RunManifest manifest;
  manifest.settings = settings;
  return manifest;
}

TEST(ManifestChanges, AreSettingsByTheirSections) {
  EXPECT_THAT(changes_between(of("[train]\nlr = 0.5\n"), of("[train]\nlr = 0.25\n")),
              ElementsAre("train.lr was 0.5, is 0.25"));
  EXPECT_THAT(changes_between(of("seed = 1\n"), of("seed = 2\n")), ElementsAre("seed was 1, is 2")) << "of no section";
  EXPECT_THAT(changes_between(of("[a]\nx = 1\n[b.c]\nx = 1\n"), of("[a]\nx = 1\n[b.c]\nx = 2\n")),
              ElementsAre("b.c.x was 1, is 2"));
  EXPECT_THAT(changes_between(of("[a]\nx = \"p = q\"\n"), of("[a]\nx = \"p = r\"\n")),
              ElementsAre("a.x was \"p = q\", is \"p = r\""))
      << "the first ' = ' divides";
  EXPECT_THAT(changes_between(of("[a]\n# x = 1\nno setting\n"), of("[a]\n# x = 2\n")), IsEmpty()) << "remarks";
}

TEST(ManifestChanges, AreSettingsThatWentAndCame) {
  EXPECT_THAT(changes_between(of("[a]\nx = 1\ny = 2\n"), of("[a]\ny = 2\nz = 3\n")),
              ElementsAre("a.x was 1, and is missing now", "a.z was not there, is 3"));
  EXPECT_THAT(changes_between(of("[a]\nx = 1\n"), of("[a]\nx = 1\n")), IsEmpty());
}

TEST(ManifestChanges, AreCellsThatWentAndCameOrAnotherOrderOfThem) {
  RunManifest then = of(""), now = of("");
  then.cells = {"lr=1", "lr=2"};
  now.cells = {"lr=2", "lr=3"};
  EXPECT_THAT(changes_between(then, now), ElementsAre("the cell lr=1 is gone", "the cell lr=3 is new"));
  now.cells = {"lr=2", "lr=1"};
  EXPECT_THAT(changes_between(then, now), ElementsAre("the cells have another order"));
  now.settings = "x = 1\n";
  EXPECT_THAT(changes_between(then, now), ElementsAre("x was not there, is 1")) << "one reason is enough";
  now = then;
  EXPECT_THAT(changes_between(then, now), IsEmpty());
}

/// Manifests on "caching", whose file is another one now.
class RebuiltPolicy : public testing::Test {
 protected:
  void SetUp() override {
    static_cast<void>(allocator_from_spec("caching"));  // its plugin is loaded
    then_.basis = basis_of_loaded();
    now_.basis = then_.basis;
    bool is_there = false;
    for (UsedPlugin& plugin : then_.basis->plugins) {
      if (plugin.path.filename().string().find("caching") == std::string::npos) continue;
      plugin.sha256 = "another";
      is_there = true;
    }
    ASSERT_TRUE(is_there);
  }
  std::vector<std::string> changes(const std::string& then, const std::string& now) {
    then_.settings = "[allocator.caching]\n" + then;
    now_.settings = "[allocator.caching]\n" + now;
    return changes_between(then_, now_);
  }
  RunManifest then_, now_;
};

TEST_F(RebuiltPolicy, MayHaveLostAndGotOptionsAndChangedADefault) {
  EXPECT_THAT(changes("old = 1\n", ""), IsEmpty());
  EXPECT_THAT(changes("", "young = 1\n"), IsEmpty());
  now_.defaults = {"allocator.caching.x"};
  EXPECT_THAT(changes("x = 1\n", "x = 2\n"), IsEmpty());
}

TEST_F(RebuiltPolicy, IsNotExcusedForWhatTheUserSet) {
  EXPECT_THAT(changes("x = 1\n", "x = 2\n"), ElementsAre("allocator.caching.x was 1, is 2"));
  then_.settings = "[train]\nlr = 1\nold = 1\n";
  now_.settings = "[train]\nlr = 2\nyoung = 1\n";
  now_.defaults = {"train.lr"};
  EXPECT_THAT(changes_between(then_, now_), ElementsAre("train.lr was 1, is 2", "train.old was 1, and is missing now",
                                                        "train.young was not there, is 1"))
      << "of other sections";
}

TEST_F(RebuiltPolicy, ThatIsTheSameFileIsNotOne) {
  then_.basis = now_.basis;
  EXPECT_THAT(changes("old = 1\n", "young = 1\n"), ElementsAre("allocator.caching.old was 1, and is missing now",
                                                               "allocator.caching.young was not there, is 1"));
  now_.basis.reset();
  EXPECT_EQ(changes("old = 1\n", "").size(), 1U);
}

TEST(Manifest, ReadsWhatItWrote) {
  const fs::path folder = fs::path(test::scratch_folder()) / "manifest";
  fs::create_directories(folder);
  RunManifest written;
  written.is_sweep = written.is_finished = true;
  written.folder = "/somewhere";
  written.command.file = "run.toml";
  written.command.overrides = {"train.lr=1"};
  written.command.sweep = written.command.no_sweep = true;
  written.command.record = "histories";
  written.command.call_seconds = 7;
  written.cells = {"lr=1", "lr=2"};
  written.settings = "[a]\nx = 1\n";
  written.files = {"trace.bin"};
  written.faults = {{.allocator = "mine", .what = "overlaps", .spec = "mine.so"}};
  written.cells_at_a_time = 3;
  written.basis = RunBasis{.version = "1.2", .build = "b", .plugins = {{"p", "0.1", "/p.so", "abc"}}};
  write_manifest(folder, written);
  const auto read = read_manifest(folder);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->is_sweep);
  EXPECT_TRUE(read->is_finished);
  EXPECT_EQ(read->folder, written.folder);
  EXPECT_EQ(read->command.file, written.command.file);
  EXPECT_EQ(read->command.overrides, written.command.overrides);
  EXPECT_TRUE(read->command.sweep);
  EXPECT_TRUE(read->command.no_sweep);
  EXPECT_EQ(read->command.record, written.command.record);
  EXPECT_EQ(read->command.call_seconds, 7);
  EXPECT_EQ(read->cells, written.cells);
  EXPECT_EQ(read->settings, written.settings);
  EXPECT_EQ(read->files, written.files);
  EXPECT_EQ(read->cells_at_a_time, 3U);
  ASSERT_EQ(read->faults.size(), 1U);
  EXPECT_EQ(read->faults[0].allocator, "mine");
  EXPECT_EQ(read->faults[0].what, "overlaps");
  EXPECT_EQ(read->faults[0].spec, "mine.so");
  ASSERT_TRUE(read->basis);
  EXPECT_EQ(read->basis->version, "1.2");
  EXPECT_EQ(read->basis->build, "b");
  ASSERT_EQ(read->basis->plugins.size(), 1U);
  EXPECT_EQ(read->basis->plugins[0].name, "p");
  EXPECT_EQ(read->basis->plugins[0].version, "0.1");
  EXPECT_EQ(read->basis->plugins[0].path, "/p.so");
  EXPECT_EQ(read->basis->plugins[0].sha256, "abc");
  written.is_sweep = written.is_finished = false;
  written.basis.reset();
  write_manifest(folder, written);
  EXPECT_FALSE(read_manifest(folder)->is_sweep);
  EXPECT_FALSE(read_manifest(folder)->is_finished);
  EXPECT_FALSE(read_manifest(folder)->basis) << "an older one says nothing of it";
}

TEST(Manifest, ThatSaysNothingIsNone) {
  const fs::path folder = fs::path(test::scratch_folder()) / "broken";
  fs::create_directories(folder);
  EXPECT_FALSE(read_manifest(folder)) << "there is none";
  for (const char* const text : {"", "{", "[]", "{\"kind\": \"run\"}"}) {
    std::ofstream(folder / kManifestFile) << text;
    EXPECT_FALSE(read_manifest(folder)) << text;
  }
}

TEST(Manifest, SaysWhatTheCommandAskedFor) {
  ConfigRequest request;
  request.overrides = {"train.lr=0.5", "allocator.layers=[\"trace\"]", "allocator.trace.file=\"mine.bin\""};
  request.use_environment = false;
  request.sections = training_sections();
  RunOptions options;
  options.file = "run.toml";
  options.cells_at_a_time = 2;
  const RunManifest manifest = manifest_of(options, Config::load(request));
  EXPECT_FALSE(manifest.is_sweep);
  EXPECT_EQ(manifest.folder, fs::current_path().string());
  EXPECT_EQ(manifest.command.file, "run.toml");
  EXPECT_EQ(manifest.cells_at_a_time, 2U);
  EXPECT_THAT(manifest.files, ElementsAre("mine.bin"));
  EXPECT_THAT(manifest.defaults, testing::Contains("train.epochs"));
  EXPECT_THAT(manifest.defaults, testing::Not(testing::Contains("train.lr")));
  EXPECT_THAT(manifest.settings, testing::HasSubstr("lr = 0.5"));
  EXPECT_TRUE(manifest.basis);
}

TEST(LayerFiles, LieInTheRunsFolderUnlessTheUserNamedAPlace) {
  ConfigRequest request;
  request.overrides = {"allocator.layers=[\"trace\", \"limit\"]", "allocator.trace.file=\"mine.bin\""};
  request.use_environment = false;
  request.sections = training_sections();
  ExperimentConfig experiment = Config::load(request).experiment();
  const auto layer = [&](const std::string& name) -> LayerConfig& {
    for (LayerConfig& one : experiment.allocator.layers)
      if (one.name == name) return one;
    throw std::runtime_error("no layer " + name);
  };
  EXPECT_EQ(layer_file(layer("trace")), "mine.bin");
  EXPECT_EQ(layer_file_elsewhere(layer("trace")), "");
  EXPECT_EQ(layer_file(layer("limit")), "") << "it writes none";
  place_layer_files(experiment, "/somewhere/out");
  EXPECT_EQ(layer("trace").options.text("file"), "/somewhere/out/mine.bin");
  EXPECT_EQ(layer_file(layer("trace")), "");
  EXPECT_EQ(layer_file_elsewhere(layer("trace")), "/somewhere/out/mine.bin");
  place_layer_files(experiment, "/elsewhere");
  EXPECT_EQ(layer("trace").options.text("file"), "/somewhere/out/mine.bin") << "it has its place";
}

}  // namespace
}  // namespace tenon::cli
