// The words for a call.
#include <tenon/memory/watch/call.h>

#include <fmt/format.h>

namespace tenon {

std::string name_of(Call call) {
  constexpr const char* kNames[] = {"the constructor", "allocate", "deallocate", "record_use",  "trim",
                                    "complete",        "walk",     "report",     "reset_stats", "check_invariants",
                                    "the destructor"};
  return kNames[static_cast<int>(call)];
}

std::string text_of(const CallFacts& facts) {
  switch (facts.call) {
    case Call::kAllocate:
      return fmt::format("allocate({} bytes, alignment {}, stream {})", facts.bytes, facts.alignment, facts.stream);
    case Call::kDeallocate:
      return fmt::format("deallocate({:#x}, last used on stream {})", facts.address, facts.stream);
    case Call::kRecordUse:
      return fmt::format("record_use({:#x}, stream {})", facts.address, facts.stream);
    case Call::kTrim:
      return fmt::format("trim({})", facts.bytes);
    case Call::kCreate:
    case Call::kDestroy:
      return name_of(facts.call);
    default:
      return name_of(facts.call) + "()";
  }
}

}  // namespace tenon
