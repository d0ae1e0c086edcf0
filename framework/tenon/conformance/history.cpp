// Histories from a seed.
#include <tenon/conformance/history.h>

#include <tenon/core/units.h>

#include <random>

namespace tenon::conformance {

Operations make_history(std::uint64_t seed, int length, int streams, int blocks) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  Operations history;
  for (int i = 0; i < length; ++i) {
    Operation op;
    op.slot = static_cast<std::uint32_t>(below(static_cast<std::uint64_t>(blocks)));
    op.stream = below(static_cast<std::uint64_t>(streams));
    const std::uint64_t dice = below(100);
    if (dice < 50) {
      op.kind = Operation::kAllocate;
      op.bytes = 1 + below(std::size_t{1} << (1 + below(25)));  // up to 32 MiB, all magnitudes alike
      if (below(4) == 0) op.bytes = align_up(op.bytes, 512);    // the sizes at which policies change their mind
      op.alignment = std::size_t{1} << below(10);
    } else if (dice < 86) {
      op.kind = Operation::kFree;
    } else if (dice < 91) {
      op.kind = Operation::kUse;
    } else if (dice < 98) {
      op.kind = Operation::kComplete;
    } else {
      op.kind = Operation::kTrim;
      op.bytes = below(2) == 0 ? 0 : below(64 * MiB);
    }
    history.push_back(op);
  }
  return history;
}

}  // namespace tenon::conformance
