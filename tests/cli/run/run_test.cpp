// `tenon run`: one experiment, its files, and the ways in which it fails.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class RunVerb : public Program {
 protected:
  nlohmann::json result(const std::string& folder) {
    return parse_json(read_bytes(folder_.path() / folder / "result.json"));
  }
};

TEST_F(RunVerb, WritesItsFilesAndSaysWhereLast) {
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("peak reserved"), EndsWith("results: res\n")));
  EXPECT_THAT(said.error, Not(HasSubstr("\x1b"))) << "no terminal, no control codes";
  const auto json = result("res");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["status"], "done");
  EXPECT_EQ(json["allocator"], "caching");
  EXPECT_EQ(json["result"]["steps"], 8);
  EXPECT_EQ(json["result"]["losses"].size(), 8U);
  EXPECT_TRUE(json["memory"]["peak_reserved_bytes"].is_number_integer());
  EXPECT_GE(json["memory"]["peak_reserved_bytes"], json["memory"]["peak_allocated_bytes"]);
  EXPECT_GE(json["memory"]["peak_allocated_bytes"], json["memory"]["peak_requested_bytes"]);
  EXPECT_EQ(json["memory"]["leaked_bytes"], 0);
  EXPECT_EQ(json["settings"]["train.epochs"]["from"], "exp.toml:6:10");
  for (const char* key : {"host", "cpu", "cores", "compiler", "build_type", "tenon_version"})
    EXPECT_TRUE(json["environment"].contains(key)) << key;
  EXPECT_EQ(json["environment"]["plugins"][0]["sha256"].get<std::string>().size(), 64U);
}

TEST_F(RunVerb, TheReportIsOnePageThatNeedsNothingElse) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  const std::string page = read_bytes(folder_.path() / "res/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<svg"), HasSubstr("train.epochs"), HasSubstr("exp.toml:6:10")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("src=")), Not(HasSubstr("@import"))));
  ASSERT_EQ(tenon({"run", "exp.toml", "report.html=false", "--out", "none"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none/report.html"));
}

TEST_F(RunVerb, ARunThatDivergesHasItsPageToo) {
  const Said said = tenon({"run", "exp.toml", "train.optimizer=\"sgd\"", "train.lr=1e6", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_TRUE(result("res")["result"]["final_loss"].is_null());
  EXPECT_THAT(said.error, ContainsRegex("step [0-9]+: the loss is not finite\n"));
  EXPECT_THAT(said.error, HasSubstr("epoch 2/2: loss not finite, test loss not finite, "));
  EXPECT_THAT(said.out, AllOf(HasSubstr("final loss"), HasSubstr("not finite")));
  EXPECT_THAT(said.out + said.error, Not(HasSubstr("nan")));
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "sound"}).code, 0);
  EXPECT_THAT(tenon({"compare", "sound", "res"}).error, HasSubstr("of b res: its last loss is not finite"));
  EXPECT_THAT(read_bytes(folder_.path() / "res/report.html"), HasSubstr("Epochs"));
}

TEST_F(RunVerb, HowFarItCameIsSaidOfARunThatItsAllocatorEndedAndOfNoOther) {
  const auto run = [&](const std::string& setting, const std::string& out) {
    return tenon({"run", "exp.toml", setting, "--out", out}).error;
  };
  const std::string throws = "allocator.name=\"" + fixture("faulty").string() + ":how=throws,after=";
  EXPECT_THAT(run(throws + "200\"", "late"),
              ContainsRegex("\nfinished: [1-7] of 8 steps, loss 2\\.[0-9]+, peak reserved [^\n]+\nresults: late\n"));
  EXPECT_THAT(run(throws + "1\"", "first"), HasSubstr("\nno step was finished\nresults: first\n"));
  const Said full =
      tenon({"run", "exp.toml", "allocator.layers=[limit]", "allocator.limit.bytes=256KiB", "--out", "full"});
  EXPECT_EQ(full.code, 4);
  EXPECT_THAT(full.error, AllOf(Not(HasSubstr("finished: ")), Not(HasSubstr("no step was finished"))));
}

TEST_F(RunVerb, OfADisqualifiedAllocatorTheCommandThatFindsItsBrokenPromiseIsNamed) {
  const std::string spec = fixture("faulty").string() + ":after=100,how=throws";
  const Said said = tenon({"run", "exp.toml", "allocator.name=\"" + spec + "\"", "--out", "res"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, HasSubstr("\n  tenon plugins test " + spec + "\n"));
}

TEST_F(RunVerb, TheManifestOfAFinishedRunSaysSo) {
  const auto is_finished = [&](const std::string& folder) {
    return parse_json(read_bytes(folder_.path() / folder / "run.json"))["finished"];
  };
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  EXPECT_EQ(is_finished("res"), true);
  ASSERT_EQ(tenon({"run", "exp.toml", "report.html=false", "--out", "bare"}).code, 0);
  EXPECT_EQ(is_finished("bare"), true);
}

TEST_F(RunVerb, SpeaksOfNoSignalWhereNoneCame) {
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(Not(HasSubstr("came when")), Not(HasSubstr("the run is finished"))));
}

TEST_F(RunVerb, MoreStepsThanTheEpochsHaveAreNoted) {
  const std::string note = "train.max_steps=9 is more than the 8 steps of 2 epochs: raise train.epochs\n";
  const Said said = tenon({"run", "exp.toml", "train.max_steps=9", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, HasSubstr(note));
  EXPECT_EQ(result("res")["result"]["steps"], 8);
  EXPECT_THAT(tenon({"run", "exp.toml", "train.max_steps=8", "--out", "all"}).error, Not(HasSubstr("max_steps")));
}

TEST_F(RunVerb, TheResolvedFileRepeatsTheRun) {
  ASSERT_EQ(tenon({"run", "exp.toml", "train.lr=0.01", "--out", "one"}).code, 0);
  ASSERT_EQ(tenon({"run", "one/config.resolved.toml", "--out", "two"}).code, 0);
  EXPECT_EQ(result("one")["result"]["losses_fnv1a64"], result("two")["result"]["losses_fnv1a64"]);
}

TEST_F(RunVerb, WithoutOutItMakesAFolderOfItsOwn) {
  const Said said = tenon({"run", "exp.toml", "train.max_steps=1"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, HasSubstr("results: tenon-out/exp-"));
}

TEST_F(RunVerb, JsonOnStdoutIsJsonAlone) {
  const Said said = tenon({"run", "exp.toml", "--out", "res", "--format", "json", "--quiet"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(said.error, "");
  const auto json = parse_json(said.out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["rows"][0]["status"], "done");
}

TEST_F(RunVerb, ItsRowHasTheFiguresOfTheFileThatItWrote) {
  const Said said = tenon({"run", "exp.toml", "--out", "res", "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.error;
  const auto row = parse_json(said.out)["rows"][0];
  const auto file = parse_json(read_bytes(folder_.path() / "res/result.json"));
  EXPECT_EQ(row["status"], file["status"]);
  EXPECT_EQ(row["seconds"], file["seconds"]);
  for (const char* key : {"test_accuracy", "final_loss", "losses_fnv1a64", "parameters", "steps"})
    EXPECT_EQ(row[key], file["result"][key]) << key;
  EXPECT_EQ(row["step_ms"], file["result"]["step_ms"]["p50"]);
  for (const char* key :
       {"peak_requested_bytes", "peak_allocated_bytes", "peak_reserved_bytes", "device_calls_per_step"})
    EXPECT_EQ(row[key], file["memory"][key]) << key;
  for (const char* purpose : {"activation", "gradient", "parameter", "optimizer_state"}) {
    const auto bytes = file["memory"]["peak_requested_bytes_by_purpose"][purpose];
    const auto shown = row[std::string("peak_") + purpose + "_bytes"];
    EXPECT_EQ(shown.is_null() ? nlohmann::json(0) : shown, bytes) << purpose;
  }
}

TEST_F(RunVerb, StatesWhatTheBytesOfEachPurposeAreMadeOf) {
  ASSERT_EQ(tenon({"run", "exp.toml", "train.precision=bfloat16-mixed", "report.by_purpose=true", "--out", "res"}).code,
            0);
  const auto memory = result("res")["memory"];
  const auto &by_purpose = memory["peak_requested_bytes_by_purpose"],
             &by_element = memory["peak_requested_bytes_by_element"];
  EXPECT_EQ(by_element["parameter"]["float32"], by_purpose["parameter"]);
  EXPECT_EQ(by_element["cast"]["bfloat16"], by_purpose["cast"]) << "what autocast keeps";
  EXPECT_GT(by_purpose["cast"], 0);
  EXPECT_GT(by_element["activation"]["bfloat16"], 0);
  EXPECT_FALSE(by_element["parameter"].contains("bfloat16"));
  const std::string page = read_bytes(folder_.path() / "res/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr(">float32</th>"), HasSubstr(">bfloat16</th>")));
  const Said said = tenon({"run", "exp.toml", "train.precision=bfloat16-mixed", "report.by_purpose=true", "--format",
                           "json", "--out", "again"});
  const auto row = parse_json(said.out)["rows"][0];
  EXPECT_EQ(row["peak_activation_bfloat16_bytes"], by_element["activation"]["bfloat16"]);
  EXPECT_EQ(row["peak_cast_bytes"], by_purpose["cast"]);
  EXPECT_THAT(tenon({"run", "exp.toml", "train.precision=bfloat16-mixed", "--dry-run"}).out,
              ContainsRegex("#   activation +[0-9.]+ [KM]?i?B[^,]*, bfloat16 "));
}

TEST_F(RunVerb, ADryRunRunsNothing) {
  const Said said = tenon({"run", "exp.toml", "--dry-run", "--out", "res"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("epochs = 2"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "res"));
}

TEST_F(RunVerb, ADryRunEstimatesTheMemoryAndTheRunStatesItsError) {
  const Said dry = tenon({"run", "exp.toml", "--dry-run"});
  EXPECT_THAT(dry.out, AllOf(HasSubstr("# parameters                13,002"), HasSubstr("# estimated peak requested"),
                             HasSubstr("optimizer_state"), HasSubstr("# estimated peak reserved")));
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  const auto estimate = result("res")["memory_estimate"];
  EXPECT_EQ(estimate["parameters"], 13'002);
  for (const char* figure : {"peak_requested", "peak_allocated", "peak_reserved"})
    EXPECT_NEAR(estimate["error"][figure].get<double>(), 0, 0.005) << figure << ": but for what comes after two steps";
  EXPECT_EQ(estimate["peak_requested_bytes_by_purpose"]["parameter"],
            result("res")["memory"]["peak_requested_bytes_by_purpose"]["parameter"]);
}

TEST_F(RunVerb, ADryRunSaysThatItsLimitIsTooLow) {
  const std::vector<std::string> limited = {"run", "exp.toml", "allocator.layers=[limit]",
                                            "allocator.limit.bytes=1MiB"};
  const auto with = [&](std::vector<std::string> words, const std::string& more) {
    words.insert(words.end(), {more, "--dry-run"});
    return tenon(words);
  };
  const Said dry = with(limited, "train.seed=0");
  EXPECT_EQ(dry.code, 4);
  EXPECT_THAT(dry.out, HasSubstr("# out of memory at          1.00 MiB\n"));
  EXPECT_THAT(dry.error, AllOf(HasSubstr("tenon: a run would end out of memory: OutOfMemory: caching on cpu"),
                               Not(HasSubstr("tenon plugins test"))));
  const std::string free = tenon({"run", "exp.toml", "--dry-run"}).out;
  const std::size_t begin = free.find("# parameters"), end = free.find("# Steps on");
  EXPECT_THAT(dry.out, HasSubstr(free.substr(begin, end - begin))) << "the peaks are those without a limit";
  EXPECT_EQ(with(limited, "allocator.name=\"direct\"").code, 0) << "which takes what is asked for";
  const Said device = with({"run", "exp.toml", "device.name=\"simulated:0\""}, "device.simulated.capacity=\"1MiB\"");
  EXPECT_EQ(device.code, 4) << device.out;
  EXPECT_THAT(device.error, HasSubstr("caching on simulated:0"));
}

TEST_F(RunVerb, ABudgetOfOnePurposeIsNotTakenForACeilingOfAllMemory) {
  const std::vector<std::string> run = {"run", "exp.toml", "allocator.layers=[budget]",
                                        "allocator.budget.gradient=10KiB"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = run;
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  };
  const Said dry = with({"--dry-run"});
  EXPECT_EQ(dry.code, 4);
  EXPECT_THAT(dry.out, HasSubstr("# out of memory at          10.0 KiB, the budget for purpose 'gradient'\n"));
  const Said table = with({"train.batch_size=8,16", "--sweep", "--dry-run"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("budget for"), HasSubstr("gradient")));
  // A replay on a device of 10 KiB would say nothing of any allocator.
  const Said ended = with({"--out", "res"});
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.error, AllOf(HasSubstr("raise option 'gradient' of layer 'budget'"), Not(HasSubstr("replay"))));
}

TEST_F(RunVerb, AnEstimateThatCannotBeMadeSaysWhy) {
  std::filesystem::remove(folder_.path() / "data/train-labels-idx1-ubyte");
  const Said said = tenon({"run", "exp.toml", "--dry-run"});
  EXPECT_EQ(said.code, 1) << "as the run would";
  EXPECT_THAT(said.out, AllOf(HasSubstr("# no estimate of its memory"), HasSubstr("train-labels-idx1-ubyte")));
  EXPECT_THAT(said.error, HasSubstr("train-labels-idx1-ubyte"));
}

TEST_F(RunVerb, AMissingDataFileIsNamedBeforeAnythingIsMade) {
  std::filesystem::remove(folder_.path() / "data/train-labels-idx1-ubyte");
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("train-labels-idx1-ubyte"), HasSubstr("no such data file")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "res"));
}

TEST_F(RunVerb, AMissingSavedStateIsAWrongSetting) {
  for (const char* place : {"nowhere.safetensors", "data"}) {
    const Said said = tenon({"run", "exp.toml", std::string("train.resume=\"") + place + "\"", "--out", "res"});
    EXPECT_EQ(said.code, 2) << place;
    EXPECT_THAT(said.error, AllOf(HasSubstr("train.resume"), HasSubstr("there is no saved state"), HasSubstr(place)));
  }
}

TEST_F(RunVerb, SaysHowFarItsEstimateWasOff) {
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  EXPECT_THAT(said.out, HasSubstr("\nestimate: peak requested "));
  EXPECT_THAT(read_bytes(folder_.path() / "res/report.html"), HasSubstr("Estimated before the run: peak requested "));
  EXPECT_THAT(tenon({"run", "exp.toml", "report.estimate=false"}).out, Not(HasSubstr("estimate:")));
}

TEST_F(RunVerb, QuietSaysNoRemarks) {
  const Said loud = tenon({"run", "exp.toml", "--out", "loud"});
  EXPECT_THAT(loud.out, HasSubstr("\npeak: "));
  const Said quiet = tenon({"run", "exp.toml", "--out", "res", "-q"});
  EXPECT_THAT(quiet.out, AllOf(HasSubstr("peak reserved"), EndsWith("results: res\n")));
  EXPECT_THAT(quiet.out, AllOf(Not(HasSubstr("peak: ")), Not(HasSubstr("estimate"))));
  EXPECT_EQ(quiet.error, "");
}

TEST_F(RunVerb, ADeviceThatIsNotThereIsAWrongSettingWithAWayOn) {
  const Said said = tenon({"run", "exp.toml", "device.name=\"simulated:7\"", "--out", "run"});
  EXPECT_EQ(said.code, 2) << said.error;
  EXPECT_THAT(said.error, HasSubstr("no device simulated:7: there is 1 of this kind, simulated:0; name that, or raise "
                                    "device.simulated.count"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "run"));
}

TEST_F(RunVerb, AKindWithoutADeviceIsAWrongSettingThatSaysWhyAndWhatElse) {
  const std::map<std::string, std::string> hidden = {{"CUDA_VISIBLE_DEVICES", "-1"}};
  if (tenon({"plugins", "info", "cuda"}, hidden).code != 0) GTEST_SKIP() << "the plugin cuda is not built";
  const Said said = tenon({"run", "exp.toml", "device.name=\"cuda:0\""}, hidden);
  EXPECT_EQ(said.code, 2) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("no cuda device: "), HasSubstr("set device.name to one that `tenon devices` "
                                                                         "lists, as \"cpu\"; `tenon doctor` says")));
}

TEST_F(RunVerb, ATruncatedDataFileFailsTheRunAndIsNamed) {
  const auto file = folder_.path() / "data/train-images-idx3-ubyte";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, HasSubstr("train-images-idx3-ubyte"));
}

TEST_F(RunVerb, OutOfMemoryEndsWithItsReportAndCodeFour) {
  const Said said =
      tenon({"run", "exp.toml", "allocator.layers=[limit]", "allocator.limit.bytes=16KiB", "--out", "res"});
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, AllOf(HasSubstr("OutOfMemory: caching on cpu"), HasSubstr("limit")));
  const auto json = result("res");
  EXPECT_EQ(json["status"], "out_of_memory");
  EXPECT_GE(json["memory"]["ooms"], 1);
  EXPECT_EQ(json["memory"]["leaked_bytes"], 0) << "nothing stays behind when a step fails";
}

TEST_F(RunVerb, TheTraceLayerWritesIntoTheRunsFolder) {
  ASSERT_EQ(tenon({"run", "exp.toml", "allocator.layers=[trace]", "--out", "res"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "res/memory.trace.gz"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "memory.trace.gz"));
}

TEST_F(RunVerb, WhatALayerHasCountedIsInTheReport) {
  const Said said = tenon({"run", "exp.toml", "allocator.layers=[\"stats\"]", "--out", "counted"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("layer stats: allocations "), HasSubstr("; peak requested "), HasSubstr(" KiB;")));
  const auto layers = result("counted")["layer_reports"];
  ASSERT_EQ(layers.size(), 1U);
  EXPECT_EQ(layers[0]["layer"], "stats");
  EXPECT_EQ(layers[0]["entries"][0]["name"], "allocations");
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "plain"}).code, 0);
  EXPECT_FALSE(result("plain").contains("layer_reports"));
}

TEST_F(RunVerb, OptionsThatChangeNothingAreNamed) {
  EXPECT_THAT(tenon({"run", "exp.toml", "-j", "4", "--out", "res"}).error,
              HasSubstr("tenon: --jobs changes nothing here: this is one run"));
  const Said dry = tenon({"run", "exp.toml", "--dry-run", "--out", "dry", "--record", "trace"});
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.error, HasSubstr("tenon: --out and --record change nothing here: a dry run runs and writes nothing"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "dry"));
  EXPECT_THAT(tenon({"run", "exp.toml", "--dry-run"}).error, testing::Not(HasSubstr("nothing here")));
}

TEST_F(RunVerb, OptionsThatDoNotGoTogetherAreRefusedBeforeAnythingIsMade) {
  folder_.write("sweep.toml", experiment("[sweep]\n\"train.seed\" = [1, 2]\n"));
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"run"}, "name an experiment's TOML file, or --resume with the folder of a run (see tenon run --help)"},
      {{"run", "exp.toml", "--resume", "data", "--out", "res"}, "--resume names the folder already; leave out --out"},
      {{"run", "exp.toml", "--resume", "absent"}, "there is no folder absent to resume"},
      {{"run", "exp.toml", "--interval", "1"}, "--interval is between two looks: it goes with --watch or --metrics"},
      {{"run", "sweep.toml", "--watch", "--launcher", "mpi"},
       "--watch looks at runs on this machine, and --launcher runs them elsewhere: leave one of both out"},
      {{"run", "sweep.toml", "--metrics", "9464", "--launcher", "mpi"}, "--metrics looks at runs on this machine"},
      {{"run", "sweep.toml", "--metrics", "9464", "-j", "2"}, "--metrics shows one run, and -j 2 runs several cells"},
      {{"run", "exp.toml", "--interval", "0.009", "--watch"}, "not in range"},
      {{"run", "exp.toml", "--deadline", "0.09"}, "not in range"},
      {{"run", "exp.toml", "--jobs", "1025"}, "not in range"}};
  for (const auto& [words, message] : mistakes) {
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2) << message;
    EXPECT_THAT(said.error, HasSubstr(message));
    EXPECT_EQ(said.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "res"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "tenon-out"));
}

TEST_F(RunVerb, AFolderThatCannotBeMadeIsAUsageError) {
  folder_.write("file", "");
  EXPECT_EQ(tenon({"run", "exp.toml", "--out", "file/below"}).code, 2);
}

}  // namespace
}  // namespace tenon::test
