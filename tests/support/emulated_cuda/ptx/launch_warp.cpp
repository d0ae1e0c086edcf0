// What the threads of a warp or of a block do together: barriers, shuffles, votes. Declared in launch.h.
#include "support/emulated_cuda/misuse.h"
#include "support/emulated_cuda/ptx/launch.h"

#include <algorithm>
#include <bit>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr std::uint32_t kWarp = 32;

}  // namespace

/// All threads of the block that have not ended must have come, to the same barrier.
bool Launch::release_barrier() {
  const Thread* first = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state == State::kExited) continue;
    if (thread.state != State::kAtBarrier) return false;
    if (first == nullptr) first = &thread;
    if (thread.waits_at != first->waits_at) {
      stop(thread, *thread.waits_at,
           "is not the barrier at which thread " + std::to_string(first->index) + " waits (" +
               place(*first, *first->waits_at) + ")");
    }
  }
  if (first == nullptr) return false;
  const std::uint64_t barrier = value(*first, first->waits_at->in[0]);
  if (barrier > 15) stop(*first, *first->waits_at, "names barrier " + std::to_string(barrier));
  if (++block_phase_ > kMostPhases) stop(*first, *first->waits_at, "comes more often than the emulation counts");
  reduce_at_barrier(*first->waits_at);
  for (Thread& thread : threads_) {
    if (thread.state == State::kAtBarrier) thread.state = State::kReady;
  }
  return true;
}

/// bar.red.MODE d, barrier, p: what all predicates together say.
void Launch::reduce_at_barrier(const Instruction& instruction) {
  if (instruction.mode.empty()) return;
  std::uint64_t all = 0;
  std::uint64_t count = 0;
  for (const Thread& thread : threads_) {
    if (thread.state != State::kAtBarrier) continue;
    ++all;
    count += value(thread, instruction.in[1]) & 1;
  }
  const std::uint64_t result = instruction.mode == "popc"  ? count
                               : instruction.mode == "and" ? count == all
                                                           : count > 0;
  for (Thread& thread : threads_) {
    if (thread.state == State::kAtBarrier) set(thread, instruction.out[0], result);
  }
}

/// Threads that wait with the same mask at the same instruction go on when all of the mask are there.
bool Launch::release_warps() {
  bool released = false;
  for (Thread* thread : by_index_) {
    if (thread->state != State::kAtWarp) continue;
    const Instruction& instruction = *thread->waits_at;
    const auto mask = static_cast<std::uint32_t>(value(*thread, instruction.in.back()));
    const std::uint32_t warp = thread->index / kWarp;
    if ((mask >> (thread->index % kWarp) & 1) == 0)
      stop(*thread, instruction, "has a mask " + hexadecimal(mask) + " that does not name its own thread");
    bool all_there = true;
    for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const std::uint32_t index = warp * kWarp + lane;
      if (index >= by_index_.size()) continue;  // a warp that is not full: the rest are not there
      const Thread& other = *by_index_[index];
      if (other.state == State::kExited)
        stop(*thread, instruction, "names thread " + std::to_string(index) + " in its mask, which has ended");
      all_there = all_there && other.state == State::kAtWarp && other.waits_at == &instruction &&
                  static_cast<std::uint32_t>(value(other, instruction.in.back())) == mask;
    }
    if (!all_there) continue;
    run_warp_operation(warp, mask, instruction);
    released = true;
  }
  return released;
}

void Launch::run_warp_operation(std::uint32_t warp, std::uint32_t mask, const Instruction& instruction) {
  if (instruction.kind == Kind::kShuffle) shuffle(warp, mask, instruction);
  if (instruction.kind == Kind::kVote || instruction.kind == Kind::kMatch) vote(warp, mask, instruction);
  if (instruction.kind == Kind::kMatrixLoad) load_matrices(warp, instruction);
  if (instruction.kind == Kind::kMatrixProduct) multiply_matrices(warp, instruction);
  if (instruction.kind == Kind::kWarpBarrier && ++warp_phases_[warp] > kMostPhases)
    stop(*by_index_[std::size_t{warp} * kWarp], instruction, "comes more often than the emulation counts");
  const std::array<Thread*, kWarp> lanes = lanes_of(warp);
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane] != nullptr && (mask >> lane & 1) != 0) lanes[lane]->state = State::kReady;
  }
}

/// The threads of a warp by lane; null where it is not full.
std::array<Launch::Thread*, kWarp> Launch::lanes_of(std::uint32_t warp) const {
  std::array<Thread*, kWarp> lanes{};
  const std::size_t first = std::size_t{warp} * kWarp;
  std::copy_n(by_index_.begin() + static_cast<std::ptrdiff_t>(first),
              std::min<std::size_t>(kWarp, by_index_.size() - first), lanes.begin());
  return lanes;
}

/// shfl.sync.MODE.b32 d|p, a, b, c, mask: c is the clamp in its low bits, and which lanes form a segment above them.
void Launch::shuffle(std::uint32_t warp, std::uint32_t mask, const Instruction& instruction) {
  std::uint64_t values[kWarp] = {};
  const std::array<Thread*, kWarp> lanes = lanes_of(warp);
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane] != nullptr && (mask >> lane & 1) != 0) values[lane] = value(*lanes[lane], instruction.in[0]);
  }
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane] == nullptr || (mask >> lane & 1) == 0) continue;
    Thread& thread = *lanes[lane];
    const auto by = static_cast<std::uint32_t>(value(thread, instruction.in[1]) & 31);
    const auto control = static_cast<std::uint32_t>(value(thread, instruction.in[2]));
    const std::uint32_t segment = control >> 8 & 31;
    const std::uint32_t clamp = control & 31;
    const std::uint32_t last = (lane & segment) | (clamp & ~segment);
    const std::uint32_t first = lane & segment;
    std::int64_t from = 0;
    bool inside = false;
    if (instruction.mode == "up") {
      from = std::int64_t{lane} - by;
      inside = from >= last;
    } else if (instruction.mode == "down") {
      from = std::int64_t{lane} + by;
      inside = from <= last;
    } else if (instruction.mode == "bfly") {
      from = lane ^ by;
      inside = from <= last;
    } else {
      from = first | (by & ~segment);
      inside = from <= last;
    }
    if (!inside) from = lane;
    if ((mask >> from & 1) == 0 || lanes[from] == nullptr)
      stop(thread, instruction, "takes its value from lane " + std::to_string(from) + ", which its mask does not name");
    set(thread, instruction.out[0], values[from]);
    if (instruction.out.size() > 1) set(thread, instruction.out[1], inside ? 1 : 0);
  }
}

/// vote.sync.MODE d, p, mask; match.any.sync.bN d, a, mask.
void Launch::vote(std::uint32_t warp, std::uint32_t mask, const Instruction& instruction) {
  const std::array<Thread*, kWarp> lanes = lanes_of(warp);
  const auto takes_part = [&](std::uint32_t lane) { return lanes[lane] != nullptr && (mask >> lane & 1) != 0; };
  std::uint32_t ballot = 0;
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    if (takes_part(lane) && (value(*lanes[lane], instruction.in[0]) & 1) != 0) ballot |= 1U << lane;
  }
  std::uint32_t named = mask;
  if (const std::size_t left = threads_.size() - std::size_t{warp} * kWarp; left < kWarp) named &= (1U << left) - 1;
  std::array<std::uint64_t, kWarp> results{};
  for (std::uint32_t own = 0; own < kWarp; ++own) {
    if (!takes_part(own)) continue;
    std::uint64_t result = ballot;
    if (instruction.kind == Kind::kMatch) {
      result = 0;
      for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
        if (takes_part(lane) && value(*lanes[lane], instruction.in[0]) == value(*lanes[own], instruction.in[0]))
          result |= 1U << lane;
      }
    }
    if (instruction.mode == "any" && instruction.kind == Kind::kVote) result = ballot != 0;
    if (instruction.mode == "all") result = ballot == named;
    if (instruction.mode == "uni") result = ballot == named || ballot == 0;
    results[own] = result;
  }
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    if (takes_part(lane)) set(*lanes[lane], instruction.out[0], results[lane]);
  }
}

}  // namespace tenon::emulated_cuda::ptx
