// Which batches are recorded.
#include <tenon/train/estimate/batch_histories.h>

#include <algorithm>
#include <utility>

namespace tenon::train {
namespace {

constexpr std::int64_t kApart = 4;  // periods between the two recordings, where there are so many

}  // namespace

BatchHistories::BatchHistories(std::int64_t first, std::int64_t last, std::int64_t period, Record record)
    : first_(first), last_(last), period_(period), record_(std::move(record)) {
  const std::int64_t apart = std::min(kApart, (last - first) / period) * period;
  if (apart == 0) return;
  known_ = BatchHistory::of(first, record_(first), first + apart, record_(first + apart), period);
  by_remainder_.emplace(first % period, known_);
}

const BatchHistory* BatchHistories::of(std::int64_t batch_size) {
  const auto found = by_remainder_.find(batch_size % period_);
  if (found != by_remainder_.end()) return found->second ? &*found->second : nullptr;
  const std::int64_t least = first_ + (batch_size - first_) % period_;
  const Calls calls = record_(least);
  std::optional<BatchHistory> history = known_->like(least, calls);
  if (!history && least + period_ <= last_)
    history = BatchHistory::of(least, calls, least + period_, record_(least + period_), period_);
  const auto& kept = by_remainder_.emplace(batch_size % period_, std::move(history)).first->second;
  return kept ? &*kept : nullptr;
}

}  // namespace tenon::train
