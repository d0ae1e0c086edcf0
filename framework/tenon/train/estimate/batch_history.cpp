// Growth, and the calls made again.
#include <tenon/train/estimate/batch_history.h>

#include <tenon/device/device_state.h>
#include <tenon/train/training.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace tenon::train {
namespace {

using Kind = Asked::Kind;

/// The same call but for its size.
bool are_alike(const Asked& a, const Asked& b) {
  const auto form = [](const Asked& call) {
    return std::tuple(call.kind, call.block, call.stream.id, call.keep, call.request.alignment, call.request.stream.id,
                      call.request.purpose, call.request.label, call.request.pool);
  };
  return form(a) == form(b);
}

void reverse_frees(const Calls& calls, std::vector<std::size_t>& turn) {
  const auto is_free = [&](std::size_t i) { return calls[i].kind == Kind::kFree; };
  for (auto first = turn.begin(); first != turn.end();) {
    first = std::find_if(first, turn.end(), is_free);
    const auto last = std::find_if_not(first, turn.end(), is_free);
    std::reverse(first, last);
    first = last;
  }
}

/// The calls of a run under way on an allocator.
class Pass {
 public:
  Pass(AllocatorStack& allocator, std::uint32_t blocks) : allocator_(allocator), blocks_(blocks) {}
  ~Pass() {
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) allocator_.deallocate(*block);
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// `bytes`: of an allocation. Throws OutOfMemory.
  void make(const Asked& call, std::size_t bytes) {
    Block& block = blocks_[call.block];
    switch (call.kind) {
      case Kind::kAllocate: {
        Request request = call.request;
        request.bytes = bytes;
        block = allocator_.allocate(request);
        break;
      }
      case Kind::kFree:
        allocator_.deallocate(std::exchange(block, {}), call.stream);
        break;
      case Kind::kUse:
        allocator_.record_use(block, call.stream);
        break;
      case Kind::kTrim:
        allocator_.trim(call.keep);
        break;
      case Kind::kStep:
        break;
    }
  }

  /// Gives back what was allocated from that block on.
  void undo(std::uint32_t first) {
    for (std::size_t i = first; i < blocks_.size(); ++i) allocator_.deallocate(std::exchange(blocks_[i], {}));
  }

 private:
  AllocatorStack& allocator_;
  std::vector<Block> blocks_;
};

}  // namespace

std::optional<BatchHistory> BatchHistory::of(std::int64_t few, const Calls& with_few, std::int64_t more,
                                             const Calls& with_more, std::int64_t period) {
  if (!std::ranges::equal(with_few, with_more, are_alike)) return std::nullopt;
  BatchHistory history;
  history.least_ = few;
  history.period_ = period;
  history.calls_ = with_few;
  history.blocks_ = static_cast<std::uint32_t>(std::ranges::count(with_few, Kind::kAllocate, &Asked::kind));
  const auto periods = static_cast<std::size_t>((more - few) / period);
  for (std::size_t i = 0; i < with_few.size(); ++i) {
    const std::size_t before = with_few[i].request.bytes, after = with_more[i].request.bytes;
    if (after < before || (after - before) % periods != 0) return std::nullopt;
    history.calls_[i].growth = (after - before) / periods;
  }
  return history;
}

std::optional<BatchHistory> BatchHistory::like(std::int64_t batch_size, const Calls& calls) const {
  if (!std::ranges::equal(calls_, calls, are_alike)) return std::nullopt;
  BatchHistory other = *this;
  other.least_ = batch_size;
  for (std::size_t i = 0; i < calls.size(); ++i) other.calls_[i].request.bytes = calls[i].request.bytes;
  return other;
}

std::int64_t BatchHistory::told_below(std::int64_t batch_size) const {
  return batch_size - (batch_size - least_) % period_;
}

std::size_t BatchHistory::bytes_of(const Asked& call, std::int64_t batch_size) const {
  return call.request.bytes + call.growth * static_cast<std::size_t>((batch_size - least_) / period_);
}

bool BatchHistory::agrees_with(std::int64_t batch_size, const Calls& calls) const {
  return std::ranges::equal(calls_, calls, [&](const Asked& mine, const Asked& other) {
    return are_alike(mine, other) && bytes_of(mine, batch_size) == other.request.bytes;
  });
}

std::uint64_t BatchHistory::peak_of_first_step(std::int64_t batch_size) const {
  std::vector<std::size_t> live(blocks_);
  std::uint64_t now = 0, peak = 0;
  int steps = 0;
  for (const Asked& call : calls_) {
    if (call.kind == Kind::kStep && ++steps == 2) break;
    if (call.kind == Kind::kAllocate) {
      live[call.block] = bytes_of(call, batch_size);
      now += live[call.block];
      peak = std::max(peak, now);
    } else if (call.kind == Kind::kFree) {
      now -= live[call.block];
    }
  }
  return peak;
}

std::optional<OutOfMemoryInfo> BatchHistory::shortage(std::int64_t batch_size, Device device, FreeOrder order) const {
  std::vector<std::size_t> turn(calls_.size());
  std::iota(turn.begin(), turn.end(), std::size_t{0});
  if (order == FreeOrder::kBackwards) reverse_frees(calls_, turn);
  AllocatorStack& allocator = device_state(device).allocator();
  Pass pass(allocator, blocks_);
  struct Begun {
    std::size_t at;
    std::uint32_t allocated;  ///< before it
    int tries;
  };
  std::optional<Begun> step;
  std::uint32_t allocated = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (calls_[i].kind == Kind::kStep) step = Begun{i, allocated, 1};
    try {
      const Asked& call = calls_[turn[i]];
      pass.make(call, bytes_of(call, batch_size));
      if (calls_[i].kind == Kind::kAllocate) ++allocated;
    } catch (const OutOfMemory& error) {
      if (!step || step->tries++ == kMostTries) return error.info();
      pass.undo(step->allocated);
      if (allocator.trim(0) == 0) return error.info();
      allocated = step->allocated;
      i = step->at;
    }
  }
  return std::nullopt;
}

}  // namespace tenon::train
