// Layer `limit`: a ceiling, as if the device were smaller.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/observed_source.h>

#include <atomic>

namespace tenon {

namespace {

/// Counts reserved bytes: the ceiling is in the source, where the policy meets it like a full device. What it caches it
/// gives back itself, or the host does that for it.
class ReservedLimit final : public LayerAllocator {
 public:
  ReservedLimit(std::unique_ptr<Allocator> inner, ObservedSource& observed, std::size_t limit_bytes)
      : LayerAllocator(std::move(inner)), limit_bytes_(limit_bytes) {
    observed.add_layer_limit(limit_bytes);
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    return {{"limit", format_size_exact(limit_bytes_)}};
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  const std::size_t limit_bytes_;
};

/// Counts the blocks that pass: what is cached is free.
class AllocatedLimit final : public LayerAllocator {
 public:
  AllocatedLimit(std::unique_ptr<Allocator> inner, std::size_t limit_bytes)
      : LayerAllocator(std::move(inner)), limit_bytes_(limit_bytes) {}

  Block allocate(const Request& request) override {
    if (!fits(live_.load(std::memory_order_relaxed), request.bytes)) refuse(request);
    Block block = inner_->allocate(request);
    std::size_t live = live_.load(std::memory_order_relaxed);
    while (fits(live, block.bytes)) {
      if (live_.compare_exchange_weak(live, live + block.bytes, std::memory_order_relaxed)) return block;
    }
    inner_->deallocate(block, request.stream);  // rounding, or another thread, took what was left
    refuse(request);
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    inner_->deallocate(block, last_use);
    live_.fetch_sub(block.bytes, std::memory_order_relaxed);
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    return {{"limit", format_size_exact(limit_bytes_)}};
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  bool fits(std::size_t live, std::size_t bytes) const { return bytes <= limit_bytes_ && live <= limit_bytes_ - bytes; }
  [[noreturn]] void refuse(const Request& request) const {
    throw OutOfMemory({.requested_bytes = request.bytes, .limit_bytes = limit_bytes_});
  }

  const std::size_t limit_bytes_;
  std::atomic<std::size_t> live_{0};
};

}  // namespace

LayerInfo limit_layer() {
  return {
      .name = "limit",
      .summary = "refuses what would pass a ceiling on reserved or allocated bytes",
      .options = {OptionSpec::size("bytes", 0, "the ceiling; has to be set"),
                  OptionSpec::text("of", "reserved",
                                   "reserved: memory taken from the device, cached memory is given back before giving "
                                   "up; allocated: blocks handed out")
                      .one_of({"reserved", "allocated"})},
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        const std::size_t bytes = context.options.size("bytes");
        if (bytes == 0)
          throw ConfigError("layer 'limit' needs its ceiling: set option 'bytes', as in bytes = \"8GiB\"");
        if (context.options.text("of") == "allocated") return std::make_unique<AllocatedLimit>(std::move(inner), bytes);
        return std::make_unique<ReservedLimit>(std::move(inner), context.observed, bytes);
      }};
}

}  // namespace tenon
