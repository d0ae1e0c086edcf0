// What it costs to know memory by purpose and by kind of elements: nanoseconds of an allocation and its free, with the
// ledger of the host around a policy, and of the ledger alone beside counters that know less. All in one program, in
// turn.
//
//   tenon_ledger_cost [ROUNDS]
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/memory/stack/usage_ledger.h>
#include <tenon/runtime/allocator_spec.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tenon;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLive = 64, kRequests = 4096, kTurns = 64;

struct Counted {
  std::size_t bytes;
  Purpose purpose;
  ElementKind kind;
};

/// As in a step of training under mixed precision: four purposes, two kinds, in no order that a processor could guess.
std::vector<Counted> requests() {
  constexpr std::array kPurposes = {Purpose::kActivation, Purpose::kGradient, Purpose::kWorkspace, Purpose::kCast};
  constexpr std::array kKinds = {ElementKind::kFloat32, ElementKind::kBFloat16};
  std::mt19937 random(17);
  std::vector<Counted> all;
  for (std::size_t i = 0; i < kRequests; ++i)
    all.push_back({512 * (1 + random() % 8), kPurposes[random() % 4], kKinds[random() % 2]});
  return all;
}

struct Figure {
  std::int64_t current = 0, peak = 0;
  void add(std::size_t bytes) { peak = std::max(peak, current += static_cast<std::int64_t>(bytes)); }
  void remove(std::size_t bytes) { current -= static_cast<std::int64_t>(bytes); }
};

/// The least that a report could show of one thread: bytes asked for, bytes taken, blocks, each with its peak.
struct Totals {
  Figure requested, allocated, blocks;
  void add(const Counted& one) {
    requested.add(one.bytes);
    allocated.add(one.bytes);
    blocks.add(1);
  }
  void remove(const Counted& one) {
    requested.remove(one.bytes);
    allocated.remove(one.bytes);
    blocks.remove(1);
  }
};

struct TotalsByPurpose : Totals {
  std::array<Figure, kPurposeCount> of_purpose;
  void add(const Counted& one) {
    Totals::add(one);
    of_purpose[static_cast<std::size_t>(one.purpose)].add(one.bytes);
  }
  void remove(const Counted& one) {
    Totals::remove(one);
    of_purpose[static_cast<std::size_t>(one.purpose)].remove(one.bytes);
  }
};

/// The host's.
struct Ledger {
  explicit Ledger(bool serialised) : ledger(serialised) {}
  UsageLedger ledger;
  void add(const Counted& one) { ledger.add(one.bytes, one.bytes, one.purpose, one.kind); }
  void remove(const Counted& one) { ledger.remove(one.bytes, one.bytes, one.purpose, one.kind); }
};

/// Nanoseconds of one that comes and one that goes, kLive later.
double nanoseconds(const std::function<void(const Counted&)>& turn, const std::vector<Counted>& all) {
  const auto start = Clock::now();
  for (const Counted& one : all) turn(one);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / static_cast<double>(all.size());
}

template <class Counter>
std::function<double()> counting(const std::vector<Counted>& all, std::shared_ptr<Counter> counter) {
  return [&all, counter] {
    for (std::size_t i = 0; i < kLive; ++i) counter->add(all[i]);
    const auto start = Clock::now();
    for (std::size_t turn = 0; turn < kTurns; ++turn)
      for (std::size_t i = 0; i < kRequests; ++i) {
        counter->add(all[(i + kLive) % kRequests]);
        counter->remove(all[i]);
      }
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    for (std::size_t i = 0; i < kLive; ++i) counter->remove(all[i]);
    return ns / static_cast<double>(kTurns * kRequests);
  };
}

struct Nothing {
  void add(const Counted& one) { asm volatile("" : : "r"(&one) : "memory"); }
  void remove(const Counted& one) { asm volatile("" : : "r"(&one) : "memory"); }
};

/// Through the whole stack, policy included.
std::function<double()> allocating(const std::vector<Counted>& all, MemorySource& source, const char* spec) {
  std::shared_ptr<AllocatorStack> stack = AllocatorStack::make(source, allocator_from_spec(spec));
  return [&all, stack] {
    std::vector<Block> live(kLive);
    const auto request = [&](const Counted& one) {
      return stack->allocate({.bytes = one.bytes, .purpose = one.purpose, .elements = one.kind});
    };
    for (std::size_t i = 0; i < kLive; ++i) live[i] = request(all[i]);
    std::size_t next = 0;
    double ns = 0;
    for (std::size_t turn = 0; turn < kTurns; ++turn)
      ns += nanoseconds(
          [&](const Counted& one) {
            stack->deallocate(live[next]);
            live[next] = request(one);
            next = (next + 1) % kLive;
          },
          all);
    for (const Block& block : live) stack->deallocate(block);
    return ns / kTurns;
  };
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 31;
  const std::vector<Counted> all = requests();
  AddressOnlySource source;
  struct Row {
    const char* what;
    std::function<double()> run;
    std::vector<double> ns = {};
  };
  std::vector<Row> rows = {
      {"nothing", counting(all, std::make_shared<Nothing>())},
      {"totals", counting(all, std::make_shared<Totals>())},
      {"totals and by purpose", counting(all, std::make_shared<TotalsByPurpose>())},
      {"the ledger, calls serialised", counting(all, std::make_shared<Ledger>(true))},
      {"the ledger, of any thread", counting(all, std::make_shared<Ledger>(false))},
      {"allocate and free, `mortise`", allocating(all, source, "mortise")},
      {"allocate and free, `caching`", allocating(all, source, "caching")},
  };
  for (int round = 0; round < rounds; ++round)
    for (Row& row : rows) row.ns.push_back(row.run());
  fmt::print("| | ns, median of {} | least | most |\n|---|---:|---:|---:|\n", rounds);
  for (const Row& row : rows)
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} |\n", row.what, median(row.ns), *std::ranges::min_element(row.ns),
               *std::ranges::max_element(row.ns));
}
