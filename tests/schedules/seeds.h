// Trying a scenario under many schedules.
#pragma once

#include <gtest/gtest.h>

#include <support/schedule.h>
#include <support/stress.h>

#include <cstdint>

namespace tenon::test {

/// Calls scenario(seed) for seeds from 1 on, until one of them fails.
template <class Scenario>
void try_seeds(int usual_count, const Scenario& scenario) {
  const int count = stress_rounds(usual_count);
  for (int seed = 1; seed <= count && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    scenario(static_cast<std::uint64_t>(seed));
  }
}

}  // namespace tenon::test
