// Layer `budget`: a ceiling of its own for each purpose, on bytes as requested.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/layers/budget.h>
#include <tenon/memory/layers/layer.h>

#include <fmt/format.h>

#include <array>
#include <atomic>

namespace tenon {

namespace {

/// How every refusal begins, and how it is known again: an OutOfMemory has no field for it, as plugins are built with
/// its layout.
std::string refusal_for(Purpose purpose) { return fmt::format("the budget for purpose '{}' is ", name_of(purpose)); }

class Budget final : public LayerAllocator {
 public:
  Budget(std::unique_ptr<Allocator> inner, const Options& options) : LayerAllocator(std::move(inner)) {
    for (int i = 0; i < kPurposeCount; ++i) budgets_[i] = options.size(name_of(static_cast<Purpose>(i)));
  }

  Block allocate(const Request& request) override {
    const auto purpose = static_cast<std::size_t>(request.purpose);
    const std::size_t budget = budgets_[purpose];
    // What is refused was never counted: it would stand in the way of what another thread asks for meanwhile.
    std::size_t live = live_[purpose].load(std::memory_order_relaxed);
    do {
      if (budget != 0 && (request.bytes > budget || live > budget - request.bytes)) refuse(request, budget, live);
    } while (!live_[purpose].compare_exchange_weak(live, live + request.bytes, std::memory_order_relaxed));
    try {
      return inner_->allocate(request);
    } catch (...) {
      live_[purpose].fetch_sub(request.bytes, std::memory_order_relaxed);
      throw;
    }
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    inner_->deallocate(block, last_use);
    live_[static_cast<std::size_t>(block.request.purpose)].fetch_sub(block.request.bytes, std::memory_order_relaxed);
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    std::vector<std::pair<std::string, std::string>> entries;
    for (int i = 0; i < kPurposeCount; ++i) {
      if (budgets_[i] == 0) continue;
      entries.emplace_back(
          name_of(static_cast<Purpose>(i)),
          fmt::format("{} of {}", format_bytes(live_[i].load(std::memory_order_relaxed)), format_bytes(budgets_[i])));
    }
    return entries;
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  [[noreturn]] static void refuse(const Request& request, std::size_t budget, std::size_t live) {
    throw OutOfMemory({.requested_bytes = request.bytes,
                       .limit_bytes = budget,
                       .hint = fmt::format("{}{}, of which {} are in use: raise option '{}' of layer 'budget'",
                                           refusal_for(request.purpose), format_bytes(budget), format_bytes(live),
                                           name_of(request.purpose))});
  }

  std::array<std::size_t, kPurposeCount> budgets_{};
  std::array<std::atomic<std::size_t>, kPurposeCount> live_{};
};

}  // namespace

std::optional<Purpose> purpose_over_budget(const OutOfMemoryInfo& refusal) {
  for (int i = 0; i < kPurposeCount; ++i) {
    const auto purpose = static_cast<Purpose>(i);
    if (refusal.hint.starts_with(refusal_for(purpose))) return purpose;
  }
  return std::nullopt;
}

LayerInfo budget_layer() {
  OptionSchema options;
  for (int i = 0; i < kPurposeCount; ++i) {
    const std::string_view purpose = name_of(static_cast<Purpose>(i));
    options.push_back(OptionSpec::size(std::string(purpose), 0,
                                       fmt::format("live bytes allowed for purpose '{}'; 0 = any", purpose)));
  }
  return {
      .name = "budget",
      .summary = "refuses what would pass the budget of the request's purpose",
      .options = std::move(options),
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        return std::make_unique<Budget>(std::move(inner), context.options);
      }};
}

}  // namespace tenon
