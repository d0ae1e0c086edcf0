// sort, topk.
//
// Elements are ordered by keys: unsigned numbers in the order wanted, where nan is above all and zeros are alike. Equal
// keys keep the order of their positions. Lines that fit a block are sorted in its shared memory. Longer ones are all
// sorted together, the line in front of the key; for the best k of a long line, a block selects them first.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/lines.cuh"
#include "kernels/reduce/sort_pairs.h"
#include "kernels/reduce/team.cuh"

#include <bit>

namespace tenon::cuda {
namespace {

constexpr int kBlockSort = 1024;  ///< most elements that a block sorts

template <class Bits>
__device__ u64 key_of_float(Bits bits, Bits infinity) {
  constexpr Bits kSign = Bits(1) << (sizeof(Bits) * 8 - 1);
  const Bits magnitude = bits & static_cast<Bits>(~kSign);
  if (magnitude > infinity) return static_cast<Bits>(~Bits(0));
  if (magnitude == 0) return kSign;
  return bits & kSign ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
}

struct Order {
  Dtype dtype;
  bool descending;

  int bits() const { return static_cast<int>(size_of(dtype)) * 8; }

  __device__ u64 ascending_key(const char* at) const {
    switch (dtype) {
      case Dtype::kBool:
      case Dtype::kUInt8:
        return *reinterpret_cast<const u8*>(at);
      case Dtype::kInt8:
        return *reinterpret_cast<const u8*>(at) ^ u64 { 0x80 };
      case Dtype::kInt16:
        return *reinterpret_cast<const u16*>(at) ^ u64 { 0x8000 };
      case Dtype::kInt32:
        return *reinterpret_cast<const u32*>(at) ^ u64 { 0x80000000 };
      case Dtype::kInt64:
        return *reinterpret_cast<const u64*>(at) ^ u64 { 1 } << 63;
      case Dtype::kFloat16:
        return key_of_float<u16>(*reinterpret_cast<const u16*>(at), 0x7c00);
      case Dtype::kBFloat16:
        return key_of_float<u16>(*reinterpret_cast<const u16*>(at), 0x7f80);
      case Dtype::kFloat32:
        return key_of_float<u32>(*reinterpret_cast<const u32*>(at), 0x7f800000);
      case Dtype::kFloat64:
        return key_of_float<u64>(*reinterpret_cast<const u64*>(at), u64{0x7ff} << 52);
    }
    return 0;
  }
  __device__ u64 key(const char* at) const {
    const u64 ascending = ascending_key(at);
    return descending ? ascending ^ (~u64{0} >> (64 - size_of_element() * 8)) : ascending;
  }
  __device__ int size_of_element() const {
    return dtype == Dtype::kInt64 || dtype == Dtype::kFloat64                                ? 8
           : dtype == Dtype::kInt32 || dtype == Dtype::kFloat32                              ? 4
           : dtype == Dtype::kInt16 || dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16 ? 2
                                                                                             : 1;
  }
};

/// What is sorted: whole lines of x, or of each line some elements, whose keys and positions a selection has left.
struct Candidates {
  i64 length;                      ///< of a line
  const u64* keys = nullptr;       ///< null: x itself
  const i64* positions = nullptr;  ///< of candidate c of line l at l * length + c, in ascending order
};

struct Job {
  Lines<3> lines;  ///< values, indices, x
  Order order;
  i64 wanted;  ///< how many of each line

  __device__ u64 key(const Candidates& from, i64 line, i64 c, const char* x) const {
    return from.keys ? from.keys[line * from.length + c] : order.key(x + c * lines.strides[2]);
  }
  /// Writes the element that comes `rank`th.
  __device__ void write(const Candidates& from, i64 line, i64 rank, i64 c, char* const (&begin)[3]) const {
    const i64 position = from.positions ? from.positions[line * from.length + c] : c;
    const char* source = begin[2] + position * lines.strides[2];
    char* target = begin[0] + rank * lines.strides[0];
    *element<i64>(begin[1], rank * lines.strides[1]) = position;
    switch (order.size_of_element()) {
      case 1:
        *target = *source;
        break;
      case 2:
        *reinterpret_cast<u16*>(target) = *reinterpret_cast<const u16*>(source);
        break;
      case 4:
        *reinterpret_cast<u32*>(target) = *reinterpret_cast<const u32*>(source);
        break;
      default:
        *reinterpret_cast<u64*>(target) = *reinterpret_cast<const u64*>(source);
    }
  }
};

/// A bitonic sort (Batcher 1968) of `size` keys, a power of two: a block for each line.
__global__ void __launch_bounds__(kThreads) block_sort_kernel(Job job, Candidates from, int size) {
  __shared__ u64 keys[kBlockSort];
  __shared__ u16 places[kBlockSort];  // where each key came from; it decides between equals
  const i64 line = blockIdx.x;
  const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  char* begin[3];
  job.lines.locate(line, begin);
  for (int i = t; i < size; i += threads) {
    keys[i] = i < from.length ? job.key(from, line, i, begin[2]) : ~u64{0};
    places[i] = static_cast<u16>(i);
  }
  for (int span = 2; span <= size; span *= 2) {
    for (int apart = span / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int c = t; c < size / 2; c += threads) {
        const int a = 2 * c - (c & (apart - 1)), b = a + apart;
        const bool after = keys[a] > keys[b] || (keys[a] == keys[b] && places[a] > places[b]);
        if (after != ((a & span) == 0)) continue;
        const u64 key = keys[a];
        keys[a] = keys[b];
        keys[b] = key;
        const u16 place = places[a];
        places[a] = places[b];
        places[b] = place;
      }
    }
  }
  __syncthreads();
  for (int i = t; i < job.wanted; i += threads) job.write(from, line, i, places[i], begin);
}

/// keys[i] = that of candidate i over all lines, the line above the lowest `bits` of it where there is room.
__global__ void __launch_bounds__(kThreads) keys_kernel(Job job, Candidates from, Pairs pairs, bool with_line) {
  const int bits = job.order.size_of_element() * 8;
  for (i64 i = first_item(); i < pairs.count; i += all_items()) {
    const i64 line = i / from.length;
    char* begin[3];
    job.lines.locate(line, begin);
    const u64 key = job.key(from, line, i % from.length, begin[2]);
    pairs.keys[i] = with_line ? static_cast<u64>(line) << bits | key : key;
    pairs.values[i] = i;
  }
}
__global__ void __launch_bounds__(kThreads) lines_as_keys_kernel(Pairs pairs, i64 length) {
  for (i64 i = first_item(); i < pairs.count; i += all_items()) {
    pairs.keys[i] = static_cast<u64>(pairs.values[i] / length);
  }
}
__global__ void __launch_bounds__(kThreads) write_kernel(Job job, Candidates from, Pairs sorted) {
  for (i64 i = first_item(); i < job.lines.nest.total * job.wanted; i += all_items()) {
    const i64 line = i / job.wanted, rank = i % job.wanted;
    char* begin[3];
    job.lines.locate(line, begin);
    job.write(from, line, rank, sorted.values[line * from.length + rank] - line * from.length, begin);
  }
}

void sort_all(KernelContext& context, const Job& job, const Candidates& from) {
  const i64 lines = job.lines.nest.total;
  if (from.length <= kBlockSort) {
    const int size = power_of_two(from.length);
    const int threads = size / 2 < kWarp ? kWarp : size / 2 < kThreads ? size / 2 : kThreads;
    launch(context, {.grid = static_cast<unsigned>(lines), .block = static_cast<unsigned>(threads)}, block_sort_kernel,
           job, from, size);
    return;
  }
  Pairs pairs = make_pairs(context, lines * from.length);
  const LaunchShape shape{.grid = blocks_for(pairs.count), .block = kThreads};
  const int bits = job.order.bits();
  const int line_bits = static_cast<int>(std::bit_width(static_cast<u64>(lines - 1)));
  const bool with_line = bits + line_bits <= 64;
  launch(context, shape, keys_kernel, job, from, pairs, with_line && line_bits > 0);
  pairs = sort_pairs(context, pairs, with_line ? bits + line_bits : bits);
  if (!with_line) {
    launch(context, shape, lines_as_keys_kernel, pairs, from.length);
    pairs = sort_pairs(context, pairs, line_bits);
  }
  launch(context, {.grid = blocks_for(lines * job.wanted), .block = kThreads}, write_kernel, job, from, pairs);
}

/// The best `wanted` of each line in the order of their positions: a block finds the key of the last of them, a digit
/// at a time, and takes what is better and the first of its equals.
__global__ void __launch_bounds__(kThreads) select_kernel(Job job, u64* keys, i64* positions) {
  constexpr int kDigits = 256;
  static_assert(kDigits == kThreads);
  __shared__ unsigned long long counts[kDigits];
  __shared__ u64 chosen;
  __shared__ u32 totals[kWarps];
  __shared__ i64 rest;
  const Team team(kThreads);
  const i64 length = job.lines.length;
  char* begin[3];
  job.lines.locate(team.line, begin);
  const auto key = [&](i64 i) { return job.order.key(begin[2] + i * job.lines.strides[2]); };
  u64 found = 0;          // the digits that are known
  i64 left = job.wanted;  // how many are wanted of those with these digits
  const int bits = job.order.size_of_element() * 8;
  for (int shift = bits - 8; shift >= 0; shift -= 8) {
    counts[team.lane] = 0;
    __syncthreads();
    const u64 known = shift + 8 < 64 ? ~u64{0} << (shift + 8) : 0;
    for (i64 i = team.lane; i < length; i += kThreads) {
      const u64 k = key(i);
      if ((k & known) == found) atomicAdd(&counts[k >> shift & (kDigits - 1)], 1ull);
    }
    __syncthreads();
    if (team.lane == 0) {
      int digit = 0;
      for (; left > static_cast<i64>(counts[digit]); ++digit) left -= static_cast<i64>(counts[digit]);
      chosen = found | static_cast<u64>(digit) << shift;
      rest = left;
    }
    __syncthreads();
    found = chosen;
    left = rest;
  }
  i64 better = 0, equal = 0;  // before this round of elements
  for (i64 first = 0; first < length; first += kThreads) {
    const i64 i = first + team.lane;
    const u64 k = i < length ? key(i) : ~u64{0};
    const bool is_better = i < length && k < found, is_equal = i < length && k == found;
    u32 all;
    const u32 own = u32{is_better} | u32{is_equal} << 16;
    const u32 before = team_scan(team, own, totals, all, [](u32 a, u32 b) { return a + b; }) - own;
    const i64 equal_before = equal + (before >> 16);
    if (is_better || (is_equal && equal_before < left)) {
      const i64 to = team.line * job.wanted + better + (before & 0xffff) + min(equal_before, left);
      keys[to] = k;
      positions[to] = i;
    }
    better += all & 0xffff;
    equal += all >> 16;
  }
}

void run(KernelContext& context, Views outputs, const TensorView& x, int dim, i64 wanted, bool descending) {
  const Job job{make_lines<3>({&outputs[0], &outputs[1], &x}, dim), {x.dtype, descending}, wanted};
  const i64 lines = job.lines.nest.total, length = job.lines.length;
  if (job.lines.empty() || wanted == 0) return;
  // A block that selects goes over its line nine times; few lines of millions are sorted sooner by all blocks.
  if (length <= kBlockSort || wanted * 4 > length || (lines < 32 && length > i64{1} << 20)) {
    return sort_all(context, job, {length});
  }
  const Pairs best = make_pairs(context, lines * wanted);
  launch(context, team_shape(lines, kThreads), select_kernel, job, best.keys, best.values);
  sort_all(context, job, {wanted, best.keys, best.values});
}

void sort(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const SortAttributes*>(attributes);
  const TensorView& x = inputs[0];
  run(context, outputs, x, a.dim, x.rank == 0 ? 1 : x.sizes[a.dim], a.descending);
}

void topk(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const TopkAttributes*>(attributes);
  const TensorView& x = inputs[0];
  const i64 length = x.rank == 0 ? 1 : x.sizes[a.dim];
  if (a.k > length) {
    refuse("topk: k (%lld) is larger than dimension %d, which has %lld elements", static_cast<long long>(a.k), a.dim,
           static_cast<long long>(length));
  }
  run(context, outputs, x, a.dim, a.k, a.largest);
}

}  // namespace

void add_sorting(const KernelSink& sink) {
  sink.add(sink.host, "sort", &sort);
  sink.add(sink.host, "topk", &topk);
}

}  // namespace tenon::cuda
