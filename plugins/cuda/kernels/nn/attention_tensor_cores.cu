// Attention of float16 and bfloat16 on tensor cores, after Dao, "FlashAttention-2", 2023. A block of four warps owns
// rows of the result, 16 a warp, and reads tiles of the other operands, of which the next is copied meanwhile.
// Scores and weights stay in registers: the block of sums that a product leaves is the left operand of the next one.
//
// Forward: a block owns queries. Backward: one kernel owns queries and sums dq, one owns keys and sums dk and dv, so
// that every gradient is summed by one warp in a fixed order. Scores are in powers of two (times log2(e)), weights and
// their slopes are rounded to 16 bits before they are multiplied, everything else is float32.
//
// Long: the three kernels read and mask their tiles by the same rules, and are understood side by side.
#include "kernels/code.h"
#include "kernels/linalg/mma.cuh"
#include "kernels/nn/attention.cuh"
#include "kernels/nn/attention_tensor_cores.h"

#include <algorithm>

namespace tenon::cuda {
namespace {

using namespace mma;

constexpr int kTeam = 128;  // threads of a block
constexpr int kM = 1;       // blocks of 16 rows that a warp owns
constexpr int kRows = kTeam / kWarp * 16 * kM;
constexpr int kStreamed = 64;  // rows of a tile that is read; kernels with many sums use kPart of them at a time
constexpr int kStages = 2;     // tiles of an operand in shared memory
constexpr float kNever = -INFINITY;
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

// Of a row of scores: what its softmax subtracts, in powers of two, and what the slopes of its weights share.
struct RowState {
  float log_sum, delta;
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
    const float value = product * scale;
    if constexpr (kGeneral) {
      if (mask.data == nullptr) return value;
      const i64 at = mask_base + i * mask.strides[2] + j * mask.strides[3];
      if (mask.boolean) return static_cast<const std::uint8_t*>(mask.data)[at] != 0 ? value : kNever;
      return value + load_as<E, float>(static_cast<const E*>(mask.data)[at]) * kLog2E;
    }
    return value;
  }
  __device__ bool dropped(PhiloxReader& words, int i, int j) const {
    return i < length && j < keys && words.word((head * p.length + i) * p.keys + j) < p.dropped_below;
  }
  const AttentionProblem& p;
  const AttentionMask& mask;
  i64 mask_base = 0;
  int head, length, keys;
  float scale;
};

template <class E>
struct Forward {
  AttentionProblem p;
  Side<E> y;
  float* lse;
  Side<const E> q, k, v;
  AttentionMask mask;
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
  // More scores become weights; `out` is what the earlier ones summed up.
  template <int kN, int kColumns>
  __device__ void add(Sums (&scores)[kM][kN], Sums (&out)[kM][kColumns]) {
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
#pragma unroll
        for (int n = 0; n < kColumns; ++n) {
          out[m][n][2 * r] *= factor;
          out[m][n][2 * r + 1] *= factor;
        }
      }
    }
  }
};

// Shared memory of the kernels: `owned` tiles of kRows, then kStages times two tiles of kStreamed, then their states.
template <int kWidth>
constexpr int kStageBytes = 2 * kStreamed* Tile<kWidth>::kRowBytes;
template <int kWidth>
constexpr int shared_bytes(int owned) {
  return owned * kRows * Tile<kWidth>::kRowBytes + kStages * kStageBytes<kWidth>;
}
constexpr int kStateBytes = kStreamed * static_cast<int>(sizeof(RowState));

extern __shared__ __align__(128) unsigned char shared_memory[];

// Blocks of the forward that a multiprocessor shall hold; 0: as many as come of it.
template <int kWidth, bool kGeneral>
constexpr int kBlocks = kWidth <= 64 && !kGeneral ? 4 : 0;

// Long: one loop whose steps share the registers of a warp.
template <class E, int kWidth, bool kGeneral>
__global__ void __launch_bounds__(kTeam, kBlocks<kWidth, kGeneral>)
    forward_on_tensor_cores(const __grid_constant__ Forward<E> of) {
  if constexpr (kThere) {
    const AttentionProblem& p = of.p;
    const Place place(static_cast<int>(p.length), p.heads, p.causal);
    const int length = static_cast<int>(p.length), all_keys = static_cast<int>(p.keys);
    const int own = static_cast<int>(threadIdx.x) / kWarp * 16 * kM;  // the warp's first row in the tile
    const int first = place.first + own;
    const int keys = p.causal ? min(all_keys, place.first + kRows) : all_keys;  // that any row sees
    const Tile<kWidth> queries{shared_address(shared_memory)};
    const auto stage = [&](int key, int operand) {
      return Tile<kWidth>{queries.first + kRows * queries.kRowBytes + key / kStreamed % kStages * kStageBytes<kWidth> +
                          operand * kStageBytes<kWidth> / 2};
    };
    const auto copy = [&](int key) {
      copy_rows<kStreamed, kTeam>(stage(key, 0), of.k.rows(place.b, place.h, key, all_keys));
      copy_rows<kStreamed, kTeam>(stage(key, 1), of.v.rows(place.b, place.h, key, all_keys));
    };
    const Scores<E, kGeneral> scoring(p, of.mask, place.b, place.h, place.head);
    PhiloxReader words(p.stream);
    Softmax<kM> softmax(kGeneral ? 1.0f : scoring.scale);
    Sums out[kM][kWidth / 8];
    clear(out);
    if (keys > 0) {
      copy_rows<kRows, kTeam>(queries, of.q.rows(place.b, place.h, place.first, length));
      copy(0);
    }
    commit();
    for (int key = 0; key < keys; key += kStreamed) {
      wait_for_copies<0>();
      __syncthreads();  // this tile is there, and the one before is not in use any more
      if (key + kStreamed < keys) copy(key + kStreamed);
      commit();
      if (p.causal && key > first + 16 * kM - 1) continue;  // none of this warp's rows sees it
      Sums scores[kM][kStreamed / 8];
      multiply_rows<E>(scores, queries, own, stage(key, 0));
      const bool whole = key + kStreamed <= all_keys && (!p.causal || key + kStreamed - 1 <= first);
      if (kGeneral || !whole) {
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int n = 0; n < kStreamed / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const int query = first + own_row(m, i / 2), column = key + own_column(n) + i % 2;
              float& score = scores[m][n][i];
              if constexpr (kGeneral) {
                score = scoring.of(query, column, score);
              } else {
                if (!scoring.sees(query, column)) score = kNever;
              }
            }
          }
        }
      }
      softmax.add(scores, out);
      if (kGeneral && p.drops) {
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int n = 0; n < kStreamed / 8; ++n) {
#pragma unroll
              for (int i = 0; i < 2; ++i) {
                if (scoring.dropped(words, first + own_row(m, r), key + own_column(n) + i)) scores[m][n][2 * r + i] = 0;
              }
            }
          }
        }
      }
      add_product<E>(out, scores, stage(key, 1));
    }

    // A query that may see nothing has weights of 0, also in the backward: hence infinity.
    float factors[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float most = softmax.most[m][r], total = softmax.total_of_row(m, r);
        const bool blind = most == kNever && total == 0;  // and not nan
        const int i = first + own_row(m, r);
        factors[m][r] = blind ? 0.0f : static_cast<float>(kGeneral ? p.kept : 1.0) / total;
        if (lane() % 4 == 0 && i < length)
          of.lse[i64{place.head} * length + i] = blind ? INFINITY : most * softmax.unit * kLn2 + logf(total);
      }
    }
    store_rows<E, kM>(of.y.rows(place.b, place.h, place.first, length), out, factors, queries, own);
  }
}

constexpr int kLanesOfRow = 8;  // threads that share a row of y

// states = lse in powers of two and delta = sum_j w_j dw_j = y . dy of each row.
template <class E>
__global__ void __launch_bounds__(kTeam) row_states(const __grid_constant__ AttentionProblem p, RowState* states,
                                                    const float* lse, Side<const E> y, Side<const E> dy, i64 rows) {
  const i64 line = i64{blockIdx.x} * (kTeam / kLanesOfRow) + threadIdx.x / kLanesOfRow;
  const int part = static_cast<int>(threadIdx.x) % kLanesOfRow;
  float sum = 0;
  if (line < rows) {
    const i64 head = line / p.length, b = head / p.heads, h = head % p.heads;
    const E *const out = y.heads.at(b, h, line % p.length), *const dout = dy.heads.at(b, h, line % p.length);
    if (y.packed && dy.packed) {
      for (int c = part * kPacket; c < p.value_width; c += kLanesOfRow * kPacket) {
        E a[kPacket], d[kPacket];
        *reinterpret_cast<uint4*>(a) = *reinterpret_cast<const uint4*>(out + c);
        *reinterpret_cast<uint4*>(d) = *reinterpret_cast<const uint4*>(dout + c);
#pragma unroll
        for (int i = 0; i < kPacket; ++i) sum += load_as(a[i]) * load_as(d[i]);
      }
    } else {
      for (int c = part; c < p.value_width; c += kLanesOfRow) sum += load_as(out[c]) * load_as(dout[c]);
    }
  }
  for (int by = kLanesOfRow / 2; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  if (line < rows && part == 0) states[line] = {lse[line] * kLog2E, sum};
}

template <class E>
struct Backward {
  AttentionProblem p;
  Side<const E> dy, q, k, v;
  const RowState* states;
  AttentionMask mask;
};

// What a weight becomes by dropout: its factor.
template <class E, bool kGeneral>
__device__ float kept(const Scores<E, kGeneral>& scoring, PhiloxReader& words, int i, int j) {
  if (!kGeneral || !scoring.p.drops) return 1.0f;
  return scoring.dropped(words, i, j) ? 0.0f : static_cast<float>(scoring.p.kept);
}

// Long: one loop whose steps share the registers of a warp.
template <class E, int kWidth, int kPart, bool kGeneral>
__global__ void __launch_bounds__(kTeam)
    backward_queries_on_tensor_cores(const __grid_constant__ Backward<E> of, const __grid_constant__ Side<E> dq) {
  if constexpr (kThere) {
    const AttentionProblem& p = of.p;
    const Place place(static_cast<int>(p.length), p.heads, p.causal);
    const int length = static_cast<int>(p.length), all_keys = static_cast<int>(p.keys);
    const int own = static_cast<int>(threadIdx.x) / kWarp * 16 * kM;
    const int first = place.first + own;
    const int keys = p.causal ? min(all_keys, place.first + kRows) : all_keys;
    const Tile<kWidth> queries{shared_address(shared_memory)};
    const Tile<kWidth> slopes{queries.first + kRows * queries.kRowBytes};  // of the result
    const auto stage = [&](int key, int operand) {
      return Tile<kWidth>{slopes.first + kRows * slopes.kRowBytes + key / kStreamed % kStages * kStageBytes<kWidth> +
                          operand * kStageBytes<kWidth> / 2};
    };
    const auto copy = [&](int key) {
      copy_rows<kStreamed, kTeam>(stage(key, 0), of.k.rows(place.b, place.h, key, all_keys));
      copy_rows<kStreamed, kTeam>(stage(key, 1), of.v.rows(place.b, place.h, key, all_keys));
    };
    const Scores<E, kGeneral> scoring(p, of.mask, place.b, place.h, place.head);
    PhiloxReader words(p.stream);
    RowState states[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int i = first + own_row(m, r);
        states[m][r] = i < length ? of.states[i64{place.head} * length + i] : RowState{INFINITY, 0};
      }
    }
    Sums sums[kM][kWidth / 8];
    clear(sums);
    if (keys > 0) {
      copy_rows<kRows, kTeam>(queries, of.q.rows(place.b, place.h, place.first, length));
      copy_rows<kRows, kTeam>(slopes, of.dy.rows(place.b, place.h, place.first, length));
      copy(0);
    }
    commit();
    for (int key = 0; key < keys; key += kStreamed) {
      wait_for_copies<0>();
      __syncthreads();
      if (key + kStreamed < keys) copy(key + kStreamed);
      commit();
#pragma unroll 1
      for (int part = 0; part < kStreamed; part += kPart) {
        const int at = key + part;
        if (p.causal && at > first + 16 * kM - 1) break;
        const Tile<kWidth> part_keys = stage(key, 0).from(part);
        Sums scores[kM][kPart / 8], dweights[kM][kPart / 8];
        multiply_rows<E>(scores, queries, own, part_keys);
        multiply_rows<E>(dweights, slopes, own, stage(key, 1).from(part));
        const bool whole = !kGeneral && at + kPart <= all_keys && (!p.causal || at + kPart - 1 <= first);
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const int i = first + own_row(m, r);
#pragma unroll
            for (int n = 0; n < kPart / 8; ++n) {
#pragma unroll
              for (int c = 0; c < 2; ++c) {
                const int j = at + own_column(n) + c;
                float& score = scores[m][n][2 * r + c];
                const float value = whole ? score * scoring.scale : scoring.of(i, j, score);
                const float slope = dweights[m][n][2 * r + c] * kept(scoring, words, i, j) - states[m][r].delta;
                score = exp2_of(value - states[m][r].log_sum) * slope;
              }
            }
          }
        }
        add_product<E>(sums, scores, part_keys);
      }
    }
    float factors[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m) factors[m][0] = factors[m][1] = static_cast<float>(p.scale);
    store_rows<E, kM>(dq.rows(place.b, place.h, place.first, length), sums, factors, queries, own);
  }
}

// Long: one loop whose steps share the registers of a warp.
template <class E, int kWidth, int kPart, bool kGeneral>
__global__ void __launch_bounds__(kTeam)
    backward_keys_on_tensor_cores(const __grid_constant__ Backward<E> of, const __grid_constant__ Side<E> dk,
                                  const __grid_constant__ Side<E> dv) {
  if constexpr (kThere) {
    const AttentionProblem& p = of.p;
    const Place place(static_cast<int>(p.keys), p.heads, false);
    const int length = static_cast<int>(p.length), all_keys = static_cast<int>(p.keys);
    const int own = static_cast<int>(threadIdx.x) / kWarp * 16 * kM;
    const int first = place.first + own;
    const int first_query = p.causal ? place.first / kStreamed * kStreamed : 0;
    const Tile<kWidth> keys{shared_address(shared_memory)};
    const Tile<kWidth> values{keys.first + kRows * keys.kRowBytes};
    const u32 stages = values.first + kRows * values.kRowBytes;
    const auto stage = [&](int query, int operand) {
      return Tile<kWidth>{stages + query / kStreamed % kStages * kStageBytes<kWidth> +
                          operand * kStageBytes<kWidth> / 2};
    };
    const auto stage_states = [&](int query) {
      return stages + kStages * kStageBytes<kWidth> + query / kStreamed % kStages * kStateBytes;
    };
    const auto copy = [&](int query) {
      copy_rows<kStreamed, kTeam>(stage(query, 0), of.q.rows(place.b, place.h, query, length));
      copy_rows<kStreamed, kTeam>(stage(query, 1), of.dy.rows(place.b, place.h, query, length));
      const int t = static_cast<int>(threadIdx.x);
      if (t < kStreamed) {
        const bool there = query + t < length;
        copy_async<8>(stage_states(query) + t * 8, of.states + i64{place.head} * length + (there ? query + t : 0),
                      there ? 8 : 0);
      }
    };
    const Scores<E, kGeneral> scoring(p, of.mask, place.b, place.h, place.head);
    PhiloxReader words(p.stream);
    Sums dkeys[kM][kWidth / 8], dvalues[kM][kWidth / 8];
    clear(dkeys);
    clear(dvalues);
    if (first_query < length) {
      copy_rows<kRows, kTeam>(keys, of.k.rows(place.b, place.h, place.first, all_keys));
      copy_rows<kRows, kTeam>(values, of.v.rows(place.b, place.h, place.first, all_keys));
      copy(first_query);
    }
    commit();
    for (int query = first_query; query < length; query += kStreamed) {
      wait_for_copies<0>();
      __syncthreads();
      if (query + kStreamed < length) copy(query + kStreamed);
      commit();
#pragma unroll 1
      for (int part = 0; part < kStreamed; part += kPart) {
        const int at = query + part;
        if (p.causal && at + kPart - 1 < first) continue;
        const Tile<kWidth> part_queries = stage(query, 0).from(part), part_slopes = stage(query, 1).from(part);
        Sums scores[kM][kPart / 8], dweights[kM][kPart / 8];  // rows are keys here
        multiply_rows<E>(scores, keys, own, part_queries);
        const bool whole = !kGeneral && at + kPart <= length && (!p.causal || at >= first + 16 * kM - 1);
        const u32 states = stage_states(query) + (part + own_column(0)) * 8;
#pragma unroll
        for (int n = 0; n < kPart / 8; ++n) {
          const uint4 two = load_shared(states + n * 64);
          const float log_sums[2] = {__uint_as_float(two.x), __uint_as_float(two.z)};
#pragma unroll
          for (int m = 0; m < kM; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              float& score = scores[m][n][i];
              const float value = whole ? score * scoring.scale
                                        : scoring.of(at + own_column(n) + i % 2, first + own_row(m, i / 2), score);
              score = exp2_of(value - log_sums[i % 2]);
            }
          }
        }
        multiply_rows<E>(dweights, values, own, part_slopes);
#pragma unroll
        for (int n = 0; n < kPart / 8; ++n) {
          const uint4 two = load_shared(states + n * 64);
          const float deltas[2] = {__uint_as_float(two.y), __uint_as_float(two.w)};
#pragma unroll
          for (int m = 0; m < kM; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const float factor = kept(scoring, words, at + own_column(n) + i % 2, first + own_row(m, i / 2));
              dweights[m][n][i] = scores[m][n][i] * (dweights[m][n][i] * factor - deltas[i % 2]);
              if (kGeneral) scores[m][n][i] *= factor;
            }
          }
        }
        add_product<E>(dvalues, scores, part_slopes);
        add_product<E>(dkeys, dweights, part_queries);
      }
    }
    float factors[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m) factors[m][0] = factors[m][1] = static_cast<float>(p.scale);
    store_rows<E, kM>(dk.rows(place.b, place.h, place.first, all_keys), dkeys, factors, keys, own);
#pragma unroll
    for (int m = 0; m < kM; ++m) factors[m][0] = factors[m][1] = 1.0f;
    store_rows<E, kM>(dv.rows(place.b, place.h, place.first, all_keys), dvalues, factors, values, own);
  }
}

// A kernel and its shared memory. Parts of tiles are as large as registers allow: on an H100 that was the fastest of
// 16, 32 and 64, and 16 rows a warp were faster than 32, of which fewer blocks are on a multiprocessor at a time.
template <class F>
struct Choice {
  F kernel;
  int shared_bytes;
};

template <class E, int kWidth, bool kGeneral>
auto forward_choice() {
  return Choice{forward_on_tensor_cores<E, kWidth, kGeneral>, shared_bytes<kWidth>(1)};
}
template <class E, int kWidth, bool kGeneral>
auto queries_choice() {
  constexpr int kPart = kWidth > 64 && kGeneral ? 16 : 64;
  return Choice{backward_queries_on_tensor_cores<E, kWidth, kPart, kGeneral>, shared_bytes<kWidth>(2)};
}
template <class E, int kWidth, bool kGeneral>
auto keys_choice() {
  constexpr int kPart = kWidth > 64 ? 16 : kGeneral ? 32 : 64;
  return Choice{backward_keys_on_tensor_cores<E, kWidth, kPart, kGeneral>,
                shared_bytes<kWidth>(2) + kStages * kStateBytes};
}

template <class C>
LaunchShape shape_of(const C& choice, i64 rows, i64 heads) {
  return {.grid = static_cast<unsigned>(ceil_div(rows, kRows) * heads),
          .block = kTeam,
          .shared_bytes = static_cast<std::size_t>(choice.shared_bytes)};
}

template <class E, int kWidth, bool kGeneral>
bool run_forward(KernelContext& context, Views outputs, Views inputs, const AttentionProblem& p) {
  const auto choice = forward_choice<E, kWidth, kGeneral>();
  if (!fits(context, reinterpret_cast<const void*>(choice.kernel), kCapability, choice.shared_bytes)) return false;
  launch(context, shape_of(choice, p.length, inputs[0].sizes[0] * p.heads), choice.kernel,
         Forward<E>{p, outputs[0], outputs[1].as<float>(), inputs[0], inputs[1], inputs[2], AttentionMask(inputs[3])});
  return true;
}

template <class E, int kWidth, bool kGeneral>
bool run_backward(KernelContext& context, Views outputs, Views inputs, const AttentionProblem& p) {
  const auto queries = queries_choice<E, kWidth, kGeneral>();
  const auto keys = keys_choice<E, kWidth, kGeneral>();
  if (!fits(context, reinterpret_cast<const void*>(keys.kernel), kCapability, keys.shared_bytes)) return false;
  const i64 heads = inputs[1].sizes[0] * p.heads, rows = heads * p.length;
  auto* const states = static_cast<RowState*>(context.scratch(static_cast<std::size_t>(rows) * sizeof(RowState)));
  launch(context, {.grid = blocks_for(rows, kTeam / kLanesOfRow), .block = kTeam}, row_states<E>, p, states,
         inputs[5].as<float>(), inputs[4], inputs[0], rows);
  const Backward<E> of{p, inputs[0], inputs[1], inputs[2], inputs[3], states, AttentionMask(inputs[6])};
  launch(context, shape_of(queries, p.length, heads), queries.kernel, of, outputs[0]);
  launch(context, shape_of(keys, p.keys, heads), keys.kernel, of, outputs[1], outputs[2]);
  return true;
}

constexpr i64 kMostRows = i64{1} << 30;  // their numbers, and those of a tile beyond them, are ints
constexpr int kMostWidth = 128;

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

}  // namespace

bool attention_on_tensor_cores(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const AttentionProblem p = attention_problem_of(inputs[0], inputs[1], inputs[2], attributes);
  return chosen(inputs[0].dtype, p, inputs[3].defined(),
                [&]<class E, int kWidth, bool kGeneral>(Type<E>, std::integral_constant<int, kWidth>,
                                                        std::bool_constant<kGeneral>) {
                  return run_forward<E, kWidth, kGeneral>(context, outputs, inputs, p);
                });
}

bool attention_backward_on_tensor_cores(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const AttentionProblem p = attention_problem_of(inputs[1], inputs[2], inputs[3], attributes);
  return chosen(inputs[1].dtype, p, inputs[6].defined(),
                [&]<class E, int kWidth, bool kGeneral>(Type<E>, std::integral_constant<int, kWidth>,
                                                        std::bool_constant<kGeneral>) {
                  return run_backward<E, kWidth, kGeneral>(context, outputs, inputs, p);
                });
}

}  // namespace tenon::cuda
