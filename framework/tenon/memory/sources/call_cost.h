// CallCosts: how long a device takes for its calls for memory. A part is for each call; pages are made, mapped and
// given back one by one, so that there a part is for each MiB (bench/results/device_calls.md).
#pragma once

#include <tenon/core/units.h>

#include <cstddef>

namespace tenon {

/// Of one kind of call, in microseconds.
struct CallCost {
  double call = 0, mib = 0;
  double us(std::size_t bytes) const { return call + mib * static_cast<double>(bytes) / static_cast<double>(MiB); }
};

struct CallCosts {
  CallCost acquire, release, reserve, unreserve, create, destroy, map, unmap;

  /// Every call takes as long as any other, whatever its size.
  static constexpr CallCosts of_each_call(double us) {
    const CallCost each{us, 0};
    return {each, each, each, each, each, each, each, each};
  }
};

/// Of an NVIDIA H100 80GB HBM3 under driver 580: a line through the medians from 8 MiB to 2 GiB.
inline constexpr CallCosts kH100CallCosts{.acquire = {45, 0.04},
                                          .release = {36, 0.45},
                                          .reserve = {5, 0},
                                          .unreserve = {5, 0},
                                          .create = {5, 4.0},
                                          .destroy = {2, 4.8},
                                          .map = {3, 11.6},
                                          .unmap = {2, 7.8}};

}  // namespace tenon
