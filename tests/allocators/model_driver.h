// Plays one history on the caching policy and on the reference model, each over a device of its own, and says where
// they first differ: in an address, a size, the layout, or any figure.
#pragma once

#include "reference_model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::test {

struct ModelStep {
  enum Kind : std::uint8_t {
    kAllocate,
    kFree,
    kUse,
    kComplete,
    kEmptyCache,
    kOpenPool,
    kClosePool,
    kReleasePool,
    kToggleExpandable,
    kReset
  };
  Kind kind = kAllocate;
  std::uint32_t slot = 0;  ///< which block, which pool
  std::uint32_t size = 0;  ///< of an allocation: see size_of
  std::uint32_t stream = 0;
};

/// Every number is a size: all magnitudes up to 60 MiB, and often the ones at which PyTorch changes its mind.
std::size_t size_of(std::uint32_t number);

struct ModelCase {
  std::string name;
  caching::Settings settings;
  std::size_t capacity_bytes = 0;  ///< 0 = unlimited
};

/// The settings and capacities that the histories are played under.
std::vector<ModelCase> model_cases();

/// Empty when both agree after every step and the policy's own invariants hold.
std::string first_difference(const ModelCase& of, const std::vector<ModelStep>& history);

std::string to_string(const std::vector<ModelStep>& history);

}  // namespace tenon::test
