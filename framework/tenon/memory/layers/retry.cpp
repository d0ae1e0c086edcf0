// Layer `retry`: when memory runs out, waits for the device, gives back what is cached, and tries again.
#include <tenon/core/error.h>
#include <tenon/memory/layers/layer.h>

#include <atomic>

namespace tenon {

namespace {

class Retry final : public LayerAllocator {
 public:
  Retry(std::unique_ptr<Allocator> inner, const LayerContext& context)
      : LayerAllocator(std::move(inner)),
        source_(context.source),
        attempts_(context.options.integer("attempts")),
        waits_(context.options.boolean("synchronize")) {}

  Block allocate(const Request& request) override {
    for (std::int64_t attempt = 0;; ++attempt) {
      try {
        Block block = inner_->allocate(request);
        if (attempt != 0) ++recovered_;
        return block;
      } catch (const OutOfMemory&) {
        if (attempt >= attempts_) {
          ++given_up_;
          throw;
        }
      }
      ++retries_;
      // Work that has completed by then frees blocks that wait for a stream.
      if (waits_) source_.synchronize();
      inner_->trim(0);
    }
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    return {{"retries", std::to_string(retries_.load())},
            {"recovered", std::to_string(recovered_.load())},
            {"given_up", std::to_string(given_up_.load())}};
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  MemorySource& source_;
  const std::int64_t attempts_;
  const bool waits_;
  std::atomic<std::int64_t> retries_{0};
  std::atomic<std::int64_t> recovered_{0};
  std::atomic<std::int64_t> given_up_{0};
};

}  // namespace

LayerInfo retry_layer() {
  return {
      .name = "retry",
      .summary = "on out of memory waits, gives back the cache and tries again",
      .options =
          {OptionSpec::integer("attempts", 1, "how often to try again").range(std::int64_t{1}, std::int64_t{1000}),
           OptionSpec::boolean("synchronize", true, "wait for all streams before trying again")},
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        return std::make_unique<Retry>(std::move(inner), context);
      }};
}

}  // namespace tenon
