// Layer `route`: sends the requests that match to another allocator over the same device.
#include <tenon/core/error.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/layers/request_filter.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

namespace {

class Route final : public LayerAllocator {
 public:
  Route(std::unique_ptr<Allocator> inner, std::unique_ptr<Allocator> other, const Options& options)
      : LayerAllocator(std::move(inner)), other_(std::move(other)), filter_(options) {}

  Block allocate(const Request& request) override {
    auto record = std::make_unique<Record>();
    // Private pools are the inner one's: the other one knows none, and would hand out again what a graph replays on.
    record->owner = request.pool == 0 && filter_.accepts(request) ? other_.get() : inner_.get();
    record->inner = record->owner->allocate(request);
    record->inner.request = request;
    ++(record->owner == other_.get() ? routed_ : kept_);
    return {.data = record->inner.data, .bytes = record->inner.bytes, .cookie = record.release(), .request = request};
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    const std::unique_ptr<Record> record(static_cast<Record*>(block.cookie));
    record->owner->deallocate(record->inner, last_use);
  }

  void record_use(const Block& block, StreamRef stream) override {
    auto* record = static_cast<Record*>(block.cookie);
    record->owner->record_use(record->inner, stream);
  }

  std::size_t trim(std::size_t keep_bytes) override {
    const std::size_t given = inner_->trim(keep_bytes);
    PolicyStats kept;
    inner_->report(kept);
    return given + other_->trim(keep_bytes - std::min(keep_bytes, kept.cached_bytes));
  }
  void walk(SegmentVisitor& visitor) const override {
    inner_->walk(visitor);
    other_->walk(visitor);
  }
  void report(PolicyStats& stats) const override {
    // Pools of both kinds do not add up to one allocator's: only what is true of the two together is told.
    PolicyStats ours, theirs;
    inner_->report(ours);
    other_->report(theirs);
    stats.retries = ours.retries + theirs.retries;
    stats.synchronizations = ours.synchronizations + theirs.synchronizations;
    stats.cached_bytes = ours.cached_bytes + theirs.cached_bytes;
    stats.largest_free_bytes = std::max(ours.largest_free_bytes, theirs.largest_free_bytes);
  }
  void reset_stats(bool peaks, bool accumulated) override {
    inner_->reset_stats(peaks, accumulated);
    other_->reset_stats(peaks, accumulated);
  }
  void check_invariants() const override {
    inner_->check_invariants();
    other_->check_invariants();
  }
  void limit_changed(std::size_t limit_bytes) override {
    inner_->limit_changed(limit_bytes);
    other_->limit_changed(limit_bytes);
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    return {{"routed", fmt::format("{}", routed_)}, {"kept", fmt::format("{}", kept_)}};
  }

 private:
  struct Record {
    Allocator* owner = nullptr;
    Block inner;
  };

  std::unique_ptr<Allocator> other_;
  const RequestFilter filter_;
  std::int64_t routed_ = 0;
  std::int64_t kept_ = 0;
};

}  // namespace

LayerInfo route_layer() {
  OptionSchema options{OptionSpec::text("to", "", "the other allocator: NAME or NAME:OPTION=VALUE,…; has to be set")};
  for (OptionSpec& option : RequestFilter::options()) options.push_back(std::move(option));
  return {
      .name = "route",
      .summary = "sends matching requests to another allocator",
      .options = std::move(options),
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        const std::string& spec = context.options.text("to");
        if (spec.empty())
          throw ConfigError("layer 'route' needs the other allocator: set option 'to', as in to = \"direct\"");
        const ResolvedAllocator other = resolve_allocator(spec);
        auto made =
            other.info.create({.source = context.source, .options = other.options, .observer = context.observer});
        return std::make_unique<Route>(std::move(inner), std::move(made), context.options);
      }};
}

}  // namespace tenon
