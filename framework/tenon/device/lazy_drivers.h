// LazyDrivers: the drivers of a backend whose devices are a number in its settings, each made when it is first asked
// for.
#pragma once

#include <tenon/core/error.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

template <class Driver>
class LazyDrivers {
 public:
  /// `kind`: "simulated", of devices that `device.simulated.count` counts.
  explicit LazyDrivers(std::string kind) : kind_(std::move(kind)) {}

  void resize(std::size_t count) { drivers_.resize(count); }
  int count() const { return static_cast<int>(drivers_.size()); }

  /// `make("simulated:1")` gives a std::unique_ptr<Driver>. Throws Error where there is no such device. Thread-safe.
  template <class Make>
  Driver& get(int index, const Make& make) {
    const std::lock_guard lock(mutex_);
    if (index < 0 || index >= count()) {
      throw Error("there is no device " + kind_ + ":" + std::to_string(index) + ": " + std::to_string(count()) +
                  " are configured; raise device." + kind_ + ".count");
    }
    auto& driver = drivers_[static_cast<std::size_t>(index)];
    if (driver == nullptr) driver = make(kind_ + ":" + std::to_string(index));
    return *driver;
  }

  /// The number of devices stays.
  void destroy_all() noexcept {
    for (auto& driver : drivers_) driver.reset();
  }

 private:
  const std::string kind_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Driver>> drivers_;
};

}  // namespace tenon
