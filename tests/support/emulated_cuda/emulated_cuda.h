// A machine with CUDA devices that are not there: what tests tell it and ask it. The entry points of CUDA's runtime and
// driver are beside this header, behind the toolkit's own ones.
//
//   runtime_*.cpp, driver.cpp    the calls of CUDA, a file a family
//   machine.h                    the state behind them, and what every call stands in
//   work.h                       what is queued, and when it runs
//   address_space.h              device memory: addresses that the host cannot touch
//
// It is stricter than a device: what CUDA's documentation leaves undefined ends the program with a sentence, and a call
// that is not emulated ends it with its name. What it cannot show is in README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::emulated_cuda {

/// When queued work runs. Right programs give the same results under all of them.
enum class Order {
  kEager,       ///< as soon as it may
  kLastMoment,  ///< when somebody waits for it, and then nothing that is not needed; a host function too
  kSeeded,      ///< between calls, in an order drawn from the seed
};

/// A fault put into a kernel, to see that it is found: in the PTX of each kernel whose name has `kernel` in it, the nth
/// line (1 is the first) that has `line` in it becomes `becomes`, or goes where that is empty.
struct Fault {
  std::string kernel, line, becomes;
  int nth = 1;
};

/// What the machine can do about virtual memory.
enum class VirtualMemory {
  kWhole,
  kOfNoDevice,  ///< the driver has the calls, and says of its devices that they cannot
  kOfNoDriver,  ///< the driver is older than the calls
};

struct Settings {
  int devices = 2;
  std::size_t capacity_bytes = std::size_t{8} << 30;
  std::size_t page_bytes = std::size_t{2} << 20;  ///< granularity of virtual memory
  VirtualMemory virtual_memory = VirtualMemory::kWhole;
  int driver_version = 13000;
  int compute_capability = 90;  ///< 10 * major + minor: kernels run from the PTX that a driver would take
  bool peer_access = true;
  bool memory_pools = true;  ///< stream-ordered memory
  Order order = Order::kEager;
  std::uint64_t seed = 0;
  bool finds_unordered_use = true;  ///< of the same bytes by two streams, which ends the program
  std::vector<Fault> faults;
};

/// What a tool of NVIDIA's may learn of a piece of work that a device ran.
struct Ran {
  std::string what;    ///< "cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync" …
  std::string kernel;  ///< its name in PTX; empty for the rest
  int device = 0;
  unsigned long long stream = 0;  ///< CUDA's id
  const void* to = nullptr;       ///< of a copy or fill
  const void* from = nullptr;     ///< of a copy
  std::size_t bytes = 0;
  std::uint64_t tag = 0;  ///< what Tool::tag() said when it was queued
};
struct Tool {
  std::uint64_t (*tag)() = nullptr;         ///< called on the thread that queues
  void (*began)() = nullptr;                ///< called when a piece begins to run
  void (*ended)(const Ran& ran) = nullptr;  ///< and when it has
};
/// The tool of this process, from now on; an empty one is none.
void use_tool(const Tool& tool);
const Tool& tool();

/// A new machine: contexts, memory, streams and counts of the former one are gone. Nothing may be queued.
void start(const Settings& settings);

/// The devices whose primary context is active, in their order.
std::vector<int> contexts();
/// How often a function of CUDA was called since start().
std::int64_t calls(std::string_view function);
/// The nth call of `function` from now on (1 is the next one) does nothing and returns `error`.
void fail_call(std::string_view function, std::int64_t nth, int error);
/// An error as of a kernel that wrote where nothing is: from now on every call in the device's context returns it, and
/// what is queued never runs.
void lose_device(int device);
/// Bytes taken of a device.
std::size_t used_bytes(int device);
/// The largest workspace that a matrix product of the library was last allowed to ask for.
std::size_t offered_workspace_bytes();
/// Reads the instructions of all kernels of this process, as a launch does: ends the program at one that is not known.
/// How many kernels there are.
std::size_t read_kernels();
/// How many pieces of work are queued and have not run.
std::size_t queued_work();
/// Runs up to `count` pieces of work that may run.
void run_some(std::size_t count);

}  // namespace tenon::emulated_cuda
