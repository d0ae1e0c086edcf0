// Blocks of mixed sizes come and go from a full cache. The two allocators take turns, and the best turn of each counts.
#include <tenon/conformance/process/isolation.h>
#include <tenon/conformance/speed.h>

#include <tenon/core/seconds_since.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <random>

namespace tenon::conformance {

namespace {

constexpr double kTurnSeconds = 0.01;
constexpr int kLeastTurns = 5, kMostTurns = 15;
constexpr double kEnoughSeconds = 0.3;  // for more than the least
constexpr double kAbsurdNs = 20'000;    // an operator of a network takes about as long
constexpr std::size_t kLive = 64;

class Loop {
 public:
  Loop(const AllocatorInfo& info, const Options& options)
      : source_({.device = "conformance", .capacity_bytes = 64 * GiB}),
        allocator_(info.create({.source = source_, .options = options})) {
    std::mt19937_64 random(1);
    for (std::size_t& size : sizes_) size = std::size_t{512} << (random() % 14);
    for (std::size_t i = 0; i < kLive; ++i) live_[i] = allocator_->allocate({.bytes = sizes_[i]});
  }

  /// Nanoseconds of a pair in one turn.
  double turn() {
    const auto start = std::chrono::steady_clock::now();
    double seconds = 0;
    std::size_t pairs = 0;
    while (seconds < kTurnSeconds) {
      for (int i = 0; i < 8; ++i, ++pairs) {
        Block& block = live_[(pairs * 31) % kLive];
        allocator_->deallocate(block, block.request.stream);
        block = allocator_->allocate({.bytes = sizes_[(pairs * 7) % sizes_.size()]});
      }
      seconds = seconds_since(start);
    }
    return seconds * 1e9 / static_cast<double>(pairs);
  }

 private:
  AddressOnlySource source_;
  std::unique_ptr<Allocator> allocator_;
  std::array<std::size_t, 256> sizes_{};
  std::array<Block, kLive> live_;
};

}  // namespace

std::optional<Speed> measure_speed(const AllocatorInfo& info, const Options& options, const AllocatorInfo* yardstick) {
  Journal journal;
  const Finding answer = run_in_child(
      [&] {
        Loop subject(info, options);
        const Options defaults(yardstick ? yardstick->options : OptionSchema());
        std::optional<Loop> other;
        if (yardstick) other.emplace(*yardstick, defaults);
        double pair_ns = 1e18, yardstick_ns = 1e18;
        const auto start = std::chrono::steady_clock::now();
        for (int turn = 0; turn < kLeastTurns || (turn < kMostTurns && seconds_since(start) < kEnoughSeconds); ++turn) {
          pair_ns = std::min(pair_ns, subject.turn());
          if (other) yardstick_ns = std::min(yardstick_ns, other->turn());
        }
        return Finding("speed", fmt::format("{} {}", pair_ns, other ? yardstick_ns : 0.0));
      },
      journal, {.deadline_seconds = 3, .call_seconds = 3});
  Speed speed;
  if (answer.cause != "speed" || std::sscanf(answer.text.c_str(), "%lf %lf", &speed.pair_ns, &speed.yardstick_ns) != 2)
    return std::nullopt;
  if (yardstick) speed.yardstick = yardstick->name;
  return speed;
}

bool Speed::is_absurd() const { return pair_ns > kAbsurdNs && pair_ns > 100 * yardstick_ns; }

std::string Speed::text() const {
  const auto time = [](double ns) {
    return ns < 10'000 ? fmt::format("{:.0f} ns", ns) : fmt::format("{:.4g} us", ns / 1000);
  };
  std::string text = fmt::format("an allocation and its free take {}", time(pair_ns));
  if (!yardstick.empty() && yardstick_ns > 0)
    text += fmt::format("; {} {} ({:.1f} times)", yardstick, time(yardstick_ns), pair_ns / yardstick_ns);
  return text;
}

}  // namespace tenon::conformance
