// `tenon devices --watch`: who uses which device, seen from another process.
#include "cli/program.h"
#include "plugins/simulated/machine.h"

#include <tenon/device/device_use.h>
#include <tenon/device/devices.h>
#include <tenon/device/memory_api.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

namespace tenon::test {
namespace {

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

}  // namespace
}  // namespace tenon::test
