// What tests of runs and sweeps that are ended in the middle have in common: moments that a seed chooses, and what has
// to hold whenever it happened.
//
// TENON_TEST_MOMENTS says at how many moments; `./dev test --full` takes twenty.
#pragma once

#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tenon::test {

namespace fs = std::filesystem;

inline constexpr unsigned kSeed = 20261122;

/// At how many moments; `few` in the ordinary suite.
inline int moments(int few = 3) {
  const char* const wanted = std::getenv("TENON_TEST_MOMENTS");
  return wanted == nullptr ? few : std::atoi(wanted);
}

/// Of that process, at this moment.
inline std::vector<pid_t> children_of(pid_t process) {
  const std::string number = std::to_string(process);
  std::istringstream list(read_bytes("/proc/" + number + "/task/" + number + "/children"));
  return {std::istream_iterator<pid_t>(list), {}};
}

/// Children of the programs that this test has started.
inline std::vector<pid_t> grandchildren() {
  std::vector<pid_t> all;
  for (const pid_t program : children_of(::getpid())) {
    for (const pid_t child : children_of(program)) all.push_back(child);
  }
  return all;
}

/// What is ignored here, as under nohup, is ignored by the programs that this test starts: a test
/// that waits for their handlers would wait for good.
inline void heed_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
}

class InterruptedProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    heed_signals();
    folder_.write("run.toml", kRun);
    folder_.write("sweep.toml",
                  kRun + std::string("[sweep]\n\"allocator.name\" = [\"direct\", \"caching\", \"expandable\"]\n"));
    RecordProperty("seed", static_cast<int>(kSeed));
  }

  fs::path at(const std::string& name) const { return folder_.path() / name; }
  nlohmann::json json_of(const fs::path& path) const { return try_parse_json(read_bytes(path)); }
  double seconds_of(const std::vector<std::string>& words) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(tenon(words).code, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  /// Lets a part of `seconds` pass; which one says the seed. The moment is what varies: no outcome depends on it.
  void wait_a_part_of(double seconds) {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(seconds * std::uniform_real_distribution<>(0, 1)(random_)));
  }

  /// Whatever has its final name is whole.
  void expect_nothing_corrupt(const fs::path& folder, const std::string& where) const {
    std::error_code problem;
    for (const auto& entry : fs::recursive_directory_iterator(folder, problem)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() == ".json") {
        EXPECT_TRUE(json_of(entry.path()).is_object()) << where << ": " << entry.path();
      }
      if (name == "report.html") {
        EXPECT_THAT(read_bytes(entry.path()), testing::HasSubstr("</html>")) << where;
      }
      if (name == "config.resolved.toml") {
        EXPECT_THAT(read_bytes(entry.path()), testing::HasSubstr("replay_ooms")) << where;
      }
    }
  }
  void expect_no_partials(const fs::path& folder, const std::string& where) const {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::HasSubstr(".partial-"))) << where;
  }
  /// The words after "tenon" of the command that was printed as the way on; empty where none was.
  static std::vector<std::string> printed_command(const Said& said) {
    const std::string mark = "\n  tenon ";
    const std::size_t begin = said.error.rfind(mark);
    if (begin == std::string::npos) return {};
    std::istringstream line(
        said.error.substr(begin + mark.size(), said.error.find('\n', begin + mark.size()) - begin - mark.size()));
    return {std::istream_iterator<std::string>(line), {}};
  }
  /// Of `folder/result.json` of a sweep: each cell computed what it does in the sweep `whole`.
  void expect_same_rows(const nlohmann::json& whole, const std::string& out, const std::string& where) const {
    const auto rows = json_of(at(out) / "result.json")["rows"];
    ASSERT_EQ(rows.size(), whole["rows"].size()) << where;
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_EQ(rows[i]["losses_fnv1a64"], whole["rows"][i]["losses_fnv1a64"]) << where;
  }
  void expect_same_result(const std::string& whole, const std::string& resumed, const std::string& where) const {
    const auto a = json_of(at(whole) / "result.json"), b = json_of(at(resumed) / "result.json");
    ASSERT_TRUE(b.is_object()) << where;
    EXPECT_EQ(b["status"], "done") << where;
    EXPECT_EQ(a["result"]["losses"], b["result"]["losses"]) << where;
    EXPECT_EQ(a["result"]["steps"], b["result"]["steps"]) << where;
    EXPECT_EQ(a["result"]["test_accuracy"], b["result"]["test_accuracy"]) << where;
    EXPECT_EQ(a["result"]["epochs"].size(), b["result"]["epochs"].size()) << where;
    EXPECT_EQ(a["memory"]["peak_requested_bytes"], b["memory"]["peak_requested_bytes"]) << where;
    EXPECT_FALSE(fs::exists(at(resumed) / "state.safetensors")) << where << ": a finished run needs none";
  }

  static constexpr char kRun[] =
      "[data]\npath = \"data\"\n[model]\nhidden = 32\ndropout = 0.1\n[train]\nepochs = 60\nbatch_size = 16\n"
      "test_batch_size = 16\nthreads = 1\nsave_every = 50\n";
  std::mt19937 random_{kSeed};
};

}  // namespace tenon::test
