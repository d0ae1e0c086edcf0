// Teams: the threads that work on one line together, and what they do with a value of each: put all of them together,
// or put together those up to each.
//
// A team is a power of two of threads side by side, up to a warp, or a whole block of kThreads. Blocks have kThreads
// threads, and all of them come to every function here, also those without a line.
#pragma once

#include "kernels/dtypes.cuh"
#include "kernels/launch.h"

#include <cstring>

namespace tenon::cuda {

inline constexpr int kWarps = kThreads / kWarp;  ///< of a block
inline constexpr unsigned kWholeWarp = 0xffffffffu;

/// The smallest power of two that is at least n.
constexpr int power_of_two(i64 n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

/// Lanes for lines of `length`. `across`: neighbouring lines lie closer together than neighbours on a line; then a
/// thread takes a line by itself, and a warp reads 32 of them side by side.
constexpr int lanes_for(i64 length, i64 lines, bool across) {
  if (across && (length <= kWarp || lines >= 4096)) return 1;
  if (length > 1024) return kThreads;
  return power_of_two(length / 4 < kWarp ? length / 4 : kWarp);
}
inline LaunchShape team_shape(i64 lines, int lanes, std::source_location where = std::source_location::current()) {
  return {.grid = static_cast<unsigned>(ceil_div(lines * lanes, kThreads)), .block = kThreads, .where = where};
}

#if defined(__CUDACC__)

/// The words of a value, which shuffles move one by one.
template <class A>
struct Words {
  static_assert(sizeof(A) % 4 == 0, "a value that goes from lane to lane consists of whole words");
  u32 word[sizeof(A) / 4];
  __device__ explicit Words(const A& value) { memcpy(word, &value, sizeof(A)); }
  __device__ A value() const {
    A result;
    memcpy(&result, word, sizeof(A));
    return result;
  }
};

template <class A>
__device__ A shuffle_down(const A& value, int by) {
  Words<A> words(value);
  for (u32& word : words.word) word = __shfl_down_sync(kWholeWarp, word, by);
  return words.value();
}
/// From the lane `by` below in a segment of `width`; the lanes without one keep their own.
template <class A>
__device__ A shuffle_up(const A& value, int by, int width) {
  Words<A> words(value);
  for (u32& word : words.word) word = __shfl_up_sync(kWholeWarp, word, by, width);
  return words.value();
}
/// From lane `lane` of each segment of `width`.
template <class A>
__device__ A shuffle_from(const A& value, int lane, int width) {
  Words<A> words(value);
  for (u32& word : words.word) word = __shfl_sync(kWholeWarp, word, lane, width);
  return words.value();
}

/// The place of this thread.
struct Team {
  int lanes, lane;
  i64 line;
  __device__ explicit Team(int size)
      : lanes(size),
        lane(static_cast<int>(threadIdx.x) & (size - 1)),
        line((static_cast<i64>(blockIdx.x) * kThreads + threadIdx.x) / static_cast<u32>(size)) {}
  __device__ int width() const { return lanes < kWarp ? lanes : kWarp; }
};

/// combine(…) of the values of all lanes, for each of them.
template <class A, class Combine>
__device__ A team_reduce(const Team& team, A value, A (&shared)[kWarps], const Combine& combine) {
  for (int step = team.width() / 2; step > 0; step /= 2) value = combine(value, shuffle_down(value, step));
  if (team.lanes > kWarp) {
    __syncthreads();  // what was there before has been read
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = shared[threadIdx.x % kWarps];
    for (int step = kWarps / 2; step > 0; step /= 2) value = combine(value, shuffle_down(value, step));
  }
  return shuffle_from(value, 0, team.width());
}

/// combine(…) of the values of the lanes up to this one, which must be associative; `last` gets that of the last lane.
template <class A, class Combine>
__device__ A team_scan(const Team& team, A value, A (&shared)[kWarps], A& last, const Combine& combine) {
  const int width = team.width();
  const int lane = team.lane % width;
  for (int step = 1; step < width; step *= 2) {
    const A before = shuffle_up(value, step, width);
    if (lane >= step) value = combine(before, value);
  }
  last = shuffle_from(value, width - 1, width);
  if (team.lanes > kWarp) {
    const int warp = team.lane / kWarp;
    __syncthreads();  // what was there before has been read
    if (lane == kWarp - 1) shared[warp] = value;
    __syncthreads();
    A before = shared[0];
    for (int w = 1; w < warp; ++w) before = combine(before, shared[w]);
    last = before;
    for (int w = warp < 1 ? 1 : warp; w < kWarps; ++w) last = combine(last, shared[w]);
    if (warp > 0) value = combine(before, value);
  }
  return value;
}

#endif  // __CUDACC__

}  // namespace tenon::cuda
