// Layer `inject`: makes chosen calls fail, to see that everything above survives it. Requests fail at the door, calls
// to the device fail at the source, where the policy has to cope.
#include <tenon/core/error.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/layers/request_filter.h>

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>

namespace tenon {

namespace {

/// The request that this thread is serving: calls to the source are about it.
constinit thread_local const Request* serving = nullptr;

/// Which calls fail.
class Trigger {
 public:
  explicit Trigger(const Options& options)
      : filter_(options),
        nth_(options.integer("nth")),
        every_(options.integer("every")),
        persists_(options.boolean("persist")),
        probability_(options.real("probability")),
        most_(options.integer("failures")),
        random_(static_cast<std::uint64_t>(options.integer("seed"))) {}

  /// Counts a call of the kind that may fail, and says whether it does.
  bool fails(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    const Purpose purpose = serving != nullptr ? serving->purpose : Purpose::kOther;
    const StreamRef stream = serving != nullptr ? serving->stream : StreamRef{};
    if (!filter_.accepts(bytes, purpose, stream)) return false;
    ++calls_;
    bool fail = false;
    if (nth_ > 0) fail |= persists_ ? calls_ >= nth_ : calls_ == nth_;
    if (every_ > 0) fail |= calls_ % every_ == 0;
    if (probability_ > 0) fail |= std::uniform_real_distribution<double>()(random_) < probability_;
    if (!fail || (most_ > 0 && failures_ >= most_)) return false;
    ++failures_;
    return true;
  }

  std::int64_t calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  std::int64_t failures() const {
    std::lock_guard lock(mutex_);
    return failures_;
  }

 private:
  const RequestFilter filter_;
  const std::int64_t nth_, every_;
  const bool persists_;
  const double probability_;
  const std::int64_t most_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  std::int64_t calls_ = 0;
  std::int64_t failures_ = 0;
};

class FailingSource final : public ForwardingSource {
 public:
  FailingSource(MemorySource& upstream, const Options& options)
      : ForwardingSource(upstream), trigger_(options), call_(options.text("call")) {}

  void* acquire(std::size_t bytes) override { return hit("acquire", bytes) ? nullptr : upstream_.acquire(bytes); }
  void* reserve(std::size_t bytes) override { return hit("reserve", bytes) ? nullptr : upstream_.reserve(bytes); }
  Physical create(std::size_t bytes) override { return hit("create", bytes) ? Physical{} : upstream_.create(bytes); }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    if (hit("map", bytes)) throw Error(fmt::format("injected failure: map of {} bytes on {}", bytes, traits().device));
    upstream_.map(address, bytes, physical, offset);
  }
  Ticket mark(StreamRef stream) override {
    if (hit("mark", 0)) throw Error(fmt::format("injected failure: mark on {}", traits().device));
    return upstream_.mark(stream);
  }
  bool reached(Ticket ticket) override {
    if (hit("reached", 0)) throw Error(fmt::format("injected failure: query on {}", traits().device));
    return upstream_.reached(ticket);
  }
  void wait(Ticket ticket) override {
    if (hit("wait", 0)) throw Error(fmt::format("injected failure: wait on {}", traits().device));
    upstream_.wait(ticket);
  }
  void synchronize() override {
    if (hit("synchronize", 0)) throw Error(fmt::format("injected failure: synchronize on {}", traits().device));
    upstream_.synchronize();
  }

  std::unique_ptr<DriverPool> make_driver_pool(const DriverPoolOptions& options) override {
    auto pool = upstream_.make_driver_pool(options);
    if (pool == nullptr) return nullptr;
    return std::make_unique<FailingPool>(std::move(pool), *this);
  }

  const Trigger& trigger() const { return trigger_; }

 private:
  /// Takes memory of the driver's pool as the source gives segments.
  class FailingPool final : public DriverPool {
   public:
    FailingPool(std::unique_ptr<DriverPool> pool, FailingSource& source) : pool_(std::move(pool)), source_(source) {}
    void* acquire(std::size_t bytes, StreamRef stream) override {
      return source_.hit("acquire", bytes) ? nullptr : pool_->acquire(bytes, stream);
    }
    void release(void* address, std::size_t bytes, std::span<const StreamRef> streams) noexcept override {
      pool_->release(address, bytes, streams);
    }
    std::size_t reserved_bytes() const noexcept override { return pool_->reserved_bytes(); }
    void trim(std::size_t keep_bytes) noexcept override { pool_->trim(keep_bytes); }

   private:
    const std::unique_ptr<DriverPool> pool_;
    FailingSource& source_;
  };

  /// "source" counts every call that can fail, in the order in which the policy makes them.
  bool hit(std::string_view call, std::size_t bytes) {
    return (call_ == "source" || call_ == call) && trigger_.fails(bytes);
  }

  Trigger trigger_;
  const std::string call_;
};

class Inject final : public LayerAllocator {
 public:
  Inject(std::unique_ptr<Allocator> inner, const LayerContext& context) : LayerAllocator(std::move(inner)) {
    if (context.hook != nullptr) {
      source_ = static_cast<FailingSource*>(context.hook);
    } else {
      requests_ = std::make_unique<Trigger>(context.options);
    }
  }

  Block allocate(const Request& request) override {
    const Request* outer = std::exchange(serving, &request);
    struct Restore {
      const Request* outer;
      ~Restore() { serving = outer; }
    } restore{outer};
    if (requests_ != nullptr && requests_->fails(request.bytes)) {
      throw OutOfMemory(
          {.requested_bytes = request.bytes,
           .hint = fmt::format("layer 'inject' made this request fail, its call number {}", requests_->calls())});
    }
    return inner_->allocate(request);
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    const Trigger& trigger = requests_ != nullptr ? *requests_ : source_->trigger();
    return {{"calls", fmt::format("{}", trigger.calls())},
            {"injected_failures", fmt::format("{}", trigger.failures())}};
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  FailingSource* source_ = nullptr;
  std::unique_ptr<Trigger> requests_;
};

}  // namespace

LayerInfo inject_layer() {
  constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();
  OptionSchema options{
      OptionSpec::text("call", "allocate",
                       "what fails: allocate (the request itself), one call to the device, or source (any of those)")
          .one_of(
              {"allocate", "source", "acquire", "reserve", "create", "map", "mark", "reached", "wait", "synchronize"}),
      OptionSpec::integer("nth", 0, "the n-th matching call fails; 0 = off").range(std::int64_t{0}, kMany),
      OptionSpec::boolean("persist", false, "with nth: every call from then on fails too"),
      OptionSpec::integer("every", 0, "every k-th matching call fails; 0 = off").range(std::int64_t{0}, kMany),
      OptionSpec::real("probability", 0.0, "each matching call fails with this probability").range(0.0, 1.0),
      OptionSpec::integer("seed", 47, "of the probability").range(std::int64_t{0}, kMany),
      OptionSpec::integer("failures", 0, "at most so many failures; 0 = any number").range(std::int64_t{0}, kMany),
  };
  for (OptionSpec& option : RequestFilter::options()) options.push_back(std::move(option));
  return {
      .name = "inject",
      .summary = "makes chosen requests or calls to the device fail",
      .options = std::move(options),
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        return std::make_unique<Inject>(std::move(inner), context);
      },
      .wrap_source = [](MemorySource& upstream, const LayerContext& context) -> std::unique_ptr<MemorySource> {
        if (context.options.text("call") == "allocate") return nullptr;
        return std::make_unique<FailingSource>(upstream, context.options);
      }};
}

}  // namespace tenon
