// What a training run asks of its allocator, as a function of the batch: two recorded runs tell how each request grows,
// a third one proves it. Whether a batch fits is then asked of the allocator itself, without running the model.
#pragma once

#include <tenon/core/error.h>
#include <tenon/memory/allocator.h>
#include <tenon/runtime/config/experiment.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tenon::train {

/// One call. `block` counts the allocations of the run from 0.
struct Asked {
  enum class Kind : std::uint8_t { kAllocate, kFree, kUse, kTrim, kStep };
  Kind kind = Kind::kStep;
  std::uint32_t block = 0;
  Request request;         ///< kAllocate
  StreamRef stream;        ///< kFree: its last use; kUse
  std::size_t keep = 0;    ///< kTrim
  std::size_t growth = 0;  ///< kAllocate: bytes for each further period of examples; 0 in a recording
};
using Calls = std::vector<Asked>;

/// What two steps and a test ask for on addresses that have no end; `examples` becomes the
/// size of the data set. Throws what run_on_addresses throws.
Calls record_calls(const ExperimentConfig& config, std::int64_t& examples);

/// Of blocks that are freed one after the other, with nothing between: containers have an order of their own, which may
/// be another in each run, and an allocator may end up elsewhere by it.
enum class FreeOrder { kAsAllocated, kBackwards };

/// A recording of each of two batches, taken together: it tells of every batch that is a multiple of `period` examples
/// away. Parts of a batch whose sizes are rounded grow alike then, by the same whole examples.
class BatchHistory {
 public:
  /// Empty where they are no two sizes of one thing: other calls, or growth by something else than whole bytes for each
  /// period.
  static std::optional<BatchHistory> of(std::int64_t few, const Calls& with_few, std::int64_t more,
                                        const Calls& with_more, std::int64_t period);
  /// That of a batch which is no multiple of the period away, with the growth that this one has: empty where its
  /// recording has other calls.
  std::optional<BatchHistory> like(std::int64_t batch_size, const Calls& calls) const;

  /// Whether a recording of that batch is what this would say of it.
  bool agrees_with(std::int64_t batch_size, const Calls& calls) const;
  /// The largest batch of which it tells, up to this one.
  std::int64_t told_below(std::int64_t batch_size) const;
  /// The most bytes that live at once up to the end of the first step, which is the same however many follow.
  std::uint64_t peak_of_first_step(std::int64_t batch_size) const;
  /// Makes the calls of that batch of the allocator of `device`, which is open, and gives everything back. As in
  /// training, a step that runs out of memory is made once more from its beginning where the cache had something to
  /// give. Returns what ran out, or nothing.
  std::optional<OutOfMemoryInfo> shortage(std::int64_t batch_size, Device device, FreeOrder order) const;

 private:
  std::size_t bytes_of(const Asked& call, std::int64_t batch_size) const;
  std::int64_t least_ = 0;  ///< the batch that `calls_` are of
  std::int64_t period_ = 1;
  Calls calls_;
  std::uint32_t blocks_ = 0;
};

}  // namespace tenon::train
