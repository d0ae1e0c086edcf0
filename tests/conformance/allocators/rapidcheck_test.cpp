// The allocators that are shipped against a shadow map (every live interval, every stream that still uses one, every
// figure), histories made and made shorter by RapidCheck. Without that library the kit's own histories remain.
#include "conformance/allocators/option_set.h"

#include <tenon/conformance/history_runner.h>
#include <tenon/core/units.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <string>

namespace tenon {
namespace {

using conformance::Operation;
using conformance::Operations;

rc::Gen<std::size_t> sizes() {
  // Shrinks towards 1; all magnitudes alike, and the sizes around which policies change their mind.
  const auto of_magnitude = rc::gen::mapcat(
      rc::gen::inRange(0, 25), [](int shift) { return rc::gen::inRange<std::size_t>(1, (std::size_t{2} << shift)); });
  const auto edge = rc::gen::element<std::size_t>(511, 512, 513, 1 * MiB, 1 * MiB + 1, 2 * MiB, 10 * MiB - 512,
                                                  10 * MiB, 10 * MiB + 1, 20 * MiB, 24 * MiB);
  return rc::gen::weightedOneOf<std::size_t>({{4, of_magnitude}, {1, edge}});
}

rc::Gen<Operation> operations() {
  return rc::gen::build<Operation>(
      rc::gen::set(&Operation::kind, rc::gen::weightedElement<Operation::Kind>({{50, Operation::kAllocate},
                                                                                {34, Operation::kFree},
                                                                                {6, Operation::kUse},
                                                                                {7, Operation::kComplete},
                                                                                {3, Operation::kTrim}})),
      rc::gen::set(&Operation::slot, rc::gen::inRange<std::uint32_t>(0, 24)), rc::gen::set(&Operation::bytes, sizes()),
      rc::gen::set(&Operation::alignment,
                   rc::gen::map(rc::gen::inRange(0, 10), [](int shift) { return std::size_t{1} << shift; })),
      rc::gen::set(&Operation::stream, rc::gen::inRange<std::uint64_t>(0, 3)));
}

class AgainstAShadow : public ::testing::TestWithParam<OptionSet> {};

TEST_P(AgainstAShadow, HoldsAfterEveryStep) {
  ::setenv("RC_PARAMS", "seed=47 max_success=60 max_size=200", 0);  // fixed; RC_PARAMS of the environment wins
  const AllocatorInfo& info = allocator_of(GetParam());
  const Options options = options_of(GetParam());
  const conformance::Subject subject{info, options};
  const bool holds = rc::check(GetParam().name, [&] {
    const auto history = *rc::gen::container<Operations>(operations()).as("history");
    const std::size_t capacity = *rc::gen::element<std::size_t>(0, 64 * MiB, 256 * MiB).as("capacity");
    const conformance::Finding wrong = conformance::run_history(subject, history, {.capacity_bytes = capacity});
    if (!wrong.empty()) RC_FAIL(wrong.text + "\n" + conformance::to_string(history));
  });
  EXPECT_TRUE(holds);
}

INSTANTIATE_TEST_SUITE_P(
    RapidCheck, AgainstAShadow,
    ::testing::Values(OptionSet{"Direct", "direct", {}}, OptionSet{"Caching", "caching", {}},
                      OptionSet{"CachingAs1_13", "caching", {{"compat", "1.13"}, {"roundup_power2_divisions", "4"}}},
                      OptionSet{"CachingSplitLimit", "caching", {{"max_split_size", "24MiB"}}},
                      OptionSet{"Expandable", "expandable", {}},
                      OptionSet{"ExpandableSplitLimit", "expandable", {{"max_split_size", "24MiB"}}},
                      OptionSet{"Pinned", "pinned", {}}, OptionSet{"Mortise", "mortise", {}},
                      OptionSet{"MortiseSparing", "mortise", {{"slack_fraction", "0"}, {"growth_fraction", "0"}}},
                      OptionSet{"MortisePagesApart", "mortise", {{"pages_apart", "true"}}},
                      OptionSet{"Stitching", "stitching", {}},
                      OptionSet{"StitchingAll", "stitching", {{"share_below", "1GiB"}, {"stitch_from", "0"}}},
                      OptionSet{"Planned", "planned", {}}, OptionSet{"Tlsf", "tlsf", {}},
                      OptionSet{"Arena", "arena", {}}, OptionSet{"Buddy", "buddy", {}}, OptionSet{"Bfc", "bfc", {}},
                      OptionSet{"CubBins", "cub_bins", {}}, OptionSet{"RmmPool", "rmm_pool", {}},
                      OptionSet{"RmmArena", "rmm_arena", {}}, OptionSet{"SlabByLcm", "slab_by_lcm", {}},
                      OptionSet{"DriverAsync", "driver_async", {}}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace tenon
