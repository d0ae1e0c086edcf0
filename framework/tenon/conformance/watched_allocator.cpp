// Forwarding with a line in the journal before and after.
#include <tenon/conformance/finding.h>
#include <tenon/conformance/watched_allocator.h>

#include <tenon/core/error.h>
#include <tenon/memory/forwarding.h>

#include <cxxabi.h>

#include <fmt/format.h>

#include <cstdlib>
#include <typeinfo>
#include <utility>

namespace tenon::conformance {

namespace {

std::string readable(const std::type_info& type) {
  int status = 0;
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? name : type.name();
  std::free(name);
  return text;
}

/// Only the project's errors may leave a call: nobody above expects anything else.
template <class Do>
auto only_errors_leave(const char* call, Do&& todo) {
  try {
    return todo();
  } catch (const Error&) {
    throw;
  } catch (const BrokenPromise&) {
    throw;
  } catch (const std::exception& error) {
    throw BrokenPromise({cause::kThrow, fmt::format("{} threw {} (\"{}\"), where only tenon::OutOfMemory and "
                                                    "tenon::Error may leave",
                                                    call, readable(typeid(error)), error.what())});
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    throw BrokenPromise({cause::kThrow, fmt::format("{} threw {}, which does not derive from std::exception", call,
                                                    type == nullptr ? "something" : readable(*type))});
  }
}

/// A call that ends however it is left.
struct InJournal {
  InJournal(Journal& its_journal, Journal::Entry& its_entry) : journal(its_journal), entry(its_entry) {}
  ~InJournal() { journal.end(entry); }
  InJournal(const InJournal&) = delete;
  InJournal& operator=(const InJournal&) = delete;
  Journal& journal;
  Journal::Entry& entry;
};

/// How the request in a block differs from what was asked for, empty where it does not.
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

class WatchedAllocator final : public ForwardingAllocator {
 public:
  WatchedAllocator(std::unique_ptr<Allocator> inner, Journal& journal)
      : ForwardingAllocator(std::move(inner)), journal_(journal) {}
  ~WatchedAllocator() override {
    const InJournal line(journal_, journal_.begin(Call::kDestroy));
    inner_.reset();
  }

  Block allocate(const Request& request) override {
    const InJournal line(journal_,
                         journal_.begin(Call::kAllocate, request.bytes, request.stream.id, 0, request.alignment));
    const Block block = only_errors_leave("allocate", [&] { return inner_->allocate(request); });
    line.entry.address = reinterpret_cast<std::uintptr_t>(block.data);
    if (journal_.judges_requests() && block.data != nullptr)
      if (std::string differs = request_differs(block.request, request); !differs.empty())
        throw BrokenPromise({cause::kRequest, std::move(differs)});
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    const InJournal line(
        journal_, journal_.begin(Call::kDeallocate, 0, last_use.id, reinterpret_cast<std::uintptr_t>(block.data)));
    inner_->deallocate(block, last_use);
  }
  void record_use(const Block& block, StreamRef stream) override {
    const InJournal line(journal_,
                         journal_.begin(Call::kRecordUse, 0, stream.id, reinterpret_cast<std::uintptr_t>(block.data)));
    only_errors_leave("record_use", [&] { inner_->record_use(block, stream); });
  }
  std::size_t trim(std::size_t keep_bytes) override {
    const InJournal line(journal_, journal_.begin(Call::kTrim, keep_bytes));
    return only_errors_leave("trim", [&] { return inner_->trim(keep_bytes); });
  }
  void walk(SegmentVisitor& visitor) const override {
    const InJournal line(journal_, journal_.begin(Call::kWalk));
    only_errors_leave("walk", [&] { inner_->walk(visitor); });
  }
  void report(PolicyStats& stats) const override {
    const InJournal line(journal_, journal_.begin(Call::kReport));
    only_errors_leave("report", [&] { inner_->report(stats); });
  }
  void reset_stats(bool peaks, bool accumulated) override {
    const InJournal line(journal_, journal_.begin(Call::kResetStats));
    only_errors_leave("reset_stats", [&] { inner_->reset_stats(peaks, accumulated); });
  }
  void check_invariants() const override {
    const InJournal line(journal_, journal_.begin(Call::kCheckInvariants));
    only_errors_leave("check_invariants", [&] { inner_->check_invariants(); });
  }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  Journal& journal_;
};

}  // namespace

AllocatorInfo watched(const AllocatorInfo& info, Journal& journal) {
  AllocatorInfo result = info;
  result.create = [create = info.create, &journal](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    std::unique_ptr<Allocator> inner;
    {
      const InJournal line(journal, journal.begin(Call::kCreate));
      inner = only_errors_leave("the constructor", [&] { return create(context); });
    }
    if (inner == nullptr) return nullptr;
    return std::make_unique<WatchedAllocator>(std::move(inner), journal);
  };
  return result;
}

}  // namespace tenon::conformance
