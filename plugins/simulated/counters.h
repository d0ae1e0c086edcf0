// Counters of this process's simulated devices, in a small file in shared memory that other processes of the same user
// may read: a simulated device has no driver in the kernel that would know who uses it.
#pragma once

#include <tenon/device/device_use.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::simulated {

/// Of one device. Written by its process alone.
struct DeviceCounters {
  std::atomic<std::uint64_t> is_open{0};
  std::atomic<std::uint64_t> capacity_bytes{0};
  std::atomic<std::uint64_t> used_bytes{0};
  std::atomic<std::uint64_t> kernel_ns{0};   ///< virtual; 0 without a cost model
  std::atomic<std::uint64_t> virtual_ns{0};  ///< how far its timeline has come
};

struct CountersPage;

/// The file of this process. Where it cannot be made, the counters are the process's own and nobody sees them.
class SharedCounters {
 public:
  explicit SharedCounters(int devices);
  /// Removes the file.
  ~SharedCounters();
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;

  DeviceCounters& of(int device);

 private:
  std::string path_;
  int process_;  ///< that made the file: a child that was forked has this object, too
  CountersPage* shared_ = nullptr;
  std::vector<DeviceCounters> own_;
};

/// What all processes of this user do on their devices of that index; files of processes that have ended are removed.
class CountersOfAll {
 public:
  /// The most devices that a process has open.
  static int device_count();
  DeviceUse look(int device);

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> last_;  ///< kernel_ns and virtual_ns of each device, by all
};

}  // namespace tenon::simulated
