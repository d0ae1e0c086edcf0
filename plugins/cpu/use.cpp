// What /proc says of the whole machine.
#include "use.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::cpu {

namespace {

constexpr std::size_t kShown = 5;

/// Bytes behind "MemTotal:" of /proc/meminfo.
std::size_t meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    constexpr std::size_t kKibibyte = 1024;
    return std::strtoull(line.c_str() + name.size(), nullptr, 10) * kKibibyte;
  }
  return 0;
}

std::size_t resident_bytes(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::vector<ProcessUse> largest_processes() {
  std::vector<ProcessUse> processes;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", problem)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const std::size_t bytes = resident_bytes(name); bytes > 0)
      processes.push_back({.pid = std::atoi(name.c_str()), .command = {}, .bytes = bytes});
  }
  const auto shown = processes.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, processes.size()));
  std::partial_sort(processes.begin(), shown, processes.end(),
                    [](const ProcessUse& a, const ProcessUse& b) { return a.bytes > b.bytes; });
  processes.erase(shown, processes.end());
  for (ProcessUse& process : processes) process.command = command_of_process(process.pid);
  return processes;
}

}  // namespace

DeviceUse HostUse::look() {
  DeviceUse use{.used_bytes = meminfo("MemTotal:") - meminfo("MemAvailable:"), .total_bytes = meminfo("MemTotal:")};
  use.processes = largest_processes();
  // "cpu  user nice system idle iowait irq softirq steal …": what guests take is in user already.
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  std::uint64_t all = 0, waiting = 0;
  constexpr int kIdle = 3, kIoWait = 4, kFields = 8;
  for (int field = 0; field < kFields; ++field) {
    std::uint64_t ticks = 0;
    file >> ticks;
    all += ticks;
    if (field == kIdle || field == kIoWait) waiting += ticks;
  }
  const std::uint64_t busy = all - waiting;
  if (last_all_ > 0 && all > last_all_) {  // what waited may be counted later than what did not: fewer were busy then
    const double ticks = static_cast<double>(busy) - static_cast<double>(last_busy_);
    use.busy = std::clamp(ticks / static_cast<double>(all - last_all_), 0.0, 1.0);
  }
  last_busy_ = busy;
  last_all_ = all;
  return use;
}

}  // namespace tenon::cpu
