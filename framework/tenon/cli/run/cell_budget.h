// How many cells of a sweep run at a time: no more than asked for, than there are cores, than memory holds.
#pragma once

#include <tenon/runtime/config/experiment.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::cli {

/// What a cell takes of the host while it runs.
struct CellNeed {
  unsigned threads = 1;    ///< that a kernel uses
  std::int64_t bytes = 0;  ///< 0: not known, it runs alone
};

/// The threads of a cell's kernels: as its settings say, else a thread for each core. Results depend on that number in
/// their last bits, so that no cell gets fewer because others run beside it.
unsigned threads_of(const ExperimentConfig& experiment);

/// From the cell's settings, and an estimate in a process of its own that may crash, or hang in one call of the
/// allocator for `call_seconds`. Where the device's memory is not the host's only what a process has anyway is counted.
CellNeed need_of(const ExperimentConfig& experiment, double call_seconds);

class CellBudget {
 public:
  /// The host as it is now: its cores that we may use, and the memory that is available to us.
  explicit CellBudget(unsigned most);
  CellBudget(unsigned most, unsigned cores, std::int64_t bytes) : most_(most), cores_(cores), bytes_(bytes) {}

  /// Whether a cell may start beside those that run. The first one always may.
  bool allows(const CellNeed& cell) const;
  void start(const CellNeed& cell) { running_.push_back(cell); }
  void end(const CellNeed& cell);
  std::size_t running() const { return running_.size(); }
  /// How many cells with these threads run at a time at most.
  unsigned most(std::vector<unsigned> threads) const;

 private:
  unsigned most_;
  unsigned cores_;
  std::int64_t bytes_;
  std::vector<CellNeed> running_;
};

}  // namespace tenon::cli
