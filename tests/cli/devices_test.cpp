// `tenon devices`: what each device is; with --watch, who uses which one, seen from another process.
#include "cli/program.h"
#include "plugins/simulated/machine.h"
#include "support/json.h"

#include <tenon/device/device_use.h>
#include <tenon/device/devices.h>
#include <tenon/device/memory_api.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class WatchedDevices : public SimulatedMachine {
 protected:
  std::string watched() {
    return tenon_in(folder_, {"devices", "--watch", "--count", "1", "--interval", "0.05", "--format", "csv"}).out;
  }
  Folder folder_;
};

TEST_F(WatchedDevices, ShowWhichProcessHoldsHowMuch) {
  have({{"count", std::int64_t{3}}, {"capacity", std::string("1GiB")}});
  // Other processes of this user may have such devices, too, and this one is seen under cpu:0.
  const std::string row = "simulated:2,.*," + std::to_string(getpid()) + ",.*,";
  {
    const Tensor held = empty({25 << 18}, TensorOptions(Device("simulated:2")));
    const std::string seen = watched();
    EXPECT_THAT(seen, ContainsRegex(row + std::to_string(memory_reserved("simulated:2"))));
    EXPECT_THAT(seen, HasSubstr("cpu:0,"));
  }
  shutdown();
  EXPECT_THAT(watched(), Not(ContainsRegex(row)));
}

TEST_F(WatchedDevices, FilesOfProcessesThatHaveEndedAreNotBelieved) {
  const std::string gone = "/dev/shm/tenon-simulated-" + std::to_string(geteuid()) + "-999999999";
  std::ofstream(gone) << "not a page";
  EXPECT_THAT(watched(), Not(HasSubstr("999999999")));
  std::filesystem::remove(gone);
}

TEST_F(WatchedDevices, AreShownUntilAnInterrupt) {
  StartedProgram program(folder_, {"devices", "--watch", "--interval", "0.05"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  EXPECT_EQ(program.wait().code, 0);
}

/// A kind of devices of fixed figures beside those of this machine: tests/runtime/fixtures/gauge.cpp.
class DevicesVerb : public testing::Test {
 protected:
  void SetUp() override { have_gauges("count = 2"); }
  void have_gauges(const std::string& settings) {
    folder_.write("gauge.toml",
                  "[plugins]\nload = [\"" + fixture("gauge").string() + "\"]\n[device.gauge]\n" + settings + "\n");
  }
  Said devices(std::vector<std::string> more) {
    more.insert(more.begin(), {"devices", "--config", "gauge.toml"});
    Said said = tenon_in(folder_, more);
    EXPECT_EQ(said.code, 0) << said.error;
    EXPECT_EQ(said.error, "");
    return said;
  }
  /// The rows of one kind.
  json rows_of(const std::string& kind, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = more;
    words.insert(words.end(), {"--format", "json"});
    const json document = parse_json(devices(words).out);
    json rows = json::array();
    for (const json& row : document.at("rows"))
      if (row.at("device").get<std::string>().starts_with(kind)) rows.push_back(row);
    return rows;
  }
  Folder folder_;
};

TEST_F(DevicesVerb, SaysOfEachDeviceWhatItsDriverSays) {
  EXPECT_EQ(rows_of("gauge"), parse_json(R"([
      {"device": "gauge:0", "name": "dial", "capacity_bytes": 67108864, "free_bytes": 67108864, "compute_units": 3,
       "virtual_memory": true, "asynchronous": false, "details": "scale linear, hands 2", "problem": null},
      {"device": "gauge:1", "name": "dial without end", "capacity_bytes": "unlimited", "free_bytes": null,
       "compute_units": 1, "virtual_memory": true, "asynchronous": false, "details": "", "problem": null}])"));
}

TEST_F(DevicesVerb, AKindWithoutADeviceHasARowThatSaysWhy) {
  have_gauges("count = 0");
  EXPECT_EQ(rows_of("gauge"), parse_json(R"([
      {"device": "gauge", "name": null, "capacity_bytes": null, "free_bytes": null, "compute_units": null,
       "virtual_memory": null, "asynchronous": null, "details": null, "problem": "none: no gauge is screwed on"}])"));
}

TEST_F(DevicesVerb, SettingsOfAKindAreThoseOfTheFile) {
  folder_.write("gauge.toml", "[device.simulated]\ncount = 2\ncapacity = \"1GiB\"\npage = \"4MiB\"\n");
  const json rows = rows_of("simulated");
  ASSERT_EQ(rows.size(), 2U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["device"], "simulated:" + std::to_string(i));
    EXPECT_EQ(rows[i]["capacity_bytes"], 1 << 30);
    EXPECT_EQ(rows[i]["virtual_memory"], true);
    EXPECT_EQ(rows[i]["asynchronous"], true);
    EXPECT_THAT(rows[i]["details"].get<std::string>(), HasSubstr("page 4MiB"));
  }
}

TEST_F(DevicesVerb, ACountWithoutWatchChangesNothing) {
  EXPECT_THAT(tenon_in(folder_, {"devices", "--count", "2"}).error, HasSubstr("--count changes nothing here"));
}

TEST_F(DevicesVerb, AFileThatIsNotThereIsAMistake) {
  const Said said = tenon_in(folder_, {"devices", "--config", "absent.toml"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("absent.toml"));
  EXPECT_EQ(said.out, "");
}

TEST_F(DevicesVerb, ALookShowsEachProcessOfADeviceAndDevicesThatOthersHave) {
  EXPECT_EQ(rows_of("gauge", {"--watch", "--count", "1", "--interval", "0.01"}), parse_json(R"([
      {"device": "gauge:0", "busy": 0.25, "used_bytes": 50331648, "total_bytes": 67108864, "used": 0.75, "pid": 4711,
       "command": "trainer", "process_bytes": 41943040, "problem": null},
      {"device": "gauge:0", "busy": 0.25, "used_bytes": 50331648, "total_bytes": 67108864, "used": 0.75, "pid": 12,
       "command": "", "process_bytes": 1048576, "problem": null},
      {"device": "gauge:1", "busy": null, "used_bytes": 3145728, "total_bytes": null, "used": null, "pid": null,
       "command": null, "process_bytes": null, "problem": null},
      {"device": "gauge:2", "busy": null, "used_bytes": null, "total_bytes": null, "used": null, "pid": null,
       "command": null, "process_bytes": null, "problem": "its glass is misted"}])"));
}

TEST_F(DevicesVerb, SoManyLooksAsAskedForFollowEachOtherWithALineBetweenTables) {
  const auto count = [](const std::string& text, const std::string& what) {
    int found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  const std::string tables = devices({"--watch", "--count", "3", "--interval", "0.01"}).out;
  EXPECT_EQ(count(tables, "used share"), 3);
  EXPECT_EQ(count(tables, "\n\ndevice "), 2);
  EXPECT_TRUE(tables.starts_with("device "));
  EXPECT_FALSE(tables.ends_with("\n\n"));
  const std::string rows = devices({"--watch", "--count", "2", "--interval", "0.01", "--format", "csv"}).out;
  EXPECT_EQ(count(rows, "device,busy,used_bytes,total_bytes,used,pid,command,process_bytes,problem\n"), 2);
  EXPECT_EQ(count(rows, "\n\n"), 0) << "a file of them has no empty lines";
}

TEST_F(DevicesVerb, AnInterruptDoesNotWaitForTheNextLook) {
  StartedProgram program(folder_, {"devices", "--watch", "--interval", "86400"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, "") << "no look is due yet";
  EXPECT_EQ(said.error, "");
}

TEST_F(DevicesVerb, NeitherTheIntervalNorTheCountMayBeOutOfRange) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--interval", "0.009"},
                                                {"--interval", "86401"},
                                                {"--count", "-1"},
                                                {"--count", "1000001"}}) {
    std::vector<std::string> line = {"devices", "--watch"};
    line.insert(line.end(), words.begin(), words.end());
    const Said said = tenon_in(folder_, line);
    EXPECT_EQ(said.code, 2) << words[0] << " " << words[1];
    EXPECT_THAT(said.error, HasSubstr("not in range"));
  }
}

}  // namespace
}  // namespace tenon::test
