// The files: made for this user alone, believed only where they are this user's and their process runs.
#include "counters.h"

#include <tenon/core/device.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <utility>

namespace tenon::simulated {

namespace fs = std::filesystem;

struct CountersPage {
  static constexpr std::uint64_t kMark = 0x31'73'74'6e'75'6f'63'74;  // a version of this layout
  static constexpr int kDevices = kMaxDevicesPerType;
  std::atomic<std::uint64_t> mark{0};  ///< kMark once the rest is there
  std::uint64_t process_start = 0;
  DeviceCounters devices[kDevices];
};

namespace {

const char* const kFolder = "/dev/shm";

std::string stem() { return "tenon-simulated-" + std::to_string(geteuid()) + "-"; }

/// A file of one page, mapped; unmapped at the end.
class Mapped {
 public:
  Mapped(const std::string& path, std::size_t bytes) : bytes_(bytes) {
    const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts {};
    const bool is_ours = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
                         facts.st_size == static_cast<off_t>(bytes);
    if (is_ours) address_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
  }
  ~Mapped() {
    if (address_ != MAP_FAILED) munmap(address_, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  const void* get() const { return address_ == MAP_FAILED ? nullptr : address_; }

 private:
  std::size_t bytes_;
  void* address_ = MAP_FAILED;
};

/// The process whose file that is, by its name.
std::optional<int> process_of(const std::string& name) {
  const std::string prefix = stem();
  if (!name.starts_with(prefix) || name.size() == prefix.size() || name.size() > prefix.size() + 9) return std::nullopt;
  const std::string digits = name.substr(prefix.size());
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return std::stoi(digits);
}

/// Calls `visit(pid, page)` for the file of every process that runs; those of others are removed.
template <class Visit>
void each_process(Visit visit) {
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder, problem)) {
    const std::optional<int> pid = process_of(entry.path().filename().string());
    if (!pid) continue;
    const Mapped mapped(entry.path().string(), sizeof(CountersPage));
    const auto* const page = static_cast<const CountersPage*>(mapped.get());
    if (page == nullptr || page->mark.load(std::memory_order_acquire) != CountersPage::kMark) continue;
    const unsigned long long start = start_of_process(*pid);
    if (start != 0 && start == page->process_start) {
      visit(*pid, *page);
    } else {  // it has ended without removing its file
      ::unlink(entry.path().c_str());
    }
  }
}

/// Of a program that ends without shutdown(). A child that was forked leaves the file of its parent alone.
struct RemovedAtExit {
  std::string path;
  pid_t process = 0;
  ~RemovedAtExit() {
    if (process == getpid()) ::unlink(path.c_str());
  }
};

bool is_open(const DeviceCounters& counters) { return counters.is_open.load(std::memory_order_relaxed) != 0; }

}  // namespace

SharedCounters::SharedCounters(int devices)
    : path_(std::string(kFolder) + "/" + stem() + std::to_string(getpid())),
      process_(getpid()),
      own_(static_cast<std::size_t>(devices)) {
  each_process([](int, const CountersPage&) {});  // what crashed before
  ::unlink(path_.c_str());  // of an earlier process of this number, or of an earlier backend of this one
  const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  // posix_fallocate: a full /dev/shm is found out here, and not by a signal at the first write.
  void* address = posix_fallocate(file, 0, sizeof(CountersPage)) == 0
                      ? mmap(nullptr, sizeof(CountersPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                      : MAP_FAILED;
  ::close(file);
  if (address == MAP_FAILED) {
    ::unlink(path_.c_str());
    return;
  }
  static RemovedAtExit removed;
  removed.path = path_;
  removed.process = process_;
  shared_ = new (address) CountersPage;
  shared_->process_start = start_of_process(getpid());
  shared_->mark.store(CountersPage::kMark, std::memory_order_release);
}

SharedCounters::~SharedCounters() {
  if (shared_ == nullptr) return;
  if (process_ == getpid()) ::unlink(path_.c_str());
  munmap(shared_, sizeof(CountersPage));
}

DeviceCounters& SharedCounters::of(int device) {
  return shared_ != nullptr ? shared_->devices[device] : own_.at(static_cast<std::size_t>(device));
}

int CountersOfAll::device_count() {
  int count = 0;
  each_process([&](int, const CountersPage& page) {
    for (int device = count; device < CountersPage::kDevices; ++device)
      if (is_open(page.devices[device])) count = device + 1;
  });
  return count;
}

DeviceUse CountersOfAll::look(int device) {
  DeviceUse use;
  std::uint64_t kernel_ns = 0, virtual_ns = 0;
  each_process([&](int pid, const CountersPage& page) {
    if (device >= CountersPage::kDevices || !is_open(page.devices[device])) return;
    const DeviceCounters& counters = page.devices[device];
    const std::uint64_t used = counters.used_bytes.load(std::memory_order_relaxed);
    kernel_ns += counters.kernel_ns.load(std::memory_order_relaxed);
    virtual_ns += counters.virtual_ns.load(std::memory_order_relaxed);
    use.total_bytes += counters.capacity_bytes.load(std::memory_order_relaxed);
    use.used_bytes += used;
    use.processes.push_back({.pid = pid, .command = command_of_process(pid), .bytes = used});
  });
  std::sort(use.processes.begin(), use.processes.end(),
            [](const ProcessUse& a, const ProcessUse& b) { return a.bytes > b.bytes; });
  if (last_.size() <= static_cast<std::size_t>(device)) last_.resize(static_cast<std::size_t>(device) + 1);
  auto& [last_kernel, last_virtual] = last_[static_cast<std::size_t>(device)];
  if (last_virtual > 0 && virtual_ns > last_virtual && kernel_ns >= last_kernel)
    use.busy =
        std::min(1.0, static_cast<double>(kernel_ns - last_kernel) / static_cast<double>(virtual_ns - last_virtual));
  last_kernel = kernel_ns;
  last_virtual = virtual_ns;
  return use;
}

}  // namespace tenon::simulated
