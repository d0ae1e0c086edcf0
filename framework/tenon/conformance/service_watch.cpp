// The checks of each call, and of each stretch of calls.
#include <tenon/conformance/service_watch.h>

#include <tenon/conformance/checked_source.h>
#include <tenon/core/error.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_ranges.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace tenon::conformance {

namespace {
constexpr std::string_view kTheFirstOf = "; the first of ", kSoDid = "; so did ";
}  // namespace

void ServiceFaults::add(Kind kind, const std::string& what) {
  const std::string moment = moment_ ? moment_() : "";
  {
    const std::lock_guard lock(mutex_);
    Fault& fault = faults_[static_cast<std::size_t>(kind)];
    if (fault.times++ != 0) return;
    fault.text = what + moment;
    fault.order = kinds_++;
  }
  if (on_new_) on_new_();
}

bool ServiceFaults::empty() const {
  const std::lock_guard lock(mutex_);
  return kinds_ == 0;
}

std::vector<std::string> ServiceFaults::sentences() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> sentences(kinds_);
  for (const Fault& fault : faults_) {
    if (fault.times == 0) continue;
    std::string& sentence = sentences[fault.order];
    sentence = fault.text;
    if (fault.times == 1) continue;
    const bool is_of_end = &fault == &faults_[static_cast<std::size_t>(Kind::kLeak)];  // each instance has one
    sentence += is_of_end
                    ? fmt::format("{}{} other instance{} of it", kSoDid, fault.times - 1, fault.times == 2 ? "" : "s")
                    : fmt::format("{}{} times", kTheFirstOf, fault.times);
  }
  return sentences;
}

std::string_view without_times(std::string_view sentence) {
  return sentence.substr(0, std::min(sentence.find(kSoDid), sentence.find(kTheFirstOf)));
}

namespace {

using Kind = ServiceFaults::Kind;

// The stretches: the first one covers several steps of most runs, which are all alike.
constexpr std::uint64_t kFirstStretch = 65536, kPeriod = 65536, kStretch = 4096;

std::string range_text(const Block& block) {
  const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
  return fmt::format("[{:#x}, {:#x})", begin, begin + block.bytes);
}

/// The blocks handed out in the stretch that is under way. One that is older is not known, nor is its end.
class LiveBlocks {
 public:
  explicit LiveBlocks(const CheckedSource& source) : source_(source) {}

  /// What is wrong with its place; empty: nothing, or nobody looks.
  std::string add(const Block& block) {
    const std::uint64_t turn = turns_.fetch_add(1, std::memory_order_relaxed);
    const bool is_stretch = turn < kFirstStretch || turn % kPeriod < kStretch;
    if (!is_stretch && !is_on_.load(std::memory_order_relaxed)) return {};
    const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
    const std::lock_guard lock(mutex_);
    is_on_.store(is_stretch, std::memory_order_relaxed);
    if (!is_stretch) {
      live_.clear();
      return {};
    }
    if (const auto [range, is_free] = live_.add(begin, begin + block.bytes); !is_free)
      return fmt::format("handed out {}, which overlaps the live block [{:#x}, {:#x})", range_text(block), range->first,
                         range->second.end);
    if (source_.covers(begin, block.bytes)) return {};
    return fmt::format("handed out {}, which is not inside memory that it has from the device", range_text(block));
  }

  void remove(const Block& block) {
    if (!is_on_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    live_.remove(reinterpret_cast<std::uintptr_t>(block.data));
  }

 private:
  const CheckedSource& source_;
  std::atomic<std::uint64_t> turns_{0};
  std::atomic<bool> is_on_{true};
  std::mutex mutex_;
  AddressRanges<> live_;
};

class ServiceWatcher final : public CallWatcher {
 public:
  ServiceWatcher(std::string name, std::uint8_t number, CallBoard& board, ServiceFaults& faults, MemorySource& source)
      : name_(std::move(name)), number_(number), board_(board), faults_(faults), source_(source), live_(source_) {
    source_.when_misused(
        [this](const std::string& what) { faults_.add(Kind::kMisuse, "misused its device: " + what); });
  }

  CheckedSource& source() { return source_; }

  void* begins(const CallFacts& facts) override {
    CallFacts numbered = facts;
    numbered.allocator = number_;
    return board_.begins(numbered);
  }
  void ended(void* call, std::uintptr_t) noexcept override { CallBoard::ended(static_cast<CallSlot*>(call)); }

  void handed_out(const Block& block, const Request& request) override {
    if (block.data == nullptr) [[unlikely]]
      return null_address(request);
    if (block.bytes < request.bytes) [[unlikely]]
      faults_.add(Kind::kBytes, fmt::format("handed out {} bytes for a request of {}", block.bytes, request.bytes));
    if (block.request.bytes != request.bytes || block.request.stream != request.stream ||
        block.request.purpose != request.purpose) [[unlikely]]
      faults_.add(Kind::kRequest, "lost a request: " + request_differs(block.request, request));
    if (reinterpret_cast<std::uintptr_t>(block.data) % std::max(request.alignment, kDefaultAlignment) != 0) [[unlikely]]
      faults_.add(Kind::kAlignment, fmt::format("handed out {}, which is not aligned to {}", range_text(block),
                                                std::max(request.alignment, kDefaultAlignment)));
    if (const std::string wrong = live_.add(block); !wrong.empty()) faults_.add(Kind::kPlace, wrong);
  }
  void taken_back(const Block& block) noexcept override { live_.remove(block); }

  void foreign_exception(const CallFacts& facts, const std::string& what) override {
    faults_.add(Kind::kException,
                fmt::format("ended {} with an exception that is neither tenon::OutOfMemory nor tenon::Error: {}",
                            text_of(facts), what));
    throw EndOfService(fmt::format("allocator '{}': {} threw {}; it may throw only tenon::OutOfMemory and tenon::Error",
                                   name_, text_of(facts), what));
  }

  /// The allocator is gone.
  void judge_the_end() noexcept {
    if (const std::string left = source_.leftovers(); !left.empty())
      faults_.add(Kind::kLeak, "kept memory when it was destroyed: " + left);
  }

 private:
  void null_address(const Request& request) {
    const std::string what = fmt::format(
        "answered a request of {} bytes with a null address, where it had to throw OutOfMemory", request.bytes);
    faults_.add(Kind::kNull, what);
    throw EndOfService(fmt::format("allocator '{}' {}", name_, what));
  }

  const std::string name_;
  const std::uint8_t number_;
  CallBoard& board_;
  ServiceFaults& faults_;
  CheckedSource source_;
  LiveBlocks live_;
};

/// Owns what watches the allocator, and has the last look when that is gone.
class InService final : public ForwardingAllocator {
 public:
  InService(std::unique_ptr<Allocator> inner, std::unique_ptr<ServiceWatcher> watcher)
      : ForwardingAllocator(std::move(inner)), watcher_(std::move(watcher)) {}
  ~InService() override {
    inner_.reset();
    watcher_->judge_the_end();
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  const std::unique_ptr<ServiceWatcher> watcher_;
};

}  // namespace

AllocatorInfo watched_in_service(const AllocatorInfo& info, CallBoard& board, ServiceFaults& faults,
                                 std::uint8_t number) {
  AllocatorInfo result = info;
  result.create = [info, &board, &faults, number](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    auto watcher = std::make_unique<ServiceWatcher>(info.name, number, board, faults, context.source);
    std::unique_ptr<Allocator> inner =
        watched(info, *watcher)
            .create({.source = watcher->source(), .options = context.options, .observer = context.observer});
    if (inner == nullptr) return nullptr;
    return std::make_unique<InService>(std::move(inner), std::move(watcher));
  };
  return result;
}

}  // namespace tenon::conformance
