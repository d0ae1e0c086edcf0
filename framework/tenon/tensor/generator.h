// Generator: where random operators draw from. A seed and an offset into one Philox stream, so that every device gives
// the same numbers and a state is two words.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace tenon {

class TENON_API Generator {
 public:
  struct State {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
  };
  Generator();
  explicit Generator(std::uint64_t seed);

  /// Begins the stream anew from a seed.
  void set_current_seed(std::uint64_t seed);
  /// The seed that the stream began with.
  std::uint64_t current_seed() const;
  std::uint64_t seed();  ///< draws a fresh seed from the system, sets and returns it
  /// Seed and position of the stream: all that its next numbers depend on.
  State state() const;
  /// Continues where a state was taken.
  void set_state(State state);
  /// Hands out `count` positions of the stream. Thread-safe.
  State reserve(std::uint64_t count);
  friend bool operator==(const Generator& a, const Generator& b) { return a.shared_ == b.shared_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

/// The generator of a device that operators use unless they are given one. All start from the same seed.
TENON_API Generator default_generator(Device device);
/// Sets the seed of every default generator, present and future.
TENON_API void manual_seed(std::uint64_t seed);
/// The state of every default generator, for checkpointing to put back.
struct TENON_API RandomStates {
  Generator::State states[kMaxDeviceTypes];
};
/// The states of all default generators; others are left out.
TENON_API RandomStates random_states();
/// Puts all default generators where random_states() found them.
TENON_API void set_random_states(const RandomStates& states);

}  // namespace tenon
