// Every call with a line in the journal before and after.
#include <tenon/conformance/finding.h>
#include <tenon/conformance/journal_watch.h>

#include <tenon/memory/watch/watched_allocator.h>

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <utility>

namespace tenon::conformance {

namespace {

class JournalWatcher final : public CallWatcher {
 public:
  explicit JournalWatcher(Journal& journal) : journal_(journal) {}
  void* begins(const CallFacts& facts) override { return &journal_.begin(facts); }
  void ended(void* call, std::uintptr_t address) noexcept override {
    journal_.end(*static_cast<Journal::Entry*>(call), address);
  }
  void handed_out(const Block& block, const Request& request) override {
    if (!journal_.judges_requests() || block.data == nullptr) return;
    if (std::string differs = request_differs(block.request, request); !differs.empty())
      throw BrokenPromise({cause::kRequest, std::move(differs)});
  }
  void foreign_exception(const CallFacts& facts, const std::string& what) override {
    try {
      throw;
    } catch (const BrokenPromise&) {  // of something that stands below
    } catch (...) {
      throw BrokenPromise({cause::kThrow, fmt::format("{} threw {}; an allocator may throw only "
                                                      "tenon::OutOfMemory and tenon::Error",
                                                      name_of(facts.call), what)});
    }
  }

 private:
  Journal& journal_;
};

}  // namespace

AllocatorInfo watched(const AllocatorInfo& info, Journal& journal) {
  return tenon::watched(info, std::make_shared<JournalWatcher>(journal));
}

}  // namespace tenon::conformance
