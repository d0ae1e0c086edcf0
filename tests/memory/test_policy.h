// A small caching policy for the tests of what stands around policies: whole segments, exact-size reuse on one stream.
#pragma once

#include <tenon/core/error.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

/// What a SimplePolicy is like.
struct SimpleTraits {
  bool safe = false;   ///< has a mutex of its own
  bool pools = false;  ///< says that it has pools of PyTorch's kind, hence has done what it could before it gives up
};

/// Rounds to 512 bytes and caches freed segments by size and stream.
class SimplePolicy final : public Allocator {
 public:
  SimplePolicy(MemorySource& source, SimpleTraits traits) : source_(source), safe_(traits.safe), pools_(traits.pools) {}
  ~SimplePolicy() override {
    for (Segment* segment : all_) {
      source_.release(segment->data, segment->bytes);
      delete segment;
    }
  }

  Block allocate(const Request& request) override {
    const Lock lock(*this);
    const std::size_t bytes = align_up_512(request.bytes);
    if (bytes < request.bytes) throw OutOfMemory({.requested_bytes = request.bytes});  // it has wrapped around
    for (Segment* segment : all_) {
      if (segment->live || segment->bytes != bytes || segment->stream != request.stream) continue;
      segment->live = true;
      segment->requested = request.bytes;
      return {.data = segment->data, .bytes = bytes, .cookie = segment, .request = request};
    }
    void* data = source_.acquire(bytes);
    if (data == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    auto* segment = new Segment{data, bytes, request.stream, true, request.bytes};
    all_.insert(segment);
    return {.data = data, .bytes = bytes, .cookie = segment, .request = request};
  }

  void deallocate(const Block& block, StreamRef) noexcept override {
    const Lock lock(*this);
    static_cast<Segment*>(block.cookie)->live = false;
  }

  std::size_t trim(std::size_t keep_bytes) override {
    const Lock lock(*this);
    std::size_t cached = 0, given = 0;
    for (const Segment* segment : all_) cached += segment->live ? 0 : segment->bytes;
    for (auto it = all_.begin(); it != all_.end();) {
      Segment* segment = *it;
      if (segment->live || cached - given <= keep_bytes) {
        ++it;
        continue;
      }
      given += segment->bytes;
      source_.release(segment->data, segment->bytes);
      delete segment;
      it = all_.erase(it);
    }
    return given;
  }

  void walk(SegmentVisitor& visitor) const override {
    const Lock lock(*this);
    for (const Segment* segment : all_) {
      visitor.segment({.address = segment->data, .bytes = segment->bytes, .stream = segment->stream});
      visitor.block({.address = segment->data,
                     .bytes = segment->bytes,
                     .requested_bytes = segment->live ? segment->requested : 0,
                     .state = segment->live ? BlockState::kActive : BlockState::kFree});
    }
  }

  void report(PolicyStats& stats) const override {
    const Lock lock(*this);
    stats.has_pools = pools_;
    for (const Segment* segment : all_) {
      if (segment->live) continue;
      stats.cached_bytes += segment->bytes;
      stats.largest_free_bytes = std::max(stats.largest_free_bytes, segment->bytes);
    }
  }

  bool is_thread_safe() const override { return safe_; }

 private:
  struct Segment {
    void* data;
    std::size_t bytes;
    StreamRef stream;
    bool live;
    std::size_t requested;
  };
  class Lock {
   public:
    explicit Lock(const SimplePolicy& policy) : mutex_(policy.safe_ ? &policy.mutex_ : nullptr) {
      if (mutex_ != nullptr) mutex_->lock();
    }
    ~Lock() {
      if (mutex_ != nullptr) mutex_->unlock();
    }

   private:
    std::mutex* mutex_;
  };
  static std::size_t align_up_512(std::size_t bytes) { return (bytes + 511) / 512 * 512; }

  MemorySource& source_;
  const bool safe_;
  const bool pools_;
  mutable std::mutex mutex_;
  std::set<Segment*> all_;
};

inline AllocatorInfo simple_policy(SimpleTraits traits = {}) {
  return {.name = "simple",
          .summary = "for tests",
          .create = [traits](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
            return std::make_unique<SimplePolicy>(context.source, traits);
          }};
}

/// A layer with options as text: {"limit", {{"bytes", "1MiB"}}}.
struct LayerText {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
};

inline LayerConfig layer(const LayerText& text) {
  LayerConfig config{text.name, Options(find_layer(text.name).options)};
  for (const auto& [name, value] : text.options) config.options.set_text(name, value);
  return config;
}

/// The simple policy under these layers, outermost first.
inline std::shared_ptr<AllocatorStack> make_stack(MemorySource& source, const std::vector<LayerText>& layers = {},
                                                  SimpleTraits traits = {}) {
  StackConfig config{.policy = simple_policy(traits)};
  for (const LayerText& text : layers) config.layers.push_back(layer(text));
  return AllocatorStack::make(source, config);
}

/// The value that a layer reports under a key; empty when it has none.
inline std::string reported(const AllocatorStack& stack, const std::string& layer_name, const std::string& key) {
  for (const LayerReport& report : stack.layer_reports()) {
    if (report.layer != layer_name) continue;
    for (const auto& [name, value] : report.entries) {
      if (name == key) return value;
    }
  }
  return {};
}

}  // namespace tenon::test
