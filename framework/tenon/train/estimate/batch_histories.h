// Histories of every batch of a range, recorded as they are asked for.
#pragma once

#include <tenon/train/estimate/batch_history.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

namespace tenon::train {

/// Batches whose steps are the same calls: those of an epoch of several steps, or of one.
///
/// Note [Periods]: a batch in three parts has parts that differ by an example, and a loss in chunks has chunks of so
/// many positions: sizes are rounded, but every `period` examples on they have grown by whole ones. So two recordings a
/// few periods apart tell how each request grows, and one for each remainder where it begins.
class BatchHistories {
 public:
  using Record = std::function<Calls(std::int64_t batch_size)>;

  /// Of [first, last]. Two batches are recorded. `record` throws what it likes, then and later.
  BatchHistories(std::int64_t first, std::int64_t last, std::int64_t period, Record record);
  /// Whether the two were sizes of one thing; without that nothing else may be asked.
  bool are_known() const { return known_.has_value(); }
  /// Of the first recording: for what grows with the batch whatever the remainder.
  const BatchHistory& any() const { return *known_; }
  /// Of this batch, which lies in the range; null where its calls are others.
  const BatchHistory* of(std::int64_t batch_size);

 private:
  std::int64_t first_, last_, period_;
  Record record_;
  std::optional<BatchHistory> known_;
  std::map<std::int64_t, std::optional<BatchHistory>> by_remainder_;
};

}  // namespace tenon::train
