// Two ceilings, the user's share of the device and the host's: the lower one counts.
#include "limits.h"

#include <algorithm>
#include <cmath>

namespace tenon::caching {

void Limits::set_fraction(double fraction, std::size_t total_bytes) {
  device_share_bytes_ =
      total_bytes == 0 ? kUnlimited : static_cast<std::size_t>(fraction * static_cast<double>(total_bytes));
  if (total_bytes == 0 || (fraction >= 1 && !compat_1_13_)) {
    fraction_limit_bytes_ = kUnlimited;
  } else {
    const double limit = fraction * static_cast<double>(total_bytes);
    fraction_limit_bytes_ = static_cast<std::size_t>(compat_1_13_ ? std::trunc(limit) : std::round(limit));
  }
  apply();
}

void Limits::set_host_limit(std::size_t limit_bytes) {
  host_limit_bytes_ = limit_bytes == 0 ? kUnlimited : limit_bytes;
  apply();
}

void Limits::apply() {
  limit_bytes_ = std::min(fraction_limit_bytes_, host_limit_bytes_);
  collects_garbage_ = garbage_threshold_ > 0 && limit_bytes_ != kUnlimited;
}

}  // namespace tenon::caching
