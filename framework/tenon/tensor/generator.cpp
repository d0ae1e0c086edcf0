// Generators: shared state under a mutex, one default for each kind of device.
#include <tenon/tensor/generator.h>

#include <array>
#include <mutex>
#include <random>

namespace tenon {

struct Generator::Shared {
  mutable std::mutex mutex;
  State state;
};

namespace {

constexpr std::uint64_t kDefaultSeed = 67280421310721;  // PyTorch's

std::array<Generator, kMaxDeviceTypes>& defaults() {
  static auto* generators = new std::array<Generator, kMaxDeviceTypes>();  // outlives static tensors
  return *generators;
}

}  // namespace

Generator::Generator() : Generator(kDefaultSeed) {}
Generator::Generator(std::uint64_t seed) : shared_(std::make_shared<Shared>()) { shared_->state.seed = seed; }

void Generator::set_current_seed(std::uint64_t seed) { set_state({seed, 0}); }
std::uint64_t Generator::current_seed() const { return state().seed; }
std::uint64_t Generator::seed() {
  std::random_device source;
  const std::uint64_t fresh = (static_cast<std::uint64_t>(source()) << 32) | source();
  set_current_seed(fresh);
  return fresh;
}
Generator::State Generator::state() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->state;
}
void Generator::set_state(State state) {
  std::lock_guard lock(shared_->mutex);
  shared_->state = state;
}
Generator::State Generator::reserve(std::uint64_t count) {
  std::lock_guard lock(shared_->mutex);
  const State before = shared_->state;
  shared_->state.offset += count;
  return before;
}

Generator default_generator(Device device) { return defaults()[device.type().id()]; }

void manual_seed(std::uint64_t seed) {
  for (Generator& generator : defaults()) generator.set_current_seed(seed);
}

RandomStates random_states() {
  RandomStates states;
  for (int i = 0; i < kMaxDeviceTypes; ++i) states.states[i] = defaults()[static_cast<std::size_t>(i)].state();
  return states;
}

void set_random_states(const RandomStates& states) {
  for (int i = 0; i < kMaxDeviceTypes; ++i) defaults()[static_cast<std::size_t>(i)].set_state(states.states[i]);
}

}  // namespace tenon
