// What an estimate costs: parameters are neither drawn nor touched, however large the model is. And what a dry run says
// of a run that would not come to its end.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <sys/resource.h>
#include <unistd.h>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class EstimateVerb : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string text;
    for (int i = 0; i < 20'000; ++i) text += static_cast<char>('a' + i * i / 3 % 7);
    folder_.write("text", text);
    folder_.write("large.toml",
                  "[data]\nname = \"text\"\npath = \"text\"\n[train]\nbatch_size = 1\ntest_batch_size = 1\n");
  }

  struct Cost {
    std::string out;
    long most_resident_kib = 0;  ///< of the program and of the process that it makes the estimate in
    long touched_pages = 0;      ///< by both
  };
  /// Of a dry run with these settings.
  Cost cost_of(std::vector<std::string> words) const {
    words.insert(words.begin(), {TENON_PROGRAM, "run"});
    words.emplace_back("--dry-run");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string out = (folder_.path() / "out").string();
    const pid_t child = ::fork();
    if (child == 0) {
      const int file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0 && ::chdir(folder_.path().c_str()) == 0)
        ::execv(TENON_PROGRAM, arguments.data());
      ::_exit(127);
    }
    int status = 0;
    struct rusage used {};
    EXPECT_EQ(::wait4(child, &status, 0, &used), child);
    EXPECT_EQ(status, 0);
    return {.out = read_bytes(out), .most_resident_kib = used.ru_maxrss, .touched_pages = used.ru_minflt};
  }
};

TEST_F(EstimateVerb, OfAModelOfBillionsOfParametersTakesHardlyMoreMemoryThanOfASmallOne) {
  const Cost small = cost_of({"exp.toml"});
  const Cost gpt2_xl = cost_of({"large.toml", "model.name=gpt", "model.hidden=1600", "model.layers=48",
                                "model.heads=25", "model.context=1024", "model.vocabulary=50257"});
  const Cost llama_70b = cost_of({"large.toml", "model.name=llama", "model.preset=70B", "model.context=128"});
  EXPECT_THAT(gpt2_xl.out, HasSubstr("1,557,611,200"));
  EXPECT_THAT(llama_70b.out, HasSubstr("70,553,706,496"));
  constexpr long kRoomKib = 64L * 1024;  // drawn, the parameters would take 5.8 GiB and 263 GiB
  for (const Cost* large : {&gpt2_xl, &llama_70b}) {
    EXPECT_LT(large->most_resident_kib, small.most_resident_kib + kRoomKib);
#if !defined(__SANITIZE_ADDRESS__)  // it puts what is given back aside, and takes other pages
    const long page_kib = ::sysconf(_SC_PAGESIZE) / 1024;
    EXPECT_LT(large->touched_pages, small.touched_pages + kRoomKib / page_kib) << "pages, given back or not";
#endif
  }
}

class DryRun : public Program {
 protected:
  Said dry(std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "exp.toml", "--dry-run"});
    return tenon(words);
  }
};

TEST_F(DryRun, RefusesWhatTheRunRefusesInItsWords) {
  for (const std::vector<std::string>& refused : {std::vector<std::string>{"train.offload=activations"},
                                                  {"train.lora_weights=int8"},
                                                  {"train.batch_size=auto"}}) {
    const Said said = dry(refused);
    EXPECT_EQ(said.code, 2) << refused[0];
    EXPECT_EQ(said.out, "") << refused[0];
    const Said run = tenon({"run", "exp.toml", refused[0], "--out", "res"});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.error, HasSubstr(said.error)) << refused[0];
  }
}

TEST_F(DryRun, EndsAsARunOutOfMemoryDoesWhereNothingFits) {
  const Said number = dry({"device.cpu.capacity=10KiB"});
  EXPECT_EQ(number.code, 4);
  EXPECT_THAT(number.out, HasSubstr("# out of memory at          10.0 KiB\n"));
  EXPECT_THAT(number.error, AllOf(HasSubstr("a run would end out of memory"), HasSubstr("caching on cpu")));
  const Said none = dry({"device.cpu.capacity=10KiB", "train.batch_size=auto"});
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.error, HasSubstr("a run would end out of memory"));
  const Said sweep = dry({"train.batch_size=auto", "device.cpu.capacity=10KiB,100MiB", "--sweep"});
  EXPECT_EQ(sweep.code, 4);
  EXPECT_THAT(sweep.error, AllOf(HasSubstr("cell 1: a run would end out of memory"), Not(HasSubstr("cell 2"))));
}

TEST_F(DryRun, NamesTheBatchThatAutoFinds) {
  const Said said = dry({"device.cpu.capacity=100MiB", "train.batch_size=auto"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, ContainsRegex("# batch size \"auto\"         [1-9][0-9,]*\n"));
  EXPECT_THAT(dry({}).out, Not(HasSubstr("# batch size")));
  const Said sweep = dry({"device.cpu.capacity=100MiB", "train.batch_size=auto,4", "--sweep", "--format", "json"});
  const auto cells = parse_json(sweep.out)["rows"];
  EXPECT_GT(cells[0]["auto_batch_size"].get<int>(), 1) << sweep.out;
  EXPECT_TRUE(cells[1]["auto_batch_size"].is_null());
}

TEST_F(EstimateVerb, OfSeveralRanksHasARowForEachAndNamesTheWorst) {
  const Said said = tenon({"run", "exp.toml", "--dry-run", "--ranks", "3", "--device-size", "64MiB"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("# rank  device"), HasSubstr("#    2  cpu:0"), HasSubstr("# worst: rank "),
                              HasSubstr("which fits 64.0 MiB")));
  EXPECT_EQ(tenon({"run", "exp.toml", "--dry-run", "--ranks", "3", "--device-size", "4KiB"}).code, 4) << "none fits";
  EXPECT_THAT(said.out, Not(HasSubstr("communication has no memory of its own"))) << "it has buckets";
  const Said divided = tenon({"run", "exp.toml", "--dry-run", "--ranks", "3", "distributed.shard=\"parameters\""});
  EXPECT_THAT(divided.out, HasSubstr("# communication has no memory of its own: parameters that are gathered and "
                                     "gradients on their way are counted as parameters and gradients\n"));
  const Said alone = tenon({"run", "exp.toml", "--dry-run"});
  EXPECT_EQ(alone.out.find("# rank"), std::string::npos) << "of one process there is one estimate";
}

TEST_F(EstimateVerb, OfADeviceThatNoMachineHasIsRefusedAsTheRunIs) {
  for (const char* device : {"device.name=cpu:7", "device.name=simulated:3"}) {
    const Said dry = tenon({"run", "exp.toml", device, "--dry-run"});
    EXPECT_EQ(dry.code, 2);
    EXPECT_THAT(dry.error, HasSubstr("there is 1 of this kind"));
    EXPECT_EQ(dry.error, tenon({"run", "exp.toml", device}).error);
  }
}

TEST_F(EstimateVerb, OfStagesHasARowForEachDevice) {
  const Said said = tenon({"run", "exp.toml", "--dry-run", "device.names=simulated:0,simulated:1",
                           "device.simulated.count=2", "train.parallel=pipeline", "train.micro_batches=2"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("simulated:0  layer0"), HasSubstr("simulated:1  layer1 to head")));
}

TEST_F(EstimateVerb, OfLayoutsSaysWhichFitADevice) {
  const std::vector<std::string> words = {
      "run",     "large.toml",    "model.name=gpt",     "model.hidden=256",     "--dry-run", "--layouts", "4",
      "--quiet", "model.heads=4", "train.batch_size=4", "train.micro_batches=1"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return tenon(all);
  };
  const Said said = with({"--device-size", "24MiB"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("zero"), HasSubstr("15 layouts"), HasSubstr(" fit 24.0 MiB"),
                              HasSubstr("addresses, theory"), HasSubstr("  yes"), HasSubstr("  no")));
  EXPECT_EQ(with({"--device-size", "1MiB"}).code, 4) << "none fits";
  EXPECT_THAT(with({"--format", "json"}).out, AllOf(HasSubstr("\"tensor\": 4"), HasSubstr("\"fits\": null")));
}

TEST_F(EstimateVerb, OfOneRankSaysWhetherItFitsTheDevice) {
  const Said small = tenon({"run", "exp.toml", "--dry-run", "--device-size", "1KiB"});
  EXPECT_EQ(small.code, 4);
  EXPECT_THAT(small.error, AllOf(HasSubstr("the run would reserve "),
                                 HasSubstr("which does not fit the 1.00 KiB of --device-size")));
  const Said large = tenon({"run", "exp.toml", "--dry-run", "--device-size", "1GiB"});
  EXPECT_EQ(large.code, 0);
  EXPECT_THAT(large.error, Not(HasSubstr("--device-size")));
}

TEST_F(EstimateVerb, PlansThatAreNotOfADryRunAreRefused) {
  const auto refused = [&](std::vector<std::string> words, const char* why) {
    words.insert(words.begin(), {"run", "exp.toml"});
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.error, HasSubstr(why));
  };
  refused({"--ranks", "2"}, "--ranks is an estimate: it goes with --dry-run");
  refused({"--layouts", "2"}, "--layouts is an estimate: it goes with --dry-run");
  refused({"--device-size", "1GiB"}, "--device-size is what an estimate is held against");
  refused({"--dry-run", "--device-size", "1GiB", "--sweep", "train.lr=0.1,0.2"}, "--device-size is of one experiment");
  refused({"--dry-run", "--layouts", "2", "--sweep", "train.lr=0.1,0.2"}, "--layouts is of one experiment");
  refused({"--dry-run", "--device-size", "80"}, "80");
  refused({"--dry-run", "--ranks", "2", "train.optimizer_in_backward=true"}, "ranks sum their gradients");
}

}  // namespace
}  // namespace tenon::test
