// Baselines take as much from the device as the policies that they stand for: peak reserved over peak requested bytes
// on public sets of lifetimes, for which those policies were simulated from their sources, and on a recorded history.
#include "support/recorded_histories.h"

#include <tenon/replay/engine/replay.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon::replay {
namespace {

struct Figure {
  const char* history;
  const char* spec;
  double reserved_over_requested;
};

double reserved_over_requested(const Trace& trace, const std::string& spec) {
  const ReplayRow row = run_job(trace, allocator_from_spec(spec), {.timed_passes = 0, .time_each_call = false});
  EXPECT_EQ(row.failure, "") << spec;
  EXPECT_EQ(row.ooms, 0u) << spec;
  return static_cast<double>(row.peak_reserved_bytes) / static_cast<double>(row.peak_requested_bytes);
}

constexpr const char* kPoolOfNothing = "rmm_pool:initial_pool_size=512";
constexpr const char* kCubGrowth2 = "cub_bins:bin_growth=2,min_bin=9,max_bin=36,max_cached=1TiB";
constexpr const char* kCubGrowth8 = "cub_bins:bin_growth=8,min_bin=3,max_bin=12,max_cached=1TiB";
constexpr const char* kSameAsRequested = "bfc:arena_extend_strategy=same_as_requested";
constexpr const char* kWholePages = "stitching:share_below=0,stitch_from=0,growth=512";

TEST(Baselines, TakeWhatTheirOriginalsTake) {
  TENON_NEEDS_RECORDED("public/iopddl_G_1.csv");
  TENON_NEEDS_RECORDED("public/somas_resnet50.csv");
  TENON_NEEDS_RECORDED("sdxl_sample.trace.gz");
  for (const auto& [history, spec, expected] : {
           Figure{"public/iopddl_G_1.csv", kPoolOfNothing, 1.727},
           Figure{"public/somas_resnet50.csv", kPoolOfNothing, 1.899},
           Figure{"public/iopddl_G_1.csv", kCubGrowth2, 2.12},
           Figure{"public/somas_resnet50.csv", kCubGrowth2, 1.45},
           Figure{"public/iopddl_G_1.csv", kCubGrowth8, 4.45},
           Figure{"public/somas_resnet50.csv", kCubGrowth8, 3.07},
           Figure{"sdxl_sample.trace.gz", kPoolOfNothing,
                  2.27},  // the worst of RMM itself over 57 histories; ours is here
           // GMLake at its best: whole pages of 2 MiB, any of them, which was simulated.
           Figure{"public/iopddl_G_1.csv", kWholePages, 1.022},
           Figure{"public/somas_resnet50.csv", kWholePages, 1.115},
           Figure{"public/iopddl_G_1.csv", "bfc", 1.473},
           Figure{"public/somas_resnet50.csv", "bfc", 1.417},
           Figure{"public/iopddl_G_1.csv", kSameAsRequested, 1.013},
           Figure{"public/somas_resnet50.csv", kSameAsRequested, 1.109},
       }) {
    const auto path = test::recorded_histories() / history;
    EXPECT_NEAR(reserved_over_requested(read_traces(path.string()).front(), spec), expected, 0.01 * expected)
        << spec << " on " << history;
  }
}

}  // namespace
}  // namespace tenon::replay
