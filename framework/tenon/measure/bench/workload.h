// Workloads: streams of requests whose time is what `tenon bench` measures. Through AllocatorStack with its statistics,
// as a program would, over a device of addresses only.
//
//   hot/SIZE          one block, allocate and free
//   lifo/N            N allocations, freed in reverse
//   random/N          of N live blocks a random one is replaced
//   cached/N          hot, with N cached blocks of other sizes around
//   streams/N         hot on N streams in turn, each block also used on the next stream
//   threads/N         hot on N threads at once, each on a stream of its own
//   threads-random/N  the blocks of random/10000 shared out to N threads, each on a stream of its own
//   recorded/NAME     a history from a file, all of it
//
// Sizes are log-uniform from 512 B to 64 MiB where nothing is said.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::measure {

/// A number of pairs of allocate and free, and what they took: processor time, or wall-clock time where the thread
/// waited of itself or there were several threads.
struct Timed {
  double ns = 0;
  std::uint64_t pairs = 0;
};

class TENON_EXPORT Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload();
  /// Runs this many pairs, or up to one pass more, and says how many. Nothing in it takes the time: the loop that is
  /// measured is the same whoever measures it.
  virtual std::uint64_t repeat(std::uint64_t pairs) = 0;
  /// The same, timed. Overridden where a part of it is nobody's time: waking threads, a new allocator for each pass.
  virtual Timed run(std::uint64_t pairs);
  /// Before a slice of so many pairs is timed: the processor comes back from somebody else, its caches and what it has
  /// learnt of branches are not ours.
  virtual void warm_up(std::uint64_t pairs);
  /// After so many, nearly all has been touched that the next ones will touch. 0: a part of a slice will do.
  virtual std::uint64_t pairs_to_warm_up() const { return 0; }
};

/// One workload of a bench: its name as above, and the history of a recorded one.
struct WorkloadSpec {
  std::string name;
  const replay::Trace* trace = nullptr;
};

/// What is measured where nobody chooses.
TENON_API std::vector<std::string> default_workloads();
/// Every form, a line each: "hot/SIZE      one block …".
TENON_API std::string workload_help();

/// Throws ConfigError for a name of none of the forms above, or a number out of range; the nearest form is named.
TENON_API void check_workload(std::string_view name);

/// Over a new allocator; in its steady state. Throws what the allocator throws.
TENON_API std::unique_ptr<Workload> make_workload(const WorkloadSpec& spec, const StackConfig& allocator);

/// What that row is called in results.
inline constexpr char kHarness[] = "harness";
/// The policy of the row that is the harness itself: rising addresses and nothing else.
TENON_API StackConfig harness_allocator();

}  // namespace tenon::measure
