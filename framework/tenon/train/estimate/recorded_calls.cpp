// A run on addresses whose allocator takes down what it is asked. Declared in batch_history.h.
#include <tenon/memory/layers/layer.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/batch_history.h>

#include <algorithm>
#include <string_view>
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

}  // namespace tenon::train
