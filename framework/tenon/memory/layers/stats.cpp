// Layer `stats`: counts what passes at its place in the stack, with a histogram of sizes. The host's own figures are
// taken outside of all layers; this one shows what another layer makes of the requests.
#include <tenon/core/units.h>
#include <tenon/memory/layers/layer.h>

#include <fmt/format.h>

#include <array>
#include <bit>

namespace tenon {

namespace {

class Stats final : public LayerAllocator {
 public:
  using LayerAllocator::LayerAllocator;

  Block allocate(const Request& request) override {
    Block block;
    try {
      block = inner_->allocate(request);
    } catch (...) {
      ++failures_;
      throw;
    }
    blocks_.increase(1);
    requested_.increase(static_cast<std::int64_t>(request.bytes));
    allocated_.increase(static_cast<std::int64_t>(block.bytes));
    largest_ = std::max(largest_, request.bytes);
    ++by_size_[static_cast<std::size_t>(std::bit_width(request.bytes) - 1)];
    return block;
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    blocks_.decrease(1);
    requested_.decrease(static_cast<std::int64_t>(block.request.bytes));
    allocated_.decrease(static_cast<std::int64_t>(block.bytes));
    inner_->deallocate(block, last_use);
  }

  void reset_stats(bool peaks, bool accumulated) override {
    for (Stat* stat : {&blocks_, &requested_, &allocated_}) {
      if (peaks) stat->reset_peak();
      if (accumulated) stat->reset_accumulated();
    }
    if (accumulated) {
      by_size_.fill(0);
      failures_ = 0;
    }
    inner_->reset_stats(peaks, accumulated);
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    std::string histogram;
    for (std::size_t power = 0; power < by_size_.size(); ++power) {
      if (by_size_[power] == 0) continue;
      histogram += fmt::format("{}{}:{}", histogram.empty() ? "" : " ", format_size_exact(std::size_t{1} << power),
                               by_size_[power]);
    }
    return {{"allocations", fmt::format("{}", blocks_.allocated)},
            {"frees", fmt::format("{}", blocks_.freed)},
            {"failures", fmt::format("{}", failures_)},
            {"live_blocks", fmt::format("{}", blocks_.current)},
            {"peak_blocks", fmt::format("{}", blocks_.peak)},
            {"live_requested_bytes", fmt::format("{}", requested_.current)},
            {"peak_requested_bytes", fmt::format("{}", requested_.peak)},
            {"total_requested_bytes", fmt::format("{}", requested_.allocated)},
            {"peak_allocated_bytes", fmt::format("{}", allocated_.peak)},
            {"largest_request_bytes", fmt::format("{}", largest_)},
            {"sizes_from_power_of_two", histogram}};
  }

 private:
  Stat blocks_, requested_, allocated_;
  std::int64_t failures_ = 0;
  std::size_t largest_ = 0;
  std::array<std::int64_t, 64> by_size_{};
};

}  // namespace

LayerInfo stats_layer() {
  return {.name = "stats",
          .summary = "counts blocks, bytes and sizes at its place in the stack",
          .create = [](std::unique_ptr<Allocator> inner, const LayerContext&) -> std::unique_ptr<LayerAllocator> {
            return std::make_unique<Stats>(std::move(inner));
          }};
}

}  // namespace tenon
