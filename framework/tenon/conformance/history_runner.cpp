// Runs a history with everything watched: the intervals, the layout, the figures, the source, the end.
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/oracle.h>

#include <tenon/core/error.h>
#include <tenon/memory/sources/address_only_source.h>

#include <fmt/format.h>

#include <map>

namespace tenon::conformance {

namespace {

/// An allocator in service with a ledger of its own beside it.
class HistoryRunner {
 public:
  HistoryRunner(const Subject& subject, const RunSettings& settings)
      : settings_(settings),
        device_({.device = "conformance", .capacity_bytes = settings.capacity_bytes, .manual_completion = true}),
        source_(device_, settings.fault),
        oracle_(device_),
        stack_(AllocatorStack::make(source_, subject.config())) {
    source_.watch_releases(
        [this](std::uintptr_t address, std::size_t bytes) { return oracle_.still_used(address, bytes); });
  }

  std::string step(const Operation& op);
  std::string finish();
  std::int64_t fallible_calls() const { return source_.fallible_calls(); }

 private:
  struct Held {
    Block block;
    std::vector<StreamRef> users;
  };
  std::string allocate(const Operation& op);
  void free(std::uint32_t slot, StreamRef last_use);
  std::string check() const;
  std::string check_layout() const;
  bool faulty() const { return settings_.fault.index >= 0; }

  const RunSettings& settings_;
  AddressOnlySource device_;
  CheckedSource source_;
  Oracle oracle_;
  std::shared_ptr<AllocatorStack> stack_;
  std::map<std::uint32_t, Held> held_;
  std::size_t requested_ = 0, allocated_ = 0;
};

std::string HistoryRunner::allocate(const Operation& op) {
  const MemoryStats before = stack_->stats();
  Held held;
  try {
    held.block = stack_->allocate({.bytes = op.bytes, .alignment = op.alignment, .stream = {op.stream}});
  } catch (const OutOfMemory&) {
    const MemoryStats after = stack_->stats();
    if (after.allocated_bytes.current != before.allocated_bytes.current ||
        after.allocations.current != before.allocations.current)
      return "an allocation that ran out of memory changed what counts as handed out";
    return {};
  } catch (const Error& error) {
    return faulty() ? std::string() : fmt::format("allocate({}) threw: {}", op.bytes, error.what());
  }
  const auto address = reinterpret_cast<std::uintptr_t>(held.block.data);
  if (held.block.bytes < op.bytes)
    return fmt::format("allocate({}) gave a block of only {} bytes", op.bytes, held.block.bytes);
  if (address % std::max(op.alignment, std::size_t{1}) != 0)
    return fmt::format("allocate({}) gave {:#x}, which is not aligned to {}", op.bytes, address, op.alignment);
  if (!source_.covers(address, held.block.bytes))
    return fmt::format("allocate({}) gave [{:#x}, {:#x}), which the source did not supply", op.bytes, address,
                       address + held.block.bytes);
  if (std::string wrong = oracle_.hand_out(held.block); !wrong.empty()) return wrong;
  if (settings_.placements) settings_.placements->push_back(address);
  held.users.push_back({op.stream});
  requested_ += op.bytes;
  allocated_ += held.block.bytes;
  held_[op.slot] = std::move(held);
  return {};
}

void HistoryRunner::free(std::uint32_t slot, StreamRef last_use) {
  Held held = std::move(held_.at(slot));
  held_.erase(slot);
  if (last_use != held.block.request.stream) held.users.push_back(last_use);
  requested_ -= held.block.request.bytes;
  allocated_ -= held.block.bytes;
  oracle_.take_back(held.block, held.users);
  stack_->deallocate(held.block, last_use);
}

std::string HistoryRunner::step(const Operation& op) {
  const auto held = held_.find(op.slot);
  switch (op.kind) {
    case Operation::kAllocate:
      if (held == held_.end())
        if (std::string wrong = allocate(op); !wrong.empty()) return wrong;
      break;
    case Operation::kFree:
      if (held != held_.end()) free(op.slot, {op.stream});
      break;
    case Operation::kUse:
      if (held == held_.end()) break;
      try {
        stack_->record_use(held->second.block, {op.stream});
        held->second.users.push_back({op.stream});
      } catch (const Error& error) {
        if (!faulty()) return fmt::format("record_use threw: {}", error.what());
      }
      break;
    case Operation::kComplete:
      device_.complete(StreamRef{op.stream});
      break;
    case Operation::kTrim: {
      const std::size_t before = source_.reserved_bytes();
      try {
        const std::size_t given = stack_->trim(op.bytes);
        const std::size_t after = source_.reserved_bytes();
        if (before - after != given)
          return fmt::format("trim says it gave back {} bytes; the source got {}", given, before - after);
      } catch (const Error& error) {
        if (!faulty()) return fmt::format("trim threw: {}", error.what());
      }
      break;
    }
  }
  return settings_.check_each_step ? check() : std::string();
}

std::string HistoryRunner::check() const {
  if (std::string misuse = source_.misuse(); !misuse.empty()) return misuse;
  try {
    stack_->check_invariants();
  } catch (const Error& error) {
    return error.what();
  }
  const MemoryStats stats = stack_->stats();
  const auto differs = [](const char* what, std::int64_t says, std::size_t is) {
    return fmt::format("{} says {}, the ledger beside it {}", what, says, is);
  };
  if (stats.requested_bytes.current != static_cast<std::int64_t>(requested_))
    return differs("requested_bytes", stats.requested_bytes.current, requested_);
  if (stats.allocated_bytes.current != static_cast<std::int64_t>(allocated_))
    return differs("allocated_bytes", stats.allocated_bytes.current, allocated_);
  if (stats.allocations.current != static_cast<std::int64_t>(held_.size()))
    return differs("allocations", stats.allocations.current, held_.size());
  if (stats.reserved_bytes.current != static_cast<std::int64_t>(source_.reserved_bytes()))
    return differs("reserved_bytes", stats.reserved_bytes.current, source_.reserved_bytes());
  if (allocated_ > source_.reserved_bytes())
    return fmt::format("{} bytes are handed out, but only {} were taken from the device", allocated_,
                       source_.reserved_bytes());
  if (stats.policy.has_pools && stats.policy.allocated_bytes[0].current != static_cast<std::int64_t>(allocated_))
    return differs("the policy's own allocated_bytes", stats.policy.allocated_bytes[0].current, allocated_);
  return check_layout();
}

/// Where an allocator shows its layout: blocks tile segments, and every live block is there.
std::string HistoryRunner::check_layout() const {
  struct Visitor final : SegmentVisitor {
    void segment(const SegmentInfo& info) override {
      any = true;
      next = info.address;
    }
    void block(const BlockInfo& info) override {
      const std::uintptr_t address = info.address;
      if (address != next && wrong.empty())
        wrong = fmt::format("walk shows a block at {:#x} where the one before it ends at {:#x}", address, next);
      next = address + info.bytes;
      if (info.state == BlockState::kActive) active[address] = info;
    }
    bool any = false;
    std::uintptr_t next = 0;
    std::string wrong;
    std::map<std::uintptr_t, BlockInfo> active;
  } visitor;
  stack_->walk(visitor);
  if (!visitor.wrong.empty()) return visitor.wrong;
  if (!visitor.any) return {};
  if (visitor.active.size() != held_.size())
    return fmt::format("walk shows {} active blocks, {} are handed out", visitor.active.size(), held_.size());
  for (const auto& [slot, held] : held_) {
    const auto it = visitor.active.find(reinterpret_cast<std::uintptr_t>(held.block.data));
    if (it == visitor.active.end()) return fmt::format("walk does not show block #{}", slot);
    if (it->second.requested_bytes != held.block.request.bytes)
      return fmt::format("walk shows block #{} with {} requested bytes, it has {}", slot, it->second.requested_bytes,
                         held.block.request.bytes);
  }
  return {};
}

std::string HistoryRunner::finish() {
  if (std::string wrong = check(); !wrong.empty()) return wrong;
  source_.stop_faults();
  // Every other block goes back; the rest is the teardown's.
  for (std::uint32_t slot = 0; slot < 64; slot += 2)
    if (const auto it = held_.find(slot); it != held_.end()) free(slot, it->second.block.request.stream);
  if (std::string wrong = check(); !wrong.empty()) return wrong;
  stack_.reset();
  if (std::string misuse = source_.misuse(); !misuse.empty()) return misuse;
  if (std::string left = source_.leftovers(); !left.empty()) return "after the allocator was destroyed: " + left;
  return {};
}

}  // namespace

std::string run_history(const Subject& subject, const Operations& history, const RunSettings& settings) {
  std::size_t step = 0;
  try {
    HistoryRunner runner(subject, settings);
    std::string wrong;
    for (; step < history.size() && wrong.empty(); ++step) wrong = runner.step(history[step]);
    if (settings.fallible_calls) *settings.fallible_calls = runner.fallible_calls();
    return wrong.empty() ? runner.finish() : wrong;
  } catch (const Error& error) {
    // Making the allocator may fail where the source does; that is a clean error.
    if (settings.fault.index >= 0 && step == 0) return {};
    return fmt::format("an error where none may be: {}", error.what());
  }
}

}  // namespace tenon::conformance
