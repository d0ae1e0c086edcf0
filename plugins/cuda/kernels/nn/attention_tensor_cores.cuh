// What the kernels of attention on tensor cores share: which rows a block owns, the tiles in shared memory that it
// reads beside them, and how a score is scaled and masked. The kernels, after Dao, "FlashAttention-2", 2023, are in
// attention_tensor_cores.cu (forward) and attention_tensor_cores_backward.cu.
//
// A block of four warps owns rows of the result, 16 a warp, and reads tiles of the other operands, of which the next is
// copied meanwhile. Scores and weights stay in registers: the block of sums that a product leaves is the left operand
// of the next one. Scores are in powers of two (times log2(e)), weights and their slopes are rounded to 16 bits before
// they are multiplied, everything else is float32.
#pragma once

#include "kernels/code.h"
#include "kernels/linalg/mma.cuh"
#include "kernels/nn/attention.cuh"

#include <algorithm>
#include <type_traits>

namespace tenon::cuda::attention_tiles {

using namespace mma;

inline constexpr int kTeam = 128;  // threads of a block
inline constexpr int kM = 1;       // blocks of 16 rows that a warp owns
inline constexpr int kRows = kTeam / kWarp * 16 * kM;
inline constexpr int kStreamed = 64;  // rows of a tile that is read; kernels with many sums use kPart of them at a time
inline constexpr int kStages = 2;     // tiles of an operand in shared memory
inline constexpr float kNever = -INFINITY;
inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

// Of a row of scores: what its softmax subtracts, in two steps and in powers of two, and what the slopes of its weights
// share.
struct alignas(16) RowState {
  float most, log_total, delta;
};

template <class E>
struct Side {
  Heads<E> heads;
  int width;
  bool packed;

  Side(const TensorView& v)
      : heads(v),
        width(static_cast<int>(v.sizes[3])),
        packed(v.sizes[3] % kPacket == 0 && heads.batch % kPacket == 0 && heads.head % kPacket == 0 &&
               heads.row % kPacket == 0 && reinterpret_cast<std::uintptr_t>(heads.data) % 16 == 0) {}
  __device__ Rows<E> rows(i64 b, i64 h, int first, int all) const {
    return {heads.at(b, h, first), heads.row, all - first, width, packed};
  }
};

// Which rows of which head this block owns.
struct Place {
  // Blocks with the most tiles to read begin first: `last_first` where those are the last rows.
  __device__ Place(int rows, i64 heads, bool last_first) {
    const u32 tiles = static_cast<u32>(rows + kRows - 1) / kRows, tile = blockIdx.x % tiles;
    head = static_cast<int>(blockIdx.x / tiles);
    b = head / static_cast<int>(heads);
    h = head % static_cast<int>(heads);
    first = static_cast<int>(last_first ? tiles - 1 - tile : tile) * kRows;
  }
  int head, b, h, first;
};

__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The scores of one head. kGeneral: with a mask, dropout, or a scale that is not positive.
template <class E, bool kGeneral>
struct Scores {
  __device__ Scores(const AttentionProblem& problem, const AttentionMask& m, int b, int h, int at)
      : p(problem),
        mask(m),
        head(at),
        length(static_cast<int>(problem.length)),
        keys(static_cast<int>(problem.keys)),
        scale(static_cast<float>(problem.scale) * kLog2E) {
    if constexpr (kGeneral) mask_base = b * m.strides[0] + h * m.strides[1];
  }
  /// Both may lie beyond the last.
  __device__ bool sees(int i, int j) const { return i < length && j < keys && (!p.causal || j <= i); }
  /// From the product of the rows of query i and key j.
  __device__ float of(int i, int j, float product) const {
    if (!sees(i, j)) return kNever;
    const float value = plain(product);
    if constexpr (kGeneral) {
      if (mask.data == nullptr) return value;
      const i64 at = mask_base + i * mask.strides[2] + j * mask.strides[3];
      if (mask.boolean) return static_cast<const std::uint8_t*>(mask.data)[at] != 0 ? value : kNever;
      return fmaf(load_as<E, float>(static_cast<const E*>(mask.data)[at]), kLog2E, value);
    }
    return value;
  }
  /// Without a mask. Not fused with what is added to it: a score is the same number wherever it is computed.
  __device__ float plain(float product) const { return __fmul_rn(product, scale); }
  __device__ bool dropped(PhiloxReader& words, int i, int j) const {
    return i < length && j < keys && words.word((head * p.length + i) * p.keys + j) < p.dropped_below;
  }
  const AttentionProblem& p;
  const AttentionMask& mask;
  i64 mask_base = 0;
  int head, length, keys;
  float scale;
};

// The row of this lane's sums[m][n][2 * r] among those of its block, and their column.
__device__ inline int own_row(int m, int r) { return 16 * m + 8 * r + lane() / 4; }
__device__ inline int own_column(int n) { return 8 * n + lane() % 4 * 2; }

// What is known of each row when some of its scores have been seen; `total` is of this lane's columns.
template <int kM>
struct Softmax {
  float most[kM][2], total[kM][2];
  float unit;  // what a score of 1 is in powers of two, not negative

  __device__ explicit Softmax(float u) : unit(u) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        most[m][r] = kNever;
        total[m][r] = 0;
      }
    }
  }
  // Of the four lanes that share a row.
  static __device__ float most_of_row(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
  }
  __device__ float total_of_row(int m, int r) const {
    const float pair = total[m][r] + __shfl_xor_sync(0xffffffffu, total[m][r], 1);
    return pair + __shfl_xor_sync(0xffffffffu, pair, 2);
  }
  // More scores become weights; `scaled(m, r, factor)` is told what the sums of the earlier ones are multiplied by.
  template <int kN, class F>
  __device__ void add(Sums (&scores)[kM][kN], const F& scaled) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float highest = most[m][r];
#pragma unroll
        for (int n = 0; n < kN; ++n) highest = fmaxf(highest, fmaxf(scores[m][n][2 * r], scores[m][n][2 * r + 1]));
        highest = most_of_row(highest);
        const float base = highest == kNever ? 0.0f : highest * unit;
        const float factor = exp2_of(most[m][r] * unit - base);
        float sum = 0;
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            scores[m][n][i] = exp2_of(scores[m][n][i] * unit - base);
            sum += scores[m][n][i];
          }
        }
        most[m][r] = highest;
        total[m][r] = total[m][r] * factor + sum;
        scaled(m, r, factor);
      }
    }
  }
};

// Shared memory of the kernels: `owned` tiles of kRows, then kStages times two tiles of kStreamed, then their states.
template <int kWidth>
inline constexpr int kStageBytes = 2 * kStreamed* Tile<kWidth>::kRowBytes;
template <int kWidth>
constexpr int shared_bytes(int owned) {
  return owned * kRows * Tile<kWidth>::kRowBytes + kStages * kStageBytes<kWidth>;
}
inline constexpr int kStateBytes = kStreamed * static_cast<int>(sizeof(RowState));

extern __shared__ __align__(128) unsigned char shared_memory[];

// A block that owns queries: where it is, and the tiles of keys and values that it reads. It keeps `kOwned` tiles of
// kRows, the queries first.
template <class E, int kWidth, int kOwned>
struct QueryBlock {
  __device__ QueryBlock(const AttentionProblem& p, const Side<const E>& k, const Side<const E>& v)
      : all_k(k),
        all_v(v),
        place(static_cast<int>(p.length), p.heads, p.causal),
        length(static_cast<int>(p.length)),
        all_keys(static_cast<int>(p.keys)),
        own(static_cast<int>(threadIdx.x) / kWarp * 16 * kM),
        first(place.first + own),
        keys(p.causal ? min(all_keys, place.first + kRows) : all_keys),
        tiles(shared_address(shared_memory)) {}
  __device__ Tile<kWidth> owned(int which) const { return {tiles + which * kRows * Tile<kWidth>::kRowBytes}; }
  // Operand 0 is keys, 1 values, of the tile that begins at `key`.
  __device__ Tile<kWidth> stage(int key, int operand) const {
    return {owned(kOwned).first + key / kStreamed % kStages * kStageBytes<kWidth> + operand * kStageBytes<kWidth> / 2};
  }
  __device__ void copy(int key) const {
    copy_rows<kStreamed, kTeam>(stage(key, 0), all_k.rows(place.b, place.h, key, all_keys));
    copy_rows<kStreamed, kTeam>(stage(key, 1), all_v.rows(place.b, place.h, key, all_keys));
  }
  const Side<const E>&all_k, &all_v;
  Place place;
  int length, all_keys;
  int own;    // the warp's first row in the tile
  int first;  // and in the head
  int keys;   // that any row sees
  u32 tiles;
};

// A kernel and its shared memory. Parts of tiles are as large as registers allow: on an H100 that was the fastest of
// 16, 32 and 64, and 16 rows a warp were faster than 32, of which fewer blocks are on a multiprocessor at a time.
template <class F>
struct Choice {
  F kernel;
  int shared_bytes;
};

template <class C>
LaunchShape shape_of(const C& choice, i64 rows, i64 heads) {
  return {.grid = static_cast<unsigned>(ceil_div(rows, kRows) * heads),
          .block = kTeam,
          .shared_bytes = static_cast<std::size_t>(choice.shared_bytes)};
}

inline constexpr i64 kMostRows = i64{1} << 30;  // their numbers, and those of a tile beyond them, are ints
inline constexpr int kMostWidth = 128;

/// f(Type<E>, width, general) with the narrowest width that holds both of the problem's.
template <class F>
bool chosen(Dtype dtype, const AttentionProblem& p, bool masked, const F& f) {
  if (dtype != Dtype::kFloat16 && dtype != Dtype::kBFloat16) return false;
  if (p.width == 0 || p.value_width == 0 || std::max(p.width, p.value_width) > kMostWidth) return false;
  if (p.length == 0 || p.keys == 0 || std::max(p.length, p.keys) > kMostRows) return false;
  const auto with_width = [&]<class E>(Type<E> type) {
    const auto with_general = [&]<int kWidth>(std::integral_constant<int, kWidth> width) {
      return masked || p.drops || !(p.scale > 0) ? f(type, width, std::true_type{}) : f(type, width, std::false_type{});
    };
    return std::max(p.width, p.value_width) <= 64 ? with_general(std::integral_constant<int, 64>{})
                                                  : with_general(std::integral_constant<int, 128>{});
  };
  return dtype == Dtype::kFloat16 ? with_width(Type<F16>{}) : with_width(Type<BF16>{});
}

}  // namespace tenon::cuda::attention_tiles
