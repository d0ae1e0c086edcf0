// Recording, growth, and the calls made again.
#include <tenon/train/estimate/batch_history.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/train/estimate/address_run.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tenon::train {
namespace {

using Kind = Asked::Kind;

constexpr char kLayer[] = "the search for the largest batch";
constexpr std::string_view kStepMark = "step ";

/// Takes down what passes.
class TakesDown final : public LayerAllocator {
 public:
  TakesDown(std::unique_ptr<Allocator> inner, std::shared_ptr<Calls> calls)
      : LayerAllocator(std::move(inner)), calls_(std::move(calls)) {}

  Block allocate(const Request& request) override {
    const Block block = inner_->allocate(request);
    live_[block.data] = next_;
    calls_->push_back({.kind = Kind::kAllocate, .block = next_++, .request = request, .stream = {}});
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    calls_->push_back({.kind = Kind::kFree, .block = live_.at(block.data), .request = {}, .stream = last_use});
    live_.erase(block.data);
    inner_->deallocate(block, last_use);
  }
  void record_use(const Block& block, StreamRef stream) override {
    calls_->push_back({.kind = Kind::kUse, .block = live_.at(block.data), .request = {}, .stream = stream});
    inner_->record_use(block, stream);
  }
  std::size_t trim(std::size_t keep_bytes) override {
    calls_->push_back({.kind = Kind::kTrim, .request = {}, .stream = {}, .keep = keep_bytes});
    return inner_->trim(keep_bytes);
  }
  void mark(std::string_view name) override {
    if (name.starts_with(kStepMark)) calls_->push_back({.kind = Kind::kStep, .request = {}, .stream = {}});
  }

 private:
  std::shared_ptr<Calls> calls_;
  std::unordered_map<const void*, std::uint32_t> live_;
  std::uint32_t next_ = 0;
};

/// The same call but for its size.
bool are_alike(const Asked& a, const Asked& b) {
  const auto form = [](const Asked& call) {
    return std::tuple(call.kind, call.block, call.stream.id, call.keep, call.request.alignment, call.request.stream.id,
                      call.request.purpose, call.request.label, call.request.pool);
  };
  return form(a) == form(b);
}

/// What is freed at once comes in the order in which it was allocated: containers give it back in an order of their
/// own.
void sort_frees(Calls& calls) {
  const auto is_free = [](const Asked& call) { return call.kind == Kind::kFree; };
  for (auto first = calls.begin(); first != calls.end();) {
    first = std::find_if(first, calls.end(), is_free);
    const auto last = std::find_if_not(first, calls.end(), is_free);
    std::sort(first, last, [](const Asked& a, const Asked& b) { return a.block < b.block; });
    first = last;
  }
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

Calls record_calls(const ExperimentConfig& config, std::int64_t& examples) {
  const auto calls = std::make_shared<Calls>();
  add_private_layer(
      {.name = kLayer,
       .summary = "takes down what a run asks for",
       .options = {},
       .create = [calls](std::unique_ptr<Allocator> inner,
                         const LayerContext&) { return std::make_unique<TakesDown>(std::move(inner), calls); },
       .wrap_source = {}});
  ExperimentConfig stand_in = on_addresses(config, 0);
  stand_in.allocator = allocator_from_spec(kDefaultAllocator);
  stand_in.allocator.layers = {{kLayer, Options()}};
  examples = run_on_addresses(stand_in, config.device, kTwoSteps).examples;
  sort_frees(*calls);
  return std::move(*calls);
}

std::optional<BatchHistory> BatchHistory::of(std::int64_t few, const Calls& with_few, std::int64_t more,
                                             const Calls& with_more, std::int64_t period) {
  if (!std::ranges::equal(with_few, with_more, are_alike)) return std::nullopt;
  BatchHistory history;
  history.least_ = few;
  history.period_ = period;
  history.calls_ = with_few;
  const auto periods = static_cast<std::size_t>((more - few) / period);
  for (std::size_t i = 0; i < with_few.size(); ++i) {
    Asked& call = history.calls_[i];
    if (call.kind != Kind::kAllocate) continue;
    ++history.blocks_;
    const std::size_t before = call.request.bytes, after = with_more[i].request.bytes;
    if (after < before || (after - before) % periods != 0) return std::nullopt;
    call.growth = (after - before) / periods;
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
  std::optional<std::size_t> step;  // where it begins; none: none has begun
  int tries = 0;
  std::uint32_t allocated = 0, allocated_before_step = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (calls_[i].kind == Kind::kStep) {
      step = i;
      tries = 1;
      allocated_before_step = allocated;
    }
    try {
      const Asked& call = calls_[turn[i]];
      pass.make(call, bytes_of(call, batch_size));
      if (calls_[i].kind == Kind::kAllocate) ++allocated;
    } catch (const OutOfMemory& error) {
      if (!step || tries++ == kMostTries) return error.info();
      pass.undo(allocated_before_step);
      if (allocator.trim(0) == 0) return error.info();
      allocated = allocated_before_step;
      i = *step;
    }
  }
  return std::nullopt;
}

}  // namespace tenon::train
