// Attention of float16 and bfloat16 on tensor cores, forward: a block owns queries, and its warps keep the running
// softmax of their rows.
#include "kernels/nn/attention_tensor_cores.cuh"
#include "kernels/nn/attention_tensor_cores.h"

namespace tenon::cuda {
namespace {

using namespace attention_tiles;

template <class E>
struct Forward {
  AttentionProblem p;
  Side<E> y;
  float* lse;
  Side<const E> q, k, v;
  AttentionMask mask;
};

// Blocks of the forward that a multiprocessor shall hold; 0: as many as come of it.
template <int kWidth, bool kGeneral>
constexpr int kBlocks = kWidth <= 64 && !kGeneral ? 4 : 0;

// Long: one loop whose steps share the registers of a warp.
template <class E, int kWidth, bool kGeneral>
__global__ void __launch_bounds__(kTeam, kBlocks<kWidth, kGeneral>)
    forward_on_tensor_cores(const __grid_constant__ Forward<E> of) {
  if constexpr (kThere) {
    const AttentionProblem& p = of.p;
    const QueryBlock<E, kWidth, 1> block(p, of.k, of.v);
    const Place& place = block.place;
    const Tile<kWidth> queries = block.owned(0);
    const int length = block.length, all_keys = block.all_keys, keys = block.keys, own = block.own, first = block.first;
    const Scores<E, kGeneral> scoring(p, of.mask, place.b, place.h, place.head);
    PhiloxReader words(p.stream);
    Softmax<kM> softmax(kGeneral ? 1.0f : scoring.scale);
    Sums out[kM][kWidth / 8];
    clear(out);
    if (keys > 0) {
      copy_rows<kRows, kTeam>(queries, of.q.rows(place.b, place.h, place.first, length));
      block.copy(0);
    }
    commit();
    for (int key = 0; key < keys; key += kStreamed) {
      wait_for_copies<0>();
      __syncthreads();  // this tile is there, and the one before is not in use any more
      if (key + kStreamed < keys) block.copy(key + kStreamed);
      commit();
      if (p.causal && key > first + 16 * kM - 1) continue;  // none of this warp's rows sees it
      Sums scores[kM][kStreamed / 8];
      multiply_rows<E>(scores, queries, own, block.stage(key, 0));
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
      softmax.add(scores, [&](int m, int r, float factor) {
#pragma unroll
        for (int n = 0; n < kWidth / 8; ++n) {
          out[m][n][2 * r] *= factor;
          out[m][n][2 * r + 1] *= factor;
        }
      });
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
      add_product<E>(out, scores, block.stage(key, 1));
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

template <class E, int kWidth, bool kGeneral>
auto forward_choice() {
  return Choice{forward_on_tensor_cores<E, kWidth, kGeneral>, shared_bytes<kWidth>(1)};
}

template <class E, int kWidth, bool kGeneral>
bool run_forward(KernelContext& context, Views outputs, Views inputs, const AttentionProblem& p) {
  const auto choice = forward_choice<E, kWidth, kGeneral>();
  if (!fits(context, reinterpret_cast<const void*>(choice.kernel), kCapability, choice.shared_bytes)) return false;
  launch(context, shape_of(choice, p.length, inputs[0].sizes[0] * p.heads), choice.kernel,
         Forward<E>{p, outputs[0], outputs[1].as<float>(), inputs[0], inputs[1], inputs[2], AttentionMask(inputs[3])});
  return true;
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

}  // namespace tenon::cuda
