// Keeper: a sound allocator in which a test plants one flaw.
#pragma once

#include <tenon/conformance/conformance.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/snapshot.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

/// What one allocator of a test does otherwise than Keeper does, or what a test sees of its calls.
struct Habits {
  std::function<void()> made;
  std::function<void(Block&)> handed_out;
  std::function<void(const Request&)> asked;
  std::function<std::optional<Block>(MemorySource&, const Request&)> answers;  ///< instead of it, where it does
  std::function<void()> acquires;                                              ///< before it asks the device
  std::function<void(const Request&)> refused;                                 ///< before it gives back what it keeps
  std::function<void(const Block&)> freed;
  std::function<std::size_t(std::size_t kept, std::size_t keep)> to_give;
  std::function<std::size_t(std::size_t given)> says_given;
  std::function<std::size_t(std::size_t bytes)> gives_back;  ///< with which size
  std::function<void(PolicyStats&, std::size_t kept)> report;
  std::function<void()> invariants;
  bool forgets_freed = false, leaks = false, leaks_live = false, leaks_kept = false, hoards_records = false;
  bool drops_records_on_trim = false, keeps_nothing = false, counts = false, shows_layout = false;
};

/// Keeps what is freed, by size and stream, and gives it back when it is asked to or when the device has no more.
class Keeper final : public Allocator {
 public:
  Keeper(MemorySource& source, const Habits& habits) : source_(source), habits_(habits) {
    if (habits_.made) habits_.made();
  }
  ~Keeper() override {
    if (habits_.leaks) return;
    source_.synchronize();
    for (const auto& [address, segment] : all_) {
      if (segment.is_live ? habits_.leaks_live : habits_.leaks_kept) continue;
      source_.release(address, segment.bytes);
    }
  }
  Block allocate(const Request& request) override {
    if (habits_.asked) habits_.asked(request);
    if (habits_.answers)
      if (const std::optional<Block> answer = habits_.answers(source_, request)) return *answer;
    if (request.bytes > std::size_t{1} << 50) throw OutOfMemory({.requested_bytes = request.bytes});
    const std::size_t bytes = align_up(request.bytes, 512);
    std::vector<void*>& kept = kept_[{bytes, request.stream.id}];
    void* address = nullptr;
    if (!kept.empty()) {
      address = kept.back();
      kept.pop_back();
    } else {
      address = acquire(request, bytes);
    }
    all_[address] = {bytes, request.bytes, true};
    Block block{.data = address, .bytes = bytes, .cookie = address, .request = request};
    own_.allocation[0].increase(1);
    own_.allocated_bytes[0].increase(static_cast<std::int64_t>(bytes));
    own_.requested_bytes[0].increase(static_cast<std::int64_t>(request.bytes));
    if (habits_.handed_out) habits_.handed_out(block);
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    if (habits_.freed) habits_.freed(block);
    if (habits_.forgets_freed) return;
    if (habits_.hoards_records) records_.emplace_back(40, 'x');
    if (used_elsewhere_.erase(block.cookie) != 0 || last_use != block.request.stream) source_.synchronize();
    Segment& segment = all_.at(block.cookie);
    segment.is_live = false;
    own_.allocation[0].decrease(1);
    own_.allocated_bytes[0].decrease(static_cast<std::int64_t>(segment.bytes));
    own_.requested_bytes[0].decrease(static_cast<std::int64_t>(block.request.bytes));
    if (habits_.keeps_nothing) {
      source_.wait(source_.mark(block.request.stream));
      return release(block.cookie, segment.bytes);
    }
    kept_[{segment.bytes, block.request.stream.id}].push_back(block.cookie);
  }
  void record_use(const Block& block, StreamRef stream) override {
    if (stream != block.request.stream) used_elsewhere_.insert(block.cookie);
  }
  std::size_t trim(std::size_t keep_bytes) override {
    source_.synchronize();
    if (habits_.drops_records_on_trim) records_ = {};
    const std::size_t kept = kept_bytes();
    std::size_t target = kept > keep_bytes ? kept - keep_bytes : 0, given = 0;
    if (habits_.to_give) target = habits_.to_give(kept, keep_bytes);
    for (auto& [key, blocks] : kept_) {
      for (; !blocks.empty() && given < target; blocks.pop_back()) {
        release(blocks.back(), key.first);
        given += key.first;
      }
    }
    return habits_.says_given ? habits_.says_given(given) : given;
  }
  void walk(SegmentVisitor& visitor) const override {
    if (!habits_.shows_layout) return;
    for (const auto& [address, segment] : all_) {
      SegmentInfo info{};
      info.address = Address(address);
      info.bytes = segment.bytes;
      visitor.segment(info);
      BlockInfo block{};
      block.address = Address(address);
      block.bytes = segment.bytes;
      block.requested_bytes = segment.requested;
      block.state = segment.is_live ? BlockState::kActive : BlockState::kFree;
      visitor.block(block);
    }
  }
  void report(PolicyStats& stats) const override {
    if (habits_.counts) {
      stats = own_;
      stats.has_pools = true;
    }
    if (habits_.report) habits_.report(stats, kept_bytes());
  }
  void check_invariants() const override {
    if (habits_.invariants) habits_.invariants();
  }

 private:
  struct Segment {
    std::size_t bytes = 0, requested = 0;
    bool is_live = false;
  };
  void* acquire(const Request& request, std::size_t bytes) {
    const auto take = [&] {
      if (habits_.acquires) habits_.acquires();
      return source_.acquire(bytes);
    };
    void* address = take();
    if (address == nullptr) {
      if (habits_.refused) habits_.refused(request);
      if (trim(0) != 0) ++own_.retries;
      address = take();
    }
    if (address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    own_.reserved_bytes[0].increase(static_cast<std::int64_t>(bytes));
    return address;
  }
  void release(void* address, std::size_t bytes) {
    source_.release(address, habits_.gives_back ? habits_.gives_back(bytes) : bytes);
    all_.erase(address);
    own_.reserved_bytes[0].decrease(static_cast<std::int64_t>(bytes));
  }
  std::size_t kept_bytes() const {
    std::size_t sum = 0;
    for (const auto& [key, blocks] : kept_) sum += key.first * blocks.size();
    return sum;
  }

  MemorySource& source_;
  const Habits habits_;
  std::map<void*, Segment> all_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<void*>> kept_;
  std::set<void*> used_elsewhere_;
  std::vector<std::string> records_;
  PolicyStats own_;
};

/// The habits outlive what is made of it.
inline AllocatorInfo keeper(const Habits& habits) {
  return {.name = "keeper", .create = [&habits](const AllocatorContext& context) {
            return std::make_unique<Keeper>(context.source, habits);
          }};
}

/// What the kit says of it in this process. Few and short histories.
inline conformance::CheckResult checked(const std::string& check, const Habits& habits,
                                        conformance::KitOptions run = {.histories = 2, .history_length = 60}) {
  run.only = check;
  run.is_isolated = false;
  const conformance::Report report = conformance::run(keeper(habits), nullptr, run);
  return report.checks.empty() ? conformance::CheckResult{} : report.checks.front();
}
inline std::string failed(const std::string& check, const Habits& habits,
                          const conformance::KitOptions& run = {.histories = 2, .history_length = 60}) {
  return checked(check, habits, run).failure;
}

}  // namespace tenon::test
