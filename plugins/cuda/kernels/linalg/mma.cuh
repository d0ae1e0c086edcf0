// Products of matrices on tensor cores, a warp at a time: blocks of 16 x 8 x 16 (mma.sync), elements of 16 bits, sums
// in float32. Operands lie in shared memory, where asynchronous copies bring them. Needs compute capability 8.0: code
// for older devices must not call anything here (kThere says so).
//
// A lane of a warp holds, of a block of 16 x 8 sums, columns 2 * (lane % 4) and the next, of rows lane / 4 and
// lane / 4 + 8, in this order.
#pragma once

#include "kernels/dtypes.cuh"
#include "kernels/launch.h"

namespace tenon::cuda::mma {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr bool kThere = false;
#else
inline constexpr bool kThere = true;
#endif
inline constexpr int kCapability = 80;  ///< what code must be compiled for to have kThere

inline constexpr int kPacket = 8;  ///< elements that are copied at a time: 16 bytes

/// Sums of a block of 16 x 8.
using Sums = float[4];

/// Rows of kWidth elements of 16 bits in shared memory, aligned to 128 bytes. The packets of a row lie where its number
/// says, so that packets of one column and eight rows lie in different banks.
template <int kWidth>
struct Tile {
  static_assert(kWidth % 64 == 0);
  static constexpr int kPackets = kWidth / kPacket;
  static constexpr int kRowBytes = kWidth * 2;
  __device__ u32 at(int row, int packet) const {
    return first + static_cast<u32>(row * kRowBytes + ((packet ^ (row & 7)) << 4));
  }
  /// Without the rows before `row`, a multiple of 8.
  __device__ Tile from(int row) const { return {first + static_cast<u32>(row * kRowBytes)}; }
  u32 first;  ///< its address in shared memory
};

__device__ inline u32 shared_address(const void* generic) {
  return static_cast<u32>(__cvta_generic_to_shared(generic));
}

// Asynchronous copies. Those that a thread has asked for until commit() are a group; until<n>() waits for all but its n
// newest groups. What other threads copied is there after a barrier that follows their wait.

/// kBytes of 4, 8 or 16, of which the first `there` are read and the others are 0.
template <int kBytes>
__device__ inline void copy_async(u32 to, const void* from, int there) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "r"(there)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "n"(kBytes), "r"(there)
                 : "memory");
  }
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewest>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
}

__device__ inline void store_shared(u32 to, u32 word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ inline void store_shared(u32 to, const uint4& v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ inline uint4 load_shared(u32 from) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
}

/// Dense rows in global memory, `step` elements apart, of which `count` are there. `packed`: every packet of theirs is
/// aligned to its 16 bytes, and `width` is whole packets.
template <class E>
struct Rows {
  E* first;
  i64 step;
  int count, width;
  bool packed;
};

/// Row r of the tile = row r of `rows`, 0 where there is none, by all kTeam threads of a block. What is packed is
/// copied asynchronously, the rest before this returns.
template <int kRows, int kTeam, int kWidth, class E>
__device__ void copy_rows(Tile<kWidth> to, const Rows<const E>& rows) {
  constexpr int kPackets = Tile<kWidth>::kPackets;
  static_assert(kRows * kPackets % kTeam == 0 && kTeam % kPackets == 0);
  const int packet = static_cast<int>(threadIdx.x) % kPackets, row = static_cast<int>(threadIdx.x) / kPackets;
  const int column = packet * kPacket;
  if (rows.packed) {
    const E* from = rows.first + row * rows.step + column;
#pragma unroll
    for (int i = 0; i < kRows; i += kTeam / kPackets) {
      const bool there = row + i < rows.count && column < rows.width;
      copy_async<16>(to.at(row + i, packet), there ? from : rows.first, there ? 16 : 0);
      from += kTeam / kPackets * rows.step;
    }
    return;
  }
#pragma unroll 1
  for (int i = row; i < kRows; i += kTeam / kPackets) {
    u32 words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      u32 halves[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int c = column + 2 * w + h;
        halves[h] = i < rows.count && c < rows.width ? rows.first[i * rows.step + c].bits : 0;
      }
      words[w] = halves[0] | halves[1] << 16;
    }
    store_shared(to.at(i, packet), make_uint4(words[0], words[1], words[2], words[3]));
  }
}

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

__device__ inline void load_matrices(u32 (&to)[4], u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
}
__device__ inline void load_matrices_transposed(u32 (&to)[4], u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
}

/// A left operand of 16 x 16: rows `row` and following of the tile, columns 16 * k and following.
template <int kWidth>
__device__ void load_left(u32 (&a)[4], Tile<kWidth> tile, int row, int k) {
  load_matrices(a, tile.at(row + lane() % 16, 2 * k + lane() / 16));
}
/// Two right operands of 16 x 8, side by side, whose columns are rows `column` and following of the tile; their rows
/// are its columns 16 * k and following. The first is b[0] and b[1].
template <int kWidth>
__device__ void load_right(u32 (&b)[4], Tile<kWidth> tile, int column, int k) {
  load_matrices(b, tile.at(column + lane() / 16 * 8 + lane() % 8, 2 * k + lane() / 8 % 2));
}
/// The same, whose rows are rows `k` and following of the tile; their columns are its columns 16 * n and following.
template <int kWidth>
__device__ void load_right_transposed(u32 (&b)[4], Tile<kWidth> tile, int k, int n) {
  load_matrices_transposed(b, tile.at(k + lane() % 16, 2 * n + lane() / 16));
}

/// sums += a b.
template <class E>
__device__ inline void multiply(Sums& sums, const u32 (&a)[4], u32 b0, u32 b1) {
  if constexpr (std::is_same_v<E, F16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(std::is_same_v<E, BF16>);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Two numbers rounded to nearest even, the first in the low half.
template <class E>
__device__ inline u32 pack(float low, float high) {
  u32 word;
  if constexpr (std::is_same_v<E, F16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
}
/// Sums of two blocks side by side as the left operand of another product, rounded.
template <class E>
__device__ inline void pack(u32 (&a)[4], const Sums& left, const Sums& right) {
  a[0] = pack<E>(left[0], left[1]);
  a[1] = pack<E>(left[2], left[3]);
  a[2] = pack<E>(right[0], right[1]);
  a[3] = pack<E>(right[2], right[3]);
}

template <int kM, int kN>
__device__ inline void clear(Sums (&sums)[kM][kN]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[m][n][i] = 0;
    }
  }
}

/// sums = left right^T: 16 * kM rows of the left tile from `row` on, 8 * kN rows of the right one, over their width.
template <class E, int kM, int kN, int kWidth>
__device__ void multiply_rows(Sums (&sums)[kM][kN], Tile<kWidth> left, int row, Tile<kWidth> right) {
  clear(sums);
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    u32 a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) load_left(a[m], left, row + 16 * m, k);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      u32 b[4];
      load_right(b, right, 8 * n, k);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply<E>(sums[m][n], a[m], b[0], b[1]);
        multiply<E>(sums[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// sums += weights rows: weights of 16 * kM x 8 * kK, rounded to E, and as many rows of the tile, over its width.
template <class E, int kM, int kK, int kWidth>
__device__ void add_product(Sums (&sums)[kM][kWidth / 8], const Sums (&weights)[kM][kK], Tile<kWidth> rows) {
#pragma unroll
  for (int k = 0; k < kK / 2; ++k) {
    u32 a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) pack<E>(a[m], weights[m][2 * k], weights[m][2 * k + 1]);
#pragma unroll
    for (int n = 0; n < kWidth / 16; ++n) {
      u32 b[4];
      load_right_transposed(b, rows, 16 * k, n);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply<E>(sums[m][2 * n], a[m], b[0], b[1]);
        multiply<E>(sums[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// Writes 16 * kM rows of sums times their factors, through rows `row` and following of a tile that no other warp uses:
/// row r of them is row `row` + r of `to`. factors[m][1] is of the lower eight rows.
template <class E, int kM, int kWidth>
__device__ void store_rows(const Rows<E>& to, const Sums (&sums)[kM][kWidth / 8], const float (&factors)[kM][2],
                           Tile<kWidth> tile, int row) {
  constexpr int kPackets = Tile<kWidth>::kPackets;
  const int line = lane() / 4, word = lane() % 4 * 4;
  __syncwarp();  // what the others read of the tile they have read
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kPackets; ++n) {
      const float upper = factors[m][0], lower = factors[m][1];
      store_shared(tile.at(row + 16 * m + line, n) + word, pack<E>(sums[m][n][0] * upper, sums[m][n][1] * upper));
      store_shared(tile.at(row + 16 * m + line + 8, n) + word, pack<E>(sums[m][n][2] * lower, sums[m][n][3] * lower));
    }
  }
  __syncwarp();
#pragma unroll 1
  for (int i = lane(); i < 16 * kM * kPackets; i += kWarp) {
    const int r = row + i / kPackets, packet = i % kPackets, column = packet * kPacket;
    if (r >= to.count || column >= to.width) continue;
    E* const out = to.first + r * to.step + column;
    const uint4 v = load_shared(tile.at(r, packet));
    if (to.packed) {
      *reinterpret_cast<uint4*>(out) = v;
      continue;
    }
    const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int c = 0; c < kPacket; ++c) {
      if (column + c < to.width) out[c] = {static_cast<u16>(words[c / 2] >> (c % 2 * 16))};
    }
  }
}

}  // namespace tenon::cuda::mma
