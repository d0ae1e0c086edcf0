// The rules of the pool behind cudaMallocAsync (CUDA's stream-ordered allocator), for sources without one. Best fit
// over a pool that all streams share; what one stream freed serves that stream at once, and another one as the reuse
// policies say. What is unused beyond `release_threshold` goes back to the device at a synchronisation: here, where a
// program's synchronisations cannot be seen, when more is asked of the device and no stream has work on what it freed.
//
//   reuse_allow_opportunistic            blocks of a stream that has got to where it freed last
//   reuse_allow_internal_dependencies    blocks of a stream that has not: it is waited for (the driver lets the stream
//                                        wait instead of the host)
//
// Dependencies that a program makes between streams (reuse_follow_event_dependencies) are known to the driver alone.
#pragma once

#include "on_driver.h"
#include "tiled/ordered_tiles.h"
#include "tiled/tiled_allocator.h"

#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/memory/factory.h>

namespace tenon::driver_async {

struct Rules : tiled::DefaultRules {
  using Index = tiled::OrderedTiles;
  static constexpr const char* kName = "driver_async";
  static constexpr bool kShares = true;
  static constexpr bool kWaitsFirst = true;
  static constexpr bool kMarksFrees = true;

  static OptionSchema options() {
    return {
        OptionSpec::size("release_threshold", 0, "what stays cached at a synchronisation; PyTorch and RMM: all of it"),
        OptionSpec::size("chunk", 32 * MiB, "without a pool of the driver's, ours grows by multiples of it")
            .range(kUnit, 1 * GiB),
        OptionSpec::boolean("reuse_allow_opportunistic", true,
                            "a stream takes what another one freed, once that has got there"),
        OptionSpec::boolean("reuse_allow_internal_dependencies", true,
                            "a stream takes what another one freed, and waits for that")};
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; },
            .alignment = [](const Options&) { return kUnit; },
            .is_baseline = true};
  }

  explicit Rules(const AllocatorContext& context)
      : threshold_(context.options.size("release_threshold")),
        chunk_(align_up(context.options.size("chunk"), kUnit)),
        opportunistic_(context.options.boolean("reuse_allow_opportunistic")),
        internal_dependencies_(context.options.boolean("reuse_allow_internal_dependencies")) {}

  std::size_t round(std::size_t bytes) const { return align_up(bytes, kUnit); }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? bytes : 0; }
  bool takes_from_idle() const { return opportunistic_; }
  bool waits_for_others() const { return internal_dependencies_; }
  std::size_t kept_when_idle() const { return threshold_; }
  std::size_t segment_bytes(std::size_t bytes, std::size_t /*reserved*/) const {
    const std::size_t chunks = align_up(bytes, chunk_);
    return chunks < bytes ? bytes : chunks;
  }
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const { return asked > bytes ? bytes : 0; }

 private:
  const std::size_t threshold_, chunk_;
  const bool opportunistic_, internal_dependencies_;
};

}  // namespace tenon::driver_async
