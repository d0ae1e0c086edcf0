// Attention to keys and values where they lie, page by page: nothing is copied together.
//
// Of few queries (the symbol that comes next) a block has a chunk of keys, and up to four rows that see the same head
// of them: scores of the chunk, their softmax, the sum of its values. Where there are several chunks, a second kernel
// adds them up in their order. Of a prompt's many queries tiles of scores are made as in attention.cu.
#include <tenon/kernel/attributes/paged_attention.h>

#include "kernels/launch.h"
#include "kernels/linalg/tiles.cuh"
#include "kernels/nn/row_softmax.cuh"
#include "kernels/offsets.cuh"
#include "kernels/reduce/packed_lines.cuh"

#include <algorithm>

namespace tenon::cuda {
namespace {

using namespace tiles;

constexpr int kFewPages = 128;     // whose addresses are a kernel's parameter
constexpr i64 kFewQueries = 8;     // for which a tile would be empty
constexpr int kRows = 4;           // of a block of few queries
constexpr int kChunk = kThreads;   // keys of a block
constexpr int kMostPackets = 256;  // of a row, that threads can have one each of

/// Where keys and values are: pages of (2, room, shared, depth).
struct Pages {
  const unsigned long long* table;  ///< of addresses; null: they are in `few`
  unsigned long long few[kFewPages];
  Divider room;
  i64 shared, depth;

#if defined(__CUDACC__)
  /// The row of a position and head in keys (0) or values (1).
  template <class E>
  __device__ const E* row(int which, i64 position, i64 head) const {
    const u32 page = room.quotient32(static_cast<u32>(position));
    const auto size = static_cast<i64>(room.divisor());
    const u64 data = table != nullptr ? __ldg(table + page) : few[page];
    return reinterpret_cast<const E*>(data) + ((which * size + position - page * size) * shared + head) * depth;
  }
#endif
};

struct PagedProblem {
  i64 count, heads, group, length;  ///< queries, their heads, those that share a head of keys; positions
  double scale;
  Pages pages;

#if defined(__CUDACC__)
  __device__ i64 seen_by(i64 query) const { return length - count + query + 1; }
#endif
};

struct PagesOfTable {
  unsigned long long pages[kFewPages];
};
__global__ void fill_table(PagesOfTable part, unsigned long long* table, int count) {
  const int self = static_cast<int>(threadIdx.x);
  if (self < count) table[self] = part.pages[self];
}

/// The addresses go as parameters, which a captured graph keeps; of many pages into a table in scratch.
void set_pages(KernelContext& context, Pages& pages, Views views) {
  const auto address = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(views[i].data); };
  const std::size_t count = views.size();
  pages.table = nullptr;
  if (count <= kFewPages) {
    for (std::size_t i = 0; i < count; ++i) pages.few[i] = address(i);
    return;
  }
  auto* const table = static_cast<unsigned long long*>(context.scratch(count * sizeof(unsigned long long)));
  for (std::size_t first = 0; first < count; first += kFewPages) {
    PagesOfTable part{};
    const std::size_t there = std::min<std::size_t>(kFewPages, count - first);
    for (std::size_t i = 0; i < there; ++i) part.pages[i] = address(first + i);
    launch(context, {.block = kFewPages}, fill_table, part, table + first, static_cast<int>(there));
  }
  pages.table = table;
}

/// Positions from `first` on, as tiles take them.
template <class E>
struct PagedRows {
  using Element = E;
  __device__ const E* at(int row) const { return pages->row<E>(which, first + row, head) + column; }
  const Pages* pages;
  int which;
  i64 first, head;
  int column, count;
};

template <class E>
__global__ void __launch_bounds__(kThreads) tiled_kernel(PagedProblem p, const E* q, E* y) {
  using T = Compute<E>;
  constexpr T kNever = RowSoftmax<T>::kNever;
  __shared__ Slice<T> left, right;
  __shared__ Square<T> weights;
  __shared__ T factors[kTile<T>];
  const i64 tiles = (p.count + kTile<T> - 1) / kTile<T>;
  const i64 head = blockIdx.x / tiles, key_head = head / p.group, first = blockIdx.x % tiles * kTile<T>;
  const int first_column = static_cast<int>(blockIdx.y) * kTile<T>, depth = static_cast<int>(p.pages.depth);
  const int row = own_row<T>(), column = own_column<T>();
  const int line = static_cast<int>(threadIdx.x) / kParts<T>, part = static_cast<int>(threadIdx.x) % kParts<T>;
  const i64 step = p.heads * depth;
  const auto queries = static_cast<int>(min(i64{kTile<T>}, p.count - first));
  const Rows<E> of_q{q + first * step + head * depth, step, queries};
  const i64 keys = p.seen_by(first + queries - 1);  // that any row sees

  RowSoftmax<T> softmax;  // of the row `line`
  Sums<T> out;
  clear<T>(out);
  for (i64 key = 0; key < keys; key += kTile<T>) {
    const auto there = static_cast<int>(min(i64{kTile<T>}, keys - key));
    Sums<T> sums;
    multiply_rows<T>(sums, of_q, PagedRows<E>{&p.pages, 0, key, key_head, 0, there}, depth, left, right);
#pragma unroll
    for (int i = 0; i < kSide<T>; ++i) {
#pragma unroll
      for (int j = 0; j < kSide<T>; ++j) {
        const bool seen = row + i < queries && key + column + j < p.seen_by(first + row + i);
        weights.of[row + i][column + j] = seen ? rounded_product(sums[i][j], static_cast<T>(p.scale)) : kNever;
      }
    }
    __syncthreads();
    const T factor = softmax.add(&weights.of[line][part * RowSoftmax<T>::kOwn]);
    if (part == 0) factors[line] = factor;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kSide<T>; ++i) {
#pragma unroll
      for (int j = 0; j < kSide<T>; ++j) out[i][j] *= factors[row + i];
    }
    add_square<false, T>(out, weights, PagedRows<E>{&p.pages, 1, key, key_head, first_column, there},
                         depth - first_column, right);
    __syncthreads();
  }
  if (part == 0) factors[line] = softmax.most == kNever ? T(0) : T(1) / softmax.total;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kSide<T>; ++i) {
    if (row + i >= queries) continue;
    E* const to = y + (first + row + i) * step + head * depth + first_column + column;
#pragma unroll
    for (int j = 0; j < kSide<T>; ++j) {
      if (first_column + column + j < depth) to[j] = store_as<E>(out[i][j] * factors[row + i]);
    }
  }
}

/// Of one row and chunk of keys: its largest score, and the sum of what softmax makes of all of them.
template <class T>
struct ChunkState {
  T most, total;
};

template <class T>
__device__ T larger_or_nan(T a, T b) {
  return a >= b || a != a ? a : b;
}

/// What a warp has of a row: scores become weights.
template <class T>
__device__ ChunkState<T> soften(T (&scores)[kChunk]) {
  constexpr T kNever = RowSoftmax<T>::kNever;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  T most = kNever, total = 0;
  for (int j = lane; j < kChunk; j += kWarp) most = larger_or_nan(scores[j], most);
  for (int step = kWarp / 2; step > 0; step /= 2) most = larger_or_nan(most, __shfl_xor_sync(kWholeWarp, most, step));
  for (int j = lane; j < kChunk; j += kWarp) {
    scores[j] = most == kNever ? T(0) : exp(scores[j] - most);
    total += scores[j];
  }
  for (int step = kWarp / 2; step > 0; step /= 2) total += __shfl_xor_sync(kWholeWarp, total, step);
  return {most, total};
}

/// What a block of few queries has: rows that see a head of keys, and a chunk of these. Row r sees with head r % group
/// of those that share the keys, as query r / group.
struct FewRows {
  __device__ FewRows(const PagedProblem& p, i64 chunks) {
    const i64 all = p.count * p.group, blocks = (all + kRows - 1) / kRows;
    chunk = blockIdx.x % chunks;
    first = blockIdx.x / chunks % blocks * kRows;
    key_head = blockIdx.x / chunks / blocks;
    rows = static_cast<int>(min(i64{kRows}, all - first));
    begin = chunk * kChunk;
    keys = static_cast<int>(max(i64{0}, min(i64{kChunk}, seen_by(p, rows - 1) - begin)));
  }
  __device__ i64 of_y(const PagedProblem& p, int r) const {
    return (first + r) / p.group * p.heads + key_head * p.group + (first + r) % p.group;
  }
  __device__ i64 seen_by(const PagedProblem& p, int r) const { return p.seen_by((first + r) / p.group); }

  i64 chunk, first, key_head, begin;
  int rows, keys;
};

/// A team of a warp's lanes has a key at a time.
template <class E, class T>
__device__ void score_chunk(const PagedProblem& p, const FewRows& few, const T* queries, T (&scores)[kRows][kChunk]) {
  constexpr int kCount = kPacketOf<E>;
  const int self = static_cast<int>(threadIdx.x), depth = static_cast<int>(p.pages.depth), packets = depth / kCount;
  int lanes = 1;
  while (lanes < packets && lanes < kWarp) lanes *= 2;
  for (int j = self / lanes; j < kChunk; j += kThreads / lanes) {
    T products[kRows] = {};
    if (j < few.keys) {
      const E* const key = p.pages.row<E>(0, few.begin + j, few.key_head);
      for (int packet = self % lanes; packet < packets; packet += lanes) {
        T numbers[kCount];
        read(key + packet * kCount, numbers);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (r >= few.rows) break;
#pragma unroll
          for (int i = 0; i < kCount; ++i) products[r] += numbers[i] * queries[r * depth + packet * kCount + i];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      for (int step = lanes / 2; step > 0; step /= 2) products[r] += __shfl_xor_sync(kWholeWarp, products[r], step);
      const bool seen = r < few.rows && few.begin + j < few.seen_by(p, r);
      if (self % lanes == 0)
        scores[r][j] = seen ? rounded_product(products[r], static_cast<T>(p.scale)) : RowSoftmax<T>::kNever;
    }
  }
}

/// What this thread has of the sums: of the columns of a packet, and of some of the keys.
template <class E, class T>
__device__ void sum_values(const PagedProblem& p, const FewRows& few, const T (&scores)[kRows][kChunk],
                           T (&own)[kRows][kPacketOf<E>]) {
  constexpr int kCount = kPacketOf<E>;
  const int self = static_cast<int>(threadIdx.x), packets = static_cast<int>(p.pages.depth) / kCount;
  const int parts = kThreads / packets, part = self / packets, packet = self % packets;
  for (int j = part; j < few.keys && part < parts; j += parts) {
    T numbers[kCount];
    read(p.pages.row<E>(1, few.begin + j, few.key_head) + packet * kCount, numbers);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) own[r][i] += scores[r][j] * numbers[i];
    }
  }
}

/// sums: of chunks, (row of y, chunk, depth), and states (row of y, chunk); null: there is one chunk, and y is written.
/// Dynamic shared memory: the rows of q.
template <class E>
__global__ void __launch_bounds__(kThreads)
    few_queries_kernel(PagedProblem p, const E* q, E* y, Compute<E>* sums, ChunkState<Compute<E>>* states, i64 chunks) {
  using T = Compute<E>;
  constexpr int kCount = kPacketOf<E>;
  extern __shared__ unsigned char dynamic[];
  T* const queries = reinterpret_cast<T*>(dynamic);
  __shared__ T scores[kRows][kChunk];
  __shared__ T parts_of_sum[kThreads * kCount];
  __shared__ ChunkState<T> shared_states[kRows];
  const FewRows few(p, chunks);
  const int self = static_cast<int>(threadIdx.x), depth = static_cast<int>(p.pages.depth);
  for (int t = self; t < few.rows * depth; t += kThreads)
    queries[t] = load_as<E>(q[few.of_y(p, t / depth) * depth + t % depth]);
  __syncthreads();
  score_chunk<E>(p, few, queries, scores);
  __syncthreads();
  if (self / kWarp < kRows) {
    const ChunkState<T> state = soften(scores[self / kWarp]);
    if (self % kWarp == 0) shared_states[self / kWarp] = state;
  }
  __syncthreads();
  T own[kRows][kCount] = {};
  sum_values<E>(p, few, scores, own);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= few.rows) break;
#pragma unroll
    for (int i = 0; i < kCount; ++i) parts_of_sum[self * kCount + i] = own[r][i];
    __syncthreads();
    const i64 row = few.of_y(p, r);
    const ChunkState<T> state = shared_states[r];
    for (int c = self; c < depth; c += kThreads) {
      T sum = 0;
      for (int part = 0; part < kThreads * kCount / depth; ++part) sum += parts_of_sum[part * depth + c];
      if (sums != nullptr) {
        sums[(row * chunks + few.chunk) * depth + c] = sum;
      } else {
        y[row * depth + c] = store_as<E>(state.total == T(0) ? T(0) : sum / state.total);
      }
    }
    if (sums != nullptr && self == 0) states[row * chunks + few.chunk] = state;
    __syncthreads();
  }
}

/// A row of y a block: the chunks' sums, each by what its softmax is of the whole row's.
template <class E>
__global__ void __launch_bounds__(kThreads)
    merge_kernel(E* y, const Compute<E>* sums, const ChunkState<Compute<E>>* states, i64 chunks, int depth) {
  using T = Compute<E>;
  const i64 row = blockIdx.x;
  const ChunkState<T>* const of_row = states + row * chunks;
  T most = RowSoftmax<T>::kNever;
  for (i64 chunk = 0; chunk < chunks; ++chunk) most = larger_or_nan(most, of_row[chunk].most);
  for (int c = static_cast<int>(threadIdx.x); c < depth; c += kThreads) {
    T total = 0, sum = 0;
    for (i64 chunk = 0; chunk < chunks; ++chunk) {
      const T of_chunk = of_row[chunk].most;
      const T factor = of_chunk == RowSoftmax<T>::kNever ? T(0) : exp(of_chunk - most);
      total += factor * of_row[chunk].total;
      sum += factor * sums[(row * chunks + chunk) * depth + c];
    }
    y[row * depth + c] = store_as<E>(total == T(0) ? T(0) : sum / total);
  }
}

template <class E>
void attend_to_few(KernelContext& context, const PagedProblem& p, const TensorView& q, const TensorView& y) {
  using T = Compute<E>;
  const i64 chunks = ceil_div(p.length, kChunk), rows = p.count * p.heads, depth = p.pages.depth;
  T* sums = nullptr;
  ChunkState<T>* states = nullptr;
  if (chunks > 1) {
    sums = static_cast<T*>(context.scratch(static_cast<std::size_t>(rows * chunks * depth) * sizeof(T)));
    states =
        static_cast<ChunkState<T>*>(context.scratch(static_cast<std::size_t>(rows * chunks) * sizeof(ChunkState<T>)));
  }
  const i64 blocks = chunks * ceil_div(p.count * p.group, kRows) * p.pages.shared;
  launch(context,
         {.grid = static_cast<unsigned>(blocks),
          .block = kThreads,
          .shared_bytes = static_cast<std::size_t>(kRows * depth) * sizeof(T)},
         few_queries_kernel<E>, p, q.as<const E>(), y.as<E>(), sums, states, chunks);
  if (chunks > 1)
    launch(context, {.grid = static_cast<unsigned>(rows), .block = kThreads}, merge_kernel<E>, y.as<E>(), sums, states,
           chunks, static_cast<int>(depth));
}

/// Whether rows are packets, which a block has threads for.
bool is_packed(const TensorView& q, Views pages) {
  const i64 bytes = q.sizes[2] * static_cast<i64>(size_of(q.dtype));
  const auto lies = [](const TensorView& view) { return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0; };
  return bytes % 16 == 0 && bytes / 16 <= kMostPackets && std::ranges::all_of(pages, lies);
}

void paged_attention(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const PagedAttentionAttributes*>(attributes);
  const TensorView &y = outputs[0], &q = inputs[0];
  if (y.element_count() == 0) return;
  const Views pages = inputs.subspan(1);
  PagedProblem p{};
  p.count = q.sizes[0];
  p.heads = q.sizes[1];
  p.length = a.length;
  p.scale = a.scale;
  p.pages.room = Divider(static_cast<u64>(pages[0].sizes[1]));
  p.pages.shared = pages[0].sizes[2];
  p.pages.depth = q.sizes[2];
  p.group = p.heads / p.pages.shared;
  floats_only("paged_attention", q.dtype, [&]<class E>(Type<E>) {
    set_pages(context, p.pages, pages);
    if (p.count <= kFewQueries && is_packed(q, pages)) return attend_to_few<E>(context, p, q, y);
    constexpr i64 kSize = kTile<Compute<E>>;
    const dim3 grid(static_cast<unsigned>(p.heads * ceil_div(p.count, kSize)),
                    static_cast<unsigned>(ceil_div(p.pages.depth, kSize)));
    launch(context, {.grid = grid, .block = kThreads}, tiled_kernel<E>, p, q.as<const E>(), y.as<E>());
  });
}

}  // namespace

void add_paged_attention(const KernelSink& sink) { sink.add(sink.host, "paged_attention", &paged_attention); }

}  // namespace tenon::cuda
