// LabelLedger: live bytes by label. Only blocks that carry one come here, so one lock is enough.
#pragma once

#include <tenon/memory/stats.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tenon {

class LabelLedger {
 public:
  void add(std::uint16_t label, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (label >= stats_.size()) stats_.resize(label + std::size_t{1});
    stats_[label].increase(static_cast<std::int64_t>(bytes));
  }
  void remove(std::uint16_t label, std::size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    if (label < stats_.size()) stats_[label].decrease(static_cast<std::int64_t>(bytes));
  }
  std::vector<LabelUsage> read() const {
    std::lock_guard lock(mutex_);
    std::vector<LabelUsage> usage;
    for (std::size_t label = 1; label < stats_.size(); ++label) {
      if (stats_[label].allocated == 0 && stats_[label].current == 0) continue;
      usage.push_back({label_name(static_cast<std::uint16_t>(label)), stats_[label]});
    }
    return usage;
  }
  void reset(bool peaks, bool accumulated) {
    std::lock_guard lock(mutex_);
    for (Stat& stat : stats_) {
      if (peaks) stat.reset_peak();
      if (accumulated) stat.reset_accumulated();
    }
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Stat> stats_;  ///< by label
};

}  // namespace tenon
