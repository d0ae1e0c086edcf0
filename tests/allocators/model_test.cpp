// The caching policy, with and without expandable segments, decides as the reference model does: random histories under
// many settings and capacities, compared after every step.
#include "model_driver.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon {
namespace {

using test::ModelCase;
using test::ModelStep;

std::vector<ModelStep> make_history(std::uint64_t seed, int length) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  // How likely each kind is; some histories have no pools, few streams, no toggles.
  const bool pools = below(2) == 0, toggles = below(3) == 0;
  const std::uint32_t streams = 1 + below(3);
  std::vector<ModelStep> history;
  for (int i = 0; i < length; ++i) {
    ModelStep step{.slot = below(24), .size = static_cast<std::uint32_t>(random()), .stream = below(streams)};
    const std::uint32_t dice = below(1000);
    if (dice < 480) {
      step.kind = ModelStep::kAllocate;
    } else if (dice < 830) {
      step.kind = ModelStep::kFree;
    } else if (dice < 900) {
      step.kind = ModelStep::kUse;
      step.stream = below(3);
    } else if (dice < 950) {
      step.kind = ModelStep::kComplete;
      step.stream = below(3);
    } else if (dice < 965) {
      step.kind = ModelStep::kEmptyCache;
    } else if (dice < 970) {
      step.kind = ModelStep::kReset;
    } else if (dice < 995) {
      if (!pools) continue;
      step.kind = dice < 981 ? ModelStep::kOpenPool : dice < 993 ? ModelStep::kClosePool : ModelStep::kReleasePool;
    } else {
      if (!toggles) continue;
      step.kind = ModelStep::kToggleExpandable;
    }
    history.push_back(step);
  }
  return history;
}

/// Takes out whatever can go while the two still differ.
std::vector<ModelStep> shortened(const ModelCase& of, std::vector<ModelStep> history) {
  for (std::size_t stretch = history.size() / 2; stretch > 0; stretch /= 2) {
    for (std::size_t at = 0; at < history.size();) {
      std::vector<ModelStep> candidate = history;
      const auto from = candidate.begin() + static_cast<std::ptrdiff_t>(at);
      candidate.erase(from, from + static_cast<std::ptrdiff_t>(std::min(stretch, candidate.size() - at)));
      if (first_difference(of, candidate).empty())
        at += stretch;
      else
        history = std::move(candidate);
    }
  }
  return history;
}

TEST(ReferenceModel, EverySizeIsReached) {
  std::size_t least = SIZE_MAX, most = 0;
  for (std::uint32_t number = 0; number < 100000; ++number) {
    const std::size_t bytes = test::size_of(number * 2654435761u);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  EXPECT_EQ(least, 1u);
  EXPECT_GE(most, 58 * MiB);
}

TEST(ReferenceModel, AgreesWithThePolicyAfterEveryStep) {
  std::uint64_t seed = 47;
  for (const ModelCase& of : test::model_cases()) {
    for (int i = 0; i < 20; ++i, ++seed) {
      const std::vector<ModelStep> history = make_history(seed, 400);
      if (first_difference(of, history).empty()) continue;
      const std::vector<ModelStep> shortest = shortened(of, history);
      FAIL() << "seed " << seed << ": " << first_difference(of, shortest) << "\n" << test::to_string(shortest);
    }
  }
}

}  // namespace
}  // namespace tenon
