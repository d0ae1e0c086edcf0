// Forwarding with a word to the watcher before and after.
#include <tenon/memory/watch/watched_allocator.h>

#include <tenon/core/demangled.h>
#include <tenon/core/error.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/snapshot.h>

#include <cxxabi.h>

#include <fmt/format.h>

#include <typeinfo>
#include <utility>

namespace tenon {

CallWatcher::~CallWatcher() = default;

namespace {

/// A call that ends however it is left.
class Watched {
 public:
  Watched(CallWatcher& watcher, const CallFacts& facts)
      : watcher_(watcher), facts_(facts), call_(watcher.begins(facts)) {}
  ~Watched() { watcher_.ended(call_, address_); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void gave(const void* address) { address_ = Address(address); }

  /// Only the project's errors may leave: nobody above expects anything else.
  template <class Do>
  auto run(Do&& todo) {
    try {
      return todo();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      watcher_.foreign_exception(facts_, fmt::format("{} (\"{}\")", demangled(typeid(error).name()), error.what()));
      throw;
    } catch (...) {
      const std::type_info* type = abi::__cxa_current_exception_type();
      watcher_.foreign_exception(facts_, fmt::format("{}, which does not derive from std::exception",
                                                     type == nullptr ? "something" : demangled(type->name())));
      throw;
    }
  }

 private:
  CallWatcher& watcher_;
  const CallFacts facts_;
  void* const call_;
  std::uintptr_t address_ = 0;
};

class WatchedAllocator final : public ForwardingAllocator {
 public:
  WatchedAllocator(std::unique_ptr<Allocator> inner, CallWatcher& watcher)
      : ForwardingAllocator(std::move(inner)), watcher_(watcher) {}
  ~WatchedAllocator() override {
    const Watched call(watcher_, {.call = Call::kDestroy});
    inner_.reset();
  }

  Block allocate(const Request& request) override {
    Watched call(watcher_, {.call = Call::kAllocate,
                            .alignment = static_cast<std::uint32_t>(request.alignment),
                            .bytes = request.bytes,
                            .stream = request.stream.id});
    const Block block = call.run([&] { return inner_->allocate(request); });
    call.gave(block.data);
    watcher_.handed_out(block, request);
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    watcher_.taken_back(block);
    const Watched call(watcher_, {.call = Call::kDeallocate, .stream = last_use.id, .address = Address(block.data)});
    inner_->deallocate(block, last_use);
  }
  void record_use(const Block& block, StreamRef stream) override {
    Watched call(watcher_, {.call = Call::kRecordUse, .stream = stream.id, .address = Address(block.data)});
    call.run([&] { inner_->record_use(block, stream); });
  }
  std::size_t trim(std::size_t keep_bytes) override {
    Watched call(watcher_, {.call = Call::kTrim, .bytes = keep_bytes});
    return call.run([&] { return inner_->trim(keep_bytes); });
  }
  void walk(SegmentVisitor& visitor) const override {
    Watched call(watcher_, {.call = Call::kWalk});
    call.run([&] { inner_->walk(visitor); });
  }
  void report(PolicyStats& stats) const override {
    Watched call(watcher_, {.call = Call::kReport});
    call.run([&] { inner_->report(stats); });
  }
  void reset_stats(bool peaks, bool accumulated) override {
    Watched call(watcher_, {.call = Call::kResetStats});
    call.run([&] { inner_->reset_stats(peaks, accumulated); });
  }
  void check_invariants() const override {
    Watched call(watcher_, {.call = Call::kCheckInvariants});
    call.run([&] { inner_->check_invariants(); });
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  CallWatcher& watcher_;
};

}  // namespace

std::string request_differs(const Request& is, const Request& asked) {
  const auto differs = [](const char* what, std::uint64_t has, std::uint64_t was) {
    return fmt::format("the block says request.{} = {}, the request had {}: allocate() fills in Block::request", what,
                       has, was);
  };
  if (is.bytes != asked.bytes) return differs("bytes", is.bytes, asked.bytes);
  if (is.stream != asked.stream) return differs("stream", is.stream.id, asked.stream.id);
  if (is.alignment != asked.alignment) return differs("alignment", is.alignment, asked.alignment);
  if (is.purpose != asked.purpose)
    return differs("purpose", static_cast<std::uint64_t>(is.purpose), static_cast<std::uint64_t>(asked.purpose));
  if (is.label != asked.label) return differs("label", is.label, asked.label);
  if (is.pool != asked.pool) return differs("pool", is.pool, asked.pool);
  return {};
}

AllocatorInfo watched(const AllocatorInfo& info, CallWatcher& watcher) {
  AllocatorInfo result = info;
  result.create = [create = info.create, &watcher](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    std::unique_ptr<Allocator> inner;
    {
      Watched call(watcher, {.call = Call::kCreate});
      inner = call.run([&] { return create(context); });
    }
    return inner == nullptr ? nullptr : std::make_unique<WatchedAllocator>(std::move(inner), watcher);
  };
  return result;
}

AllocatorInfo watched(const AllocatorInfo& info, std::shared_ptr<CallWatcher> watcher) {
  AllocatorInfo result = watched(info, *watcher);
  result.create = [create = std::move(result.create), watcher = std::move(watcher)](const AllocatorContext& context) {
    return create(context);
  };
  return result;
}

}  // namespace tenon
