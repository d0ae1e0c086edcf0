// Who uses simulated devices, over all processes of this user: files in shared memory that nobody has to believe. A
// program of its own, in which no kernel has run: it forks, and a child has no threads of kernels. Its cases look at
// what the others leave there, so that they run one by one.
#include "plugins/simulated/machine.h"

#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>
#include <tenon/device/device_use.h>
#include <tenon/device/order/virtual_time.h>

#include <gmock/gmock.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

/// Devices of an index that no other program of this user is likely to have.
constexpr int kFar = 37;

class SimulatedUse : public SimulatedMachine {
 protected:
  void SetUp() override { have_many({}); }
  static void have_many(std::vector<std::pair<std::string, OptionValue>> options) {
    options.insert(
        options.begin(),
        {{"count", std::int64_t{kFar + 2}}, {"capacity", std::string("1GiB")}, {"mode", std::string("address-only")}});
    have(options);
  }
  static DeviceDriver& open(int index) { return device_state(Device("simulated:" + std::to_string(index))).driver(); }
  static ReportsUse& reporter() { return dynamic_cast<ReportsUse&>(find_backend("simulated")); }
  static std::string file_of(pid_t process) {
    return "/dev/shm/tenon-simulated-" + std::to_string(geteuid()) + "-" + std::to_string(process);
  }
  static std::optional<ProcessUse> use_of(pid_t process, int index) {
    const DeviceUse use = reporter().look(index);
    const auto found = std::find_if(use.processes.begin(), use.processes.end(),
                                    [&](const ProcessUse& one) { return one.pid == process; });
    return found == use.processes.end() ? std::nullopt : std::optional(*found);
  }
};

/// A child of this process that has a device and memory of it until it is let go. It ends without closing anything.
class OtherProcess {
 public:
  OtherProcess(DeviceDriver& (*open)(int), std::size_t bytes) {
    int ready[2], go[2];
    if (::pipe(ready) != 0 || ::pipe(go) != 0) throw Error("no pipes");
    process_ = ::fork();
    if (process_ == 0) {
      ::close(go[1]);
      char byte = open(kFar).memory().acquire(bytes) == nullptr ? 'n' : 'y';
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(go[0], &byte, 1);
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(go[0]);
    go_ = go[1];
    char byte = 'n';
    const bool said = ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
    if (!said || byte != 'y') throw Error("the other process has no device");
  }
  ~OtherProcess() { end(); }
  void end() {
    if (go_ < 0) return;
    ::close(go_);
    go_ = -1;
    ::waitpid(process_, nullptr, 0);
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
  int go_ = -1;
};

TEST_F(SimulatedUse, IsNoneBeforeADeviceIsOpenedAndAfterItIsClosed) {
  EXPECT_EQ(use_of(getpid(), kFar), std::nullopt);
  EXPECT_FALSE(fs::exists(file_of(getpid())));
  open(kFar);
  EXPECT_TRUE(use_of(getpid(), kFar).has_value());
  EXPECT_FALSE(use_of(getpid(), kFar - 1).has_value()) << "of another one";
  EXPECT_FALSE(use_of(getpid(), kFar + 1).has_value());
  shutdown();
  EXPECT_FALSE(use_of(getpid(), kFar).has_value());
  EXPECT_FALSE(fs::exists(file_of(getpid())));
}

TEST_F(SimulatedUse, IsTheMemoryThatWasTakenAndNotGivenBack) {
  MemorySource& memory = open(kFar).memory();
  const std::size_t page = memory.traits().page_bytes;
  const auto mine = [] { return use_of(getpid(), kFar).value(); };
  EXPECT_EQ(mine().bytes, 0U);
  EXPECT_EQ(mine().command, command_of_process(getpid()));
  void* const address = memory.acquire(100 * MiB);
  EXPECT_EQ(mine().bytes, 100 * MiB);
  const Physical physical = memory.create(3 * page);
  EXPECT_EQ(mine().bytes, 100 * MiB + 3 * page);
  EXPECT_EQ(memory.acquire(2 * GiB), nullptr);
  EXPECT_FALSE(memory.create(GiB));
  open(kFar).pinned_host_memory()->release(open(kFar).pinned_host_memory()->acquire(4096), 4096);
  EXPECT_EQ(mine().bytes, 100 * MiB + 3 * page) << "what was not given is not counted, nor the host's";
  const DeviceUse use = reporter().look(kFar);
  EXPECT_EQ(use.used_bytes, 100 * MiB + 3 * page);
  EXPECT_EQ(use.total_bytes, GiB);
  EXPECT_EQ(use.busy, std::nullopt) << "without a cost model nobody counts";
  memory.release(address, 100 * MiB);
  EXPECT_EQ(mine().bytes, 3 * page);
  memory.destroy(physical, 3 * page);
  EXPECT_EQ(mine().bytes, 0U);
}

TEST_F(SimulatedUse, DevicesAreVisibleUpToTheLastThatSomebodyHasOpen) {
  open(kFar);
  open(2);
  EXPECT_EQ(reporter().visible_devices(1), kFar + 1);
  EXPECT_EQ(reporter().visible_devices(kFar + 1), kFar + 1);
  EXPECT_EQ(reporter().visible_devices(kFar + 2), kFar + 2) << "those that this process has";
}

TEST_F(SimulatedUse, TheLastDeviceThatThereMayBeIsCountedTooAndBehindItThereIsNone) {
  have_many({{"count", std::int64_t{kMaxDevicesPerType}}});
  constexpr int kLast = kMaxDevicesPerType - 1;
  EXPECT_NE(open(kLast).memory().acquire(3 * MiB), nullptr);
  EXPECT_EQ(use_of(getpid(), kLast).value().bytes, 3 * MiB);
  EXPECT_EQ(use_of(getpid(), kLast - 1), std::nullopt);
  EXPECT_EQ(use_of(getpid(), kLast + 1), std::nullopt);
  EXPECT_EQ(reporter().visible_devices(0), kMaxDevicesPerType);
}

TEST_F(SimulatedUse, IsAddedUpOverProcessesTheLargestFirst) {
  OtherProcess larger(&open, 300 * MiB), smaller(&open, 100 * MiB);
  open(kFar).memory().acquire(200 * MiB);
  const DeviceUse use = reporter().look(kFar);
  EXPECT_EQ(use.used_bytes, 600 * MiB);
  EXPECT_EQ(use.total_bytes, 3 * GiB) << "each has a device of its own";
  ASSERT_EQ(use.processes.size(), 3U);
  EXPECT_EQ(use.processes[0].pid, larger.process());
  EXPECT_EQ(use.processes[0].bytes, 300 * MiB);
  EXPECT_EQ(use.processes[1].pid, getpid());
  EXPECT_EQ(use.processes[1].bytes, 200 * MiB);
  EXPECT_EQ(use.processes[2].pid, smaller.process());
  EXPECT_EQ(use.processes[2].command, command_of_process(smaller.process()));
}

TEST_F(SimulatedUse, OfAProcessThatDiedIsNotBelievedAndItsFileGoes) {
  OtherProcess other(&open, MiB);
  const pid_t process = other.process();
  EXPECT_TRUE(use_of(process, kFar).has_value());
  EXPECT_TRUE(fs::exists(file_of(process)));
  other.end();
  EXPECT_TRUE(fs::exists(file_of(process))) << "it had no time to";
  EXPECT_EQ(use_of(process, kFar), std::nullopt);
  EXPECT_FALSE(fs::exists(file_of(process)));
  EXPECT_LE(reporter().visible_devices(0), kFar) << "what others have";
}

TEST_F(SimulatedUse, AFileOfAProcessThatDiedGoesWithTheNextDevice) {
  OtherProcess other(&open, MiB);
  other.end();
  EXPECT_TRUE(fs::exists(file_of(other.process())));
  open(kFar);
  EXPECT_FALSE(fs::exists(file_of(other.process())));
}

TEST_F(SimulatedUse, AFileIsForThisUserAlone) {
  open(kFar);
  struct stat facts {};
  ASSERT_EQ(::stat(file_of(getpid()).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  EXPECT_EQ(facts.st_uid, geteuid());
  EXPECT_GT(facts.st_size, 0);
}

/// A copy of this process's file under another name, gone at the end.
class Forged {
 public:
  Forged(const std::string& from, std::string path) : path_(std::move(path)) { fs::copy_file(from, path_); }
  ~Forged() { fs::remove(path_); }

 private:
  std::string path_;
};

TEST_F(SimulatedUse, AFileThatIsNotThatOfARunningProcessIsNotBelieved) {
  open(kFar).memory().acquire(MiB);
  const std::string own = file_of(getpid()), stem = own.substr(0, own.rfind('-') + 1);
  const auto processes = [] { return reporter().look(kFar).processes.size(); };
  EXPECT_EQ(processes(), 1U);
  {
    Forged of_another(own, file_of(getppid()));
    EXPECT_EQ(processes(), 1U) << "which was started at another time";
    EXPECT_FALSE(fs::exists(file_of(getppid()))) << "an earlier process had that number";
  }
  for (const std::string& name :
       std::vector<std::string>{stem, stem + "12x", stem + "1234567890", stem + "-1", "/dev/shm/tenon-simulated"}) {
    Forged strange(own, name);
    EXPECT_EQ(processes(), 1U) << name;
    EXPECT_TRUE(fs::exists(name)) << "whose it is, nobody knows";
  }
  const std::string nobodys = stem + "999999998";
  {
    Forged shorter(own, nobodys);
    fs::resize_file(nobodys, fs::file_size(nobodys) - 1);
    EXPECT_EQ(processes(), 1U);
    EXPECT_TRUE(fs::exists(nobodys)) << "perhaps of another version";
  }
  fs::create_symlink(own, nobodys);
  EXPECT_EQ(processes(), 1U);
  EXPECT_TRUE(fs::is_symlink(nobodys));
  fs::remove(nobodys);
  Forged ended(own, nobodys);
  EXPECT_EQ(processes(), 1U);
  EXPECT_FALSE(fs::exists(nobodys)) << "of a process that has ended";
}

TEST_F(SimulatedUse, ADeviceIsAsBusyAsItsKernelsWereSinceTheLastLook) {
  have_many({{"tflops", 1.}, {"host_gbs", 1.}});
  DeviceDriver& driver = open(kFar);
  std::vector<char> bytes(1000);
  const auto work = [&](int kernel_us, int copy_us) {
    virtual_timeline(driver)->queue_kernel({}, {.flops = kernel_us * 1e6});
    for (int i = 0; i < copy_us; ++i) driver.copy(bytes.data(), bytes.data(), 1000, CopyKind::kHostToDevice, {});
    driver.synchronize();
  };
  work(10, 10);
  EXPECT_EQ(reporter().look(kFar).busy, std::nullopt) << "since when?";
  work(30, 10);
  EXPECT_NEAR(reporter().look(kFar).busy.value(), .75, 1e-3);
  work(10, 40);
  EXPECT_NEAR(reporter().look(kFar).busy.value(), .2, 1e-3);
  work(10, 0);
  EXPECT_NEAR(reporter().look(kFar).busy.value(), 1, 1e-3);
  EXPECT_EQ(reporter().look(kFar).busy, std::nullopt) << "no time has gone by";
  virtual_timeline(driver)->queue_kernel({}, {.flops = 5e6});
  EXPECT_NEAR(reporter().look(kFar).busy.value(), 1, 1e-3) << "as far as it is queued";
  open(kFar - 1);
  EXPECT_EQ(reporter().look(kFar - 1).busy, std::nullopt) << "each device for itself";
}

TEST_F(SimulatedUse, AForkedChildLeavesTheFileOfItsParentAlone) {
  open(kFar);
  const pid_t child = ::fork();
  if (child == 0) {
    shutdown();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(use_of(getpid(), kFar).has_value());
}

TEST_F(SimulatedUse, AProgramThatEndsWithoutClosingItsDevicesRemovesItsFile) {
  const auto end = [] {
    open(kFar);
    std::exit(fs::exists(file_of(getpid())) ? 0 : 1);
  };
  const pid_t child = ::fork();
  if (child == 0) end();
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(file_of(child)));
}

}  // namespace
}  // namespace tenon::test
