// A simulated machine of round rates, whose driver is asked for kernels and copies one by one.
#pragma once

#include "plugins/simulated/machine.h"

#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>
#include <tenon/device/order/virtual_time.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

inline constexpr double kRounding = 1e-6;

/// A million operations a microsecond (four of 16 bits), 100,000 bytes of memory, 10,000 to a peer, 1,000 to the host.
/// No bytes are behind the addresses: nothing is computed, whatever is queued.
class RoundRates : public SimulatedMachine {
 protected:
  void SetUp() override { have_rates({}); }
  static void have_rates(const std::vector<std::pair<std::string, OptionValue>>& besides) {
    std::vector<std::pair<std::string, OptionValue>> options = {{"count", std::int64_t{2}},
                                                                {"mode", std::string("address-only")},
                                                                {"tflops", 1.},
                                                                {"tflops_16", 4.},
                                                                {"memory_gbs", 100.},
                                                                {"peer_gbs", 10.},
                                                                {"host_gbs", 1.}};
    options.insert(options.end(), besides.begin(), besides.end());
    have(options);
  }

  static DeviceDriver& driver(const Device& device = kZero) { return device_state(device).driver(); }
  static KeepsVirtualTime& timeline(const Device& device = kZero) { return *virtual_timeline(driver(device)); }
  static void kernel(StreamRef stream, double us) { timeline().queue_kernel(stream, {.flops = us * 1e6}); }
  static DeviceActivity activity() { return timeline().activity(); }

  /// Zeros, as many as are copied: a copy to the host writes them.
  char* host() { return bytes_.data(); }
  void copy_in(StreamRef stream, std::size_t us) {
    driver().copy(host(), host(), us * 1000, CopyKind::kHostToDevice, stream);
  }
  void copy_out(StreamRef stream, std::size_t us) {
    driver().copy(host(), host(), us * 1000, CopyKind::kDeviceToHost, stream);
  }
  void copy_to_peer(StreamRef stream, std::size_t us) {
    driver().copy(host(), host(), us * 10'000, CopyKind::kPeerToPeer, stream);
  }

  /// What a kernel takes that is alone on the device.
  static double time_of(const KernelWork& work) {
    timeline().reset_activity();
    timeline().queue_kernel({}, work);
    const double us = activity().kernel_us;
    driver().synchronize();
    timeline().reset_activity();
    return us;
  }
  /// How far the host gets by waiting for the whole device.
  static double until_all_is_done() {
    const double before = virtual_time_us();
    driver().synchronize();
    return virtual_time_us() - before;
  }

 private:
  std::vector<char> bytes_ = std::vector<char>(1 << 20);
};

}  // namespace tenon::test
