// Runs a history with everything watched: the intervals, the layout, the figures, the source, the end.
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/journal.h>
#include <tenon/conformance/oracle.h>

#include <tenon/core/error.h>
#include <tenon/memory/sources/address_only_source.h>

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

namespace tenon::conformance {

namespace {

/// An allocator in service with a ledger of its own beside it.
class HistoryRunner {
 public:
  HistoryRunner(const Subject& subject, const RunSettings& settings)
      : settings_(settings),
        journal_(subject.journal),
        device_({.device = "conformance",
                 .capacity_bytes = settings.capacity_bytes,
                 .manual_completion = settings.manual_completion}),
        source_(device_, settings.fault),
        oracle_(device_),
        stack_(AllocatorStack::make(source_, subject.config())) {
    source_.watch_releases(
        [this](std::uintptr_t address, std::size_t bytes) { return oracle_.still_used(address, bytes); });
  }

  Finding step(const Operation& op);
  Finding finish();
  std::int64_t fallible_calls() const { return source_.fallible_calls(); }

 private:
  struct Held {
    Block block;
    Request request;  ///< as it was asked for
    std::vector<StreamRef> users;
  };
  Finding allocate(const Operation& op);
  Finding judge(const Block& block, const Request& request);
  void free(std::uint32_t slot, StreamRef last_use);
  Finding trim(std::size_t keep_bytes);
  Finding check() const;
  Finding check_source() const;
  Finding check_figures() const;
  Finding check_layout() const;
  bool faulty() const { return settings_.fault.index >= 0; }
  bool wants(std::string_view cause) const {
    return settings_.only.empty() || std::ranges::find(settings_.only, cause) != settings_.only.end();
  }
  /// The first of these findings that is looked for.
  Finding first_wanted(std::initializer_list<Finding> findings) const {
    for (const Finding& finding : findings)
      if (!finding.empty() && wants(finding.cause)) return finding;
    return {};
  }

  const RunSettings& settings_;
  Journal* journal_;
  AddressOnlySource device_;
  CheckedSource source_;
  Oracle oracle_;
  std::shared_ptr<AllocatorStack> stack_;
  std::map<std::uint32_t, Held> held_;
  std::size_t requested_ = 0, allocated_ = 0;
};

Finding HistoryRunner::allocate(const Operation& op) {
  const MemoryStats before = stack_->stats();
  Held held{.block = {},
            .request = {.bytes = op.bytes,
                        .alignment = op.alignment,
                        .stream = {op.stream},
                        .purpose = static_cast<Purpose>(op.slot % kPurposeCount)},
            .users = {}};
  try {
    held.block = stack_->allocate(held.request);
  } catch (const OutOfMemory&) {
    const MemoryStats after = stack_->stats();
    if (after.allocated_bytes.current != before.allocated_bytes.current ||
        after.allocations.current != before.allocations.current)
      return {cause::kFigures, "an allocation that ran out of memory changed what counts as handed out"};
    return {};
  } catch (const Error& error) {
    if (faulty()) return {};
    return first_wanted({{cause::kThrow, fmt::format("allocate({}) threw: {}", op.bytes, error.what())}});
  }
  if (Finding wrong = judge(held.block, held.request); !wrong.empty()) return wrong;
  if (held.block.data == nullptr) return {};
  if (settings_.placements) settings_.placements->push_back(reinterpret_cast<std::uintptr_t>(held.block.data));
  held.users.push_back({op.stream});
  requested_ += op.bytes;
  allocated_ += held.block.bytes;
  held_[op.slot] = std::move(held);
  return {};
}

Finding HistoryRunner::judge(const Block& block, const Request& request) {
  const auto address = reinterpret_cast<std::uintptr_t>(block.data);
  if (block.data == nullptr)
    return first_wanted({{cause::kBytes, fmt::format("allocate({}) gave a null address: where there is no memory it "
                                                     "throws OutOfMemory",
                                                     request.bytes)}});
  Finding overlap = oracle_.hand_out(block, request.stream, source_.behind(address, block.bytes));
  Finding bytes, alignment, outside;
  if (block.bytes < request.bytes)
    bytes = {cause::kBytes, fmt::format("allocate({}) gave a block of only {} bytes", request.bytes, block.bytes)};
  if (address % std::max(request.alignment, std::size_t{1}) != 0)
    alignment = {cause::kAlignment, fmt::format("allocate({}) gave {:#x}, which is not aligned to {}", request.bytes,
                                                address, request.alignment)};
  if (!source_.covers(address, block.bytes))
    outside = {cause::kOutside, fmt::format("allocate({}) gave [{:#x}, {:#x}), which the source did not supply",
                                            request.bytes, address, address + block.bytes)};
  return first_wanted({overlap, outside, bytes, alignment});
}

void HistoryRunner::free(std::uint32_t slot, StreamRef last_use) {
  Held held = std::move(held_.at(slot));
  held_.erase(slot);
  if (last_use != held.request.stream) held.users.push_back(last_use);
  requested_ -= held.request.bytes;
  allocated_ -= held.block.bytes;
  oracle_.take_back(held.block, held.users);
  stack_->deallocate(held.block, last_use);
}

Finding HistoryRunner::trim(std::size_t keep_bytes) {
  const std::size_t before = source_.reserved_bytes();
  try {
    const std::size_t given = stack_->trim(keep_bytes);
    const std::size_t after = source_.reserved_bytes();
    if (before - after == given) return {};
    return first_wanted(
        {{cause::kTrim, fmt::format("trim says it gave back {} bytes; the source got {}", given, before - after)}});
  } catch (const Error& error) {
    if (faulty()) return {};
    return first_wanted({{cause::kThrow, fmt::format("trim threw: {}", error.what())}});
  }
}

Finding HistoryRunner::step(const Operation& op) {
  const auto held = held_.find(op.slot);
  Finding wrong;
  switch (op.kind) {
    case Operation::kAllocate:
      if (held == held_.end()) wrong = allocate(op);
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
        if (!faulty()) wrong = first_wanted({{cause::kThrow, fmt::format("record_use threw: {}", error.what())}});
      }
      break;
    case Operation::kComplete:
      if (journal_) journal_->end(journal_->begin({.call = Call::kComplete, .stream = op.stream}));
      device_.complete(StreamRef{op.stream});
      break;
    case Operation::kTrim:
      wrong = trim(op.bytes);
      break;
  }
  if (wrong.empty() && settings_.check_each_step) wrong = check();
  return wrong;
}

Finding HistoryRunner::check() const {
  // Each of them looks at everything there is: only where somebody asks.
  if (Finding wrong = check_source(); !wrong.empty()) return wrong;
  if (wants(cause::kLayout)) {
    try {
      stack_->check_invariants();
    } catch (const Error& error) {
      return {cause::kLayout, fmt::format("check_invariants(): {}", error.what())};
    }
  }
  if (wants(cause::kFigures) || wants(cause::kReport))
    if (Finding wrong = first_wanted({check_figures()}); !wrong.empty()) return wrong;
  return wants(cause::kLayout) ? check_layout() : Finding();
}

Finding HistoryRunner::check_source() const {
  const std::string early = source_.early_release(), misuse = source_.misuse();
  return first_wanted({{cause::kStreams, early}, {cause::kMisuse, misuse}});
}

Finding HistoryRunner::check_figures() const {
  const MemoryStats stats = stack_->stats();
  const auto differs = [](std::string_view why, const char* what, std::int64_t says, std::size_t is) {
    return Finding(why, fmt::format("{} says {}, the ledger beside it {}", what, says, is));
  };
  if (stats.requested_bytes.current != static_cast<std::int64_t>(requested_))
    return differs(cause::kFigures, "requested_bytes", stats.requested_bytes.current, requested_);
  if (stats.allocated_bytes.current != static_cast<std::int64_t>(allocated_))
    return differs(cause::kFigures, "allocated_bytes", stats.allocated_bytes.current, allocated_);
  if (stats.allocations.current != static_cast<std::int64_t>(held_.size()))
    return differs(cause::kFigures, "allocations", stats.allocations.current, held_.size());
  if (stats.reserved_bytes.current != static_cast<std::int64_t>(source_.reserved_bytes()))
    return differs(cause::kFigures, "reserved_bytes", stats.reserved_bytes.current, source_.reserved_bytes());
  if (allocated_ > source_.reserved_bytes())
    return {cause::kFigures, fmt::format("blocks of {} bytes in all are handed out, but only {} were taken from the "
                                         "device: is Block::bytes the size after rounding?",
                                         allocated_, source_.reserved_bytes())};
  if (stats.policy.has_pools && stats.policy.allocated_bytes[0].current != static_cast<std::int64_t>(allocated_))
    return differs(cause::kReport, "the policy's own allocated_bytes", stats.policy.allocated_bytes[0].current,
                   allocated_);
  const std::size_t idle = source_.reserved_bytes() - allocated_;
  if (stats.policy.cached_bytes > idle)
    return differs(cause::kReport, "the policy's cached_bytes", static_cast<std::int64_t>(stats.policy.cached_bytes),
                   idle);
  if (stats.policy.largest_free_bytes > idle)
    return differs(cause::kReport, "the policy's largest_free_bytes",
                   static_cast<std::int64_t>(stats.policy.largest_free_bytes), idle);
  return {};
}

/// Where an allocator shows its layout: blocks tile segments, and every live block is there.
Finding HistoryRunner::check_layout() const {
  struct Visitor final : SegmentVisitor {
    void segment(const SegmentInfo& info) override {
      end_segment();
      open = info;
      next = info.address;
    }
    void block(const BlockInfo& info) override {
      const std::uintptr_t address = info.address;
      if (address != next && wrong.empty())
        wrong = fmt::format("walk shows a block at {:#x} where the one before it ends at {:#x}", address, next);
      next = address + info.bytes;
      if (info.state != BlockState::kUnmapped) mapped += info.bytes;
      if (info.state == BlockState::kActive) active[address] = info;
    }
    void end_segment() {
      if (open && mapped != open->bytes && wrong.empty())
        wrong = fmt::format("walk shows a segment of {} bytes at {:#x} whose blocks are {} bytes", open->bytes,
                            static_cast<std::uintptr_t>(open->address), mapped);
      mapped = 0;
    }
    std::optional<SegmentInfo> open;
    std::uintptr_t next = 0;
    std::size_t mapped = 0;  ///< of blocks of the open segment
    std::string wrong;
    std::map<std::uintptr_t, BlockInfo> active;
  } visitor;
  stack_->walk(visitor);
  visitor.end_segment();
  if (!visitor.wrong.empty()) return {cause::kLayout, visitor.wrong};
  if (!visitor.open) return {};
  if (visitor.active.size() != held_.size())
    return {cause::kLayout,
            fmt::format("walk shows {} active blocks, {} are handed out", visitor.active.size(), held_.size())};
  for (const auto& [slot, held] : held_) {
    const auto it = visitor.active.find(reinterpret_cast<std::uintptr_t>(held.block.data));
    if (it == visitor.active.end()) return {cause::kLayout, fmt::format("walk does not show block #{}", slot)};
    if (it->second.requested_bytes != held.request.bytes)
      return {cause::kLayout, fmt::format("walk shows block #{} with {} requested bytes, it has {}", slot,
                                          it->second.requested_bytes, held.request.bytes)};
  }
  return {};
}

Finding HistoryRunner::finish() {
  if (Finding wrong = check(); !wrong.empty()) return wrong;
  source_.stop_faults();
  // Every other block goes back; the rest is the teardown's.
  std::vector<std::uint32_t> slots;
  for (const auto& [slot, held] : held_)
    if (slot % 2 == 0) slots.push_back(slot);
  for (const std::uint32_t slot : slots) free(slot, held_.at(slot).request.stream);
  if (Finding wrong = check(); !wrong.empty()) return wrong;
  stack_.reset();
  if (Finding wrong = check_source(); !wrong.empty()) return wrong;
  if (std::string left = source_.leftovers(); !left.empty())
    return first_wanted({{cause::kLeak, "after the allocator was destroyed: " + left}});
  return {};
}

}  // namespace

Finding run_history(const Subject& subject, const Operations& history, const RunSettings& settings) {
  std::size_t step = 0;
  try {
    if (subject.journal) subject.journal->note_settings(settings);
    HistoryRunner runner(subject, settings);
    Finding wrong;
    for (; step < history.size() && wrong.empty(); ++step) wrong = runner.step(history[step]);
    if (settings.fallible_calls) *settings.fallible_calls = runner.fallible_calls();
    return wrong.empty() ? runner.finish() : wrong;
  } catch (const Error& error) {
    // Making the allocator may fail where the source does; that is a clean error.
    if (settings.fault.index >= 0 && step == 0) return {};
    return {cause::kThrow, fmt::format("an error where none may be: {}", error.what())};
  } catch (const BrokenPromise& broken) {
    return broken.finding();
  }
}

}  // namespace tenon::conformance
