// Attention of float16 and bfloat16 on tensor cores, backward: one kernel owns queries and sums dq, one owns keys and
// sums dk and dv, so that every gradient is summed by one warp in a fixed order.
//
// Long: the two kernels read and mask their tiles by the same rules, and are understood side by side.
#include "kernels/nn/attention_tensor_cores.cuh"
#include "kernels/nn/attention_tensor_cores.h"

namespace tenon::cuda {
namespace {

using namespace attention_tiles;

constexpr int kLanesOfRow = 8;  // threads that share a row of y

// The states of rows whose lse keeps its digits: delta = sum_j w_j dw_j = y . dy.
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
  if (line < rows && part == 0) states[line] = {lse[line] * kLog2E, 0, sum};
}

template <class E>
struct Backward {
  AttentionProblem p;
  Side<const E> dy, q, k, v;
  RowState* states;
  AttentionMask mask;
};

__device__ bool is_large(const RowState& state) {
  return fabsf(state.most) > kLargeLogSum * kLog2E && state.most != INFINITY;
}

// The states of rows with a large sum: their largest score, and the logarithm of the sum above it.
template <class E, int kWidth, bool kGeneral>
__global__ void __launch_bounds__(kTeam) sum_again_on_tensor_cores(const __grid_constant__ Backward<E> of) {
  if constexpr (kThere) {
    const AttentionProblem& p = of.p;
    const QueryBlock<E, kWidth, 1> block(p, of.k, of.v);
    const Place& place = block.place;
    const int length = block.length, keys = block.keys, own = block.own, first = block.first;
    RowState* const states = of.states + i64{place.head} * length;
    const int line = place.first + static_cast<int>(threadIdx.x);
    if (__syncthreads_or(threadIdx.x < kRows && line < length && is_large(states[line])) == 0) return;
    const Scores<E, kGeneral> scoring(p, of.mask, place.b, place.h, place.head);
    Softmax<kM> softmax(1.0f);
    const auto copy = [&](int key) {
      copy_rows<kStreamed, kTeam>(block.stage(key, 0), of.k.rows(place.b, place.h, key, block.all_keys));
    };
    copy_rows<kRows, kTeam>(block.owned(0), of.q.rows(place.b, place.h, place.first, length));
    copy(0);
    commit();
    for (int key = 0; key < keys; key += kStreamed) {
      wait_for_copies<0>();
      __syncthreads();
      if (key + kStreamed < keys) copy(key + kStreamed);
      commit();
      Sums scores[kM][kStreamed / 8];
      multiply_rows<E>(scores, block.owned(0), own, block.stage(key, 0));
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int n = 0; n < kStreamed / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            scores[m][n][i] = scoring.of(first + own_row(m, i / 2), key + own_column(n) + i % 2, scores[m][n][i]);
        }
      }
      softmax.add(scores, [](int, int, float) {});
    }
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float total = softmax.total_of_row(m, r);
        const int i = first + own_row(m, r);
        if (lane() % 4 != 0 || i >= length || !is_large(states[i])) continue;
        states[i].most = softmax.most[m][r];
        states[i].log_total = log2f(total);
      }
    }
  }
}

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
    const QueryBlock<E, kWidth, 2> block(p, of.k, of.v);
    const Place& place = block.place;
    const Tile<kWidth> queries = block.owned(0), slopes = block.owned(1);  // slopes of the result
    const int length = block.length, all_keys = block.all_keys, keys = block.keys, own = block.own, first = block.first;
    const Scores<E, kGeneral> scoring(p, of.mask, place.b, place.h, place.head);
    PhiloxReader words(p.stream);
    RowState states[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int i = first + own_row(m, r);
        states[m][r] = i < length ? of.states[i64{place.head} * length + i] : RowState{INFINITY, 0, 0};
      }
    }
    Sums sums[kM][kWidth / 8];
    clear(sums);
    if (keys > 0) {
      copy_rows<kRows, kTeam>(queries, of.q.rows(place.b, place.h, place.first, length));
      copy_rows<kRows, kTeam>(slopes, of.dy.rows(place.b, place.h, place.first, length));
      block.copy(0);
    }
    commit();
    for (int key = 0; key < keys; key += kStreamed) {
      wait_for_copies<0>();
      __syncthreads();
      if (key + kStreamed < keys) block.copy(key + kStreamed);
      commit();
#pragma unroll 1
      for (int part = 0; part < kStreamed; part += kPart) {
        const int at = key + part;
        if (p.causal && at > first + 16 * kM - 1) break;
        const Tile<kWidth> part_keys = block.stage(key, 0).from(part);
        Sums scores[kM][kPart / 8], dweights[kM][kPart / 8];
        multiply_rows<E>(scores, queries, own, part_keys);
        multiply_rows<E>(dweights, slopes, own, block.stage(key, 1).from(part));
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
                const float value = whole ? scoring.plain(score) : scoring.of(i, j, score);
                const float slope = dweights[m][n][2 * r + c] * kept(scoring, words, i, j) - states[m][r].delta;
                score = exp2_of(value - states[m][r].most - states[m][r].log_total) * slope;
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
        copy_async<16>(stage_states(query) + t * 16, of.states + i64{place.head} * length + (there ? query + t : 0),
                       there ? 16 : 0);
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
        const u32 states = stage_states(query) + (part + own_column(0)) * 16;
#pragma unroll
        for (int n = 0; n < kPart / 8; ++n) {
          const uint4 two[2] = {load_shared(states + n * 128), load_shared(states + n * 128 + 16)};
#pragma unroll
          for (int m = 0; m < kM; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              float& score = scores[m][n][i];
              const float value = whole ? scoring.plain(score)
                                        : scoring.of(at + own_column(n) + i % 2, first + own_row(m, i / 2), score);
              score = exp2_of(value - __uint_as_float(two[i % 2].x) - __uint_as_float(two[i % 2].y));
            }
          }
        }
        multiply_rows<E>(dweights, values, own, part_slopes);
#pragma unroll
        for (int n = 0; n < kPart / 8; ++n) {
          const float deltas[2] = {__uint_as_float(load_shared(states + n * 128).z),
                                   __uint_as_float(load_shared(states + n * 128 + 16).z)};
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

template <class E, int kWidth, bool kGeneral>
auto again_choice() {
  return Choice{sum_again_on_tensor_cores<E, kWidth, kGeneral>, shared_bytes<kWidth>(1)};
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
  const auto again = again_choice<E, kWidth, kGeneral>();
  launch(context, shape_of(again, p.length, heads), again.kernel, of);
  launch(context, shape_of(queries, p.length, heads), queries.kernel, of, outputs[0]);
  launch(context, shape_of(keys, p.keys, heads), keys.kernel, of, outputs[1], outputs[2]);
  return true;
}

}  // namespace

bool attention_backward_on_tensor_cores(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const AttentionProblem p = attention_problem_of(inputs[1], inputs[2], inputs[3], attributes);
  return chosen(inputs[1].dtype, p, inputs[6].defined(),
                [&]<class E, int kWidth, bool kGeneral>(Type<E>, std::integral_constant<int, kWidth>,
                                                        std::bool_constant<kGeneral>) {
                  return run_backward<E, kWidth, kGeneral>(context, outputs, inputs, p);
                });
}

}  // namespace tenon::cuda
