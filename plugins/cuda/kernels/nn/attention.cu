// Attention without its matrix of weights, after Dao et al., "FlashAttention", 2022: tiles of scores in shared memory,
// the softmax carried along from tile to tile. The backward computes the weights again from each row's logarithm of the
// sum, or where that is large, and its digits are lost, from the row's largest score and the logarithm of the sum above
// it, found again; every gradient is summed by one block in a fixed order.
//
// Heads that are wider than a tile are cut into chunks of columns of the result, one a block; each computes the scores.
// Elements E of 16 bits are float (T) in shared memory and in every sum; results are rounded once.
#include "kernels/linalg/tiles.cuh"
#include "kernels/nn/attention.cuh"
#include "kernels/nn/attention_tensor_cores.h"
#include "kernels/nn/row_softmax.cuh"

namespace tenon::cuda {
namespace {

using namespace tiles;

constexpr int kDeltaRows = 8;  // of a block: a warp each

// Of a row of scores: what its softmax subtracts, in two steps, and what the slopes of its weights share.
template <class T>
struct RowState {
  T most, log_total, delta;
};

// Which tile of which head this block works on, and which columns of its result.
template <class T>
struct Place {
  __device__ Place(i64 length, i64 heads) {
    const i64 tiles = (length + kTile<T> - 1) / kTile<T>;
    const i64 unit = blockIdx.x;
    head = unit / tiles;
    b = head / heads;
    h = head % heads;
    first = unit % tiles * kTile<T>;
    column = static_cast<int>(blockIdx.y) * kTile<T>;
  }
  i64 head, b, h, first;
  int column;
};
template <class T>
dim3 grid_of(i64 length, i64 heads, int columns) {
  return dim3(static_cast<unsigned>((length + kTile<T> - 1) / kTile<T> * heads),
              static_cast<unsigned>((columns + kTile<T> - 1) / kTile<T>));
}

template <class T>
__device__ int rows_left(i64 all, i64 first) {
  return static_cast<int>(all - first < kTile<T> ? all - first : kTile<T>);
}
template <class E, class T>
__device__ Rows<E> rows_of(const Heads<const E>& heads, const Place<T>& place, i64 first, i64 all, int column = 0) {
  return {heads.at(place.b, place.h, first) + column, heads.row, rows_left<T>(all, first)};
}

// The score of query i for key j as softmax takes it, from the product of their rows.
template <class E, class T>
__device__ T score(const AttentionProblem& p, const AttentionMask& mask, const Place<T>& place, i64 i, i64 j,
                   T product) {
  constexpr T kNever = -static_cast<T>(INFINITY);
  if (i >= p.length || j >= p.keys || (p.causal && j > i)) return kNever;
  const T value = rounded_product(product, static_cast<T>(p.scale));
  if (mask.data == nullptr) return value;
  const i64 at = place.b * mask.strides[0] + place.h * mask.strides[1] + i * mask.strides[2] + j * mask.strides[3];
  if (mask.boolean) return static_cast<const std::uint8_t*>(mask.data)[at] != 0 ? value : kNever;
  return value + load_as<E, T>(static_cast<const E*>(mask.data)[at]);
}

// The scores of a tile of queries and the keys from `key` on, in shared memory.
template <class E, class T>
__device__ void score_tile(const AttentionProblem& p, const AttentionMask& mask, const Heads<const E>& q,
                           const Heads<const E>& k, const Place<T>& place, i64 key, Slice<T>& left, Slice<T>& right,
                           Square<T>& scores) {
  const int row = own_row<T>(), column = own_column<T>();
  Sums<T> sums;
  multiply_rows<T>(sums, rows_of(q, place, place.first, p.length), rows_of(k, place, key, p.keys), p.width, left,
                   right);
#pragma unroll
  for (int i = 0; i < kSide<T>; ++i) {
#pragma unroll
    for (int j = 0; j < kSide<T>; ++j) {
      scores.of[row + i][column + j] = score<E>(p, mask, place, place.first + row + i, key + column + j, sums[i][j]);
    }
  }
  __syncthreads();
}

template <class E>
__global__ void __launch_bounds__(kThreads) forward(AttentionProblem p, Heads<E> y, Compute<E>* lse, Heads<const E> q,
                                                    Heads<const E> k, Heads<const E> v, AttentionMask mask) {
  using T = Compute<E>;
  constexpr T kNever = RowSoftmax<T>::kNever;
  constexpr int kOwn = RowSoftmax<T>::kOwn;
  __shared__ Slice<T> left, right;
  __shared__ Square<T> weights;
  __shared__ T factors[kTile<T>];
  const Place<T> place(p.length, p.heads);
  const int row = own_row<T>(), column = own_column<T>();
  const int line = static_cast<int>(threadIdx.x) / kParts<T>, part = static_cast<int>(threadIdx.x) % kParts<T>;
  const i64 query = place.first + line;
  const i64 last = place.first + kTile<T>;
  const i64 keys = p.causal && last < p.keys ? last : p.keys;  // that any row sees

  RowSoftmax<T> softmax;  // of the row `line`
  Sums<T> out;
  clear<T>(out);
  PhiloxReader words(p.stream);
  for (i64 key = 0; key < keys; key += kTile<T>) {
    score_tile<E>(p, mask, q, k, place, key, left, right, weights);
    T* const own = &weights.of[line][part * kOwn];
    const T factor = softmax.add(own);
    if (p.drops && query < p.length) {
      const i64 element = (place.head * p.length + query) * p.keys + key + part * kOwn;
      for (int j = 0; j < kOwn; ++j)
        own[j] = words.word(element + j) < p.dropped_below ? T(0) : own[j] * static_cast<T>(p.kept);
    }
    if (part == 0) factors[line] = factor;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kSide<T>; ++i) {
#pragma unroll
      for (int j = 0; j < kSide<T>; ++j) out[i][j] *= factors[row + i];
    }
    add_square<false, T>(out, weights, rows_of(v, place, key, p.keys, place.column), p.value_width - place.column,
                         right);
    __syncthreads();
  }

  // A query that may see nothing has weights of 0, also in the backward: hence infinity.
  const bool blind = softmax.most == kNever;
  if (part == 0) factors[line] = blind ? T(0) : T(1) / softmax.total;
  if (part == 0 && place.column == 0 && query < p.length)
    lse[place.head * p.length + query] = blind ? -kNever : softmax.most + log(softmax.total);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kSide<T>; ++i) {
    if (place.first + row + i >= p.length) continue;
    E* const to = y.at(place.b, place.h, place.first + row + i) + place.column + column;
#pragma unroll
    for (int j = 0; j < kSide<T>; ++j) {
      if (place.column + column + j < p.value_width) to[j] = store_as<E>(out[i][j] * factors[row + i]);
    }
  }
}

// The states of rows whose lse keeps its digits: delta = sum_j w_j dw_j = y . dy.
template <class E>
__global__ void row_states(AttentionProblem p, RowState<Compute<E>>* states, const Compute<E>* lse, Heads<const E> y,
                           Heads<const E> dy, i64 rows) {
  using T = Compute<E>;
  const i64 line = i64{blockIdx.x} * kDeltaRows + threadIdx.y;
  if (line >= rows) return;
  const i64 head = line / p.length, b = head / p.heads, h = head % p.heads;
  const E *const out = y.at(b, h, line % p.length), *const dout = dy.at(b, h, line % p.length);
  T sum = 0;
  for (int c = static_cast<int>(threadIdx.x); c < p.value_width; c += 32) sum += load_as(out[c]) * load_as(dout[c]);
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
  if (threadIdx.x == 0) states[line] = {lse[line], T(0), sum};
}

template <class E>
struct Backward {
  AttentionProblem p;
  Heads<const E> dy, q, k, v;
  RowState<Compute<E>>* states;
  AttentionMask mask;
};

template <class T>
struct Shared {
  Slice<T> left, right;
  Square<T> weights, slopes;
};

template <class T>
__device__ bool is_large(T log_sum) {
  return fabs(log_sum) > T(kLargeLogSum) && log_sum != static_cast<T>(INFINITY);
}

// The states of rows with a large sum: their largest score, and the logarithm of the sum above it.
template <class E>
__global__ void __launch_bounds__(kThreads) sum_again(Backward<E> of) {
  using T = Compute<E>;
  __shared__ Slice<T> left, right;
  __shared__ Square<T> scores;
  const AttentionProblem& p = of.p;
  const Place<T> place(p.length, p.heads);
  const int line = static_cast<int>(threadIdx.x) / kParts<T>, part = static_cast<int>(threadIdx.x) % kParts<T>;
  const i64 query = place.first + line;
  RowState<T>* const state = query < p.length ? of.states + place.head * p.length + query : nullptr;
  const bool again = state != nullptr && is_large(state->most);
  if (__syncthreads_or(again) == 0) return;
  const i64 last = place.first + kTile<T>;
  const i64 keys = p.causal && last < p.keys ? last : p.keys;
  RowSoftmax<T> softmax;
  for (i64 key = 0; key < keys; key += kTile<T>) {
    score_tile<E>(p, of.mask, of.q, of.k, place, key, left, right, scores);
    softmax.add(&scores.of[line][part * RowSoftmax<T>::kOwn]);
    __syncthreads();
  }
  if (again && part == 0) {
    state->most = softmax.most;
    state->log_total = log(softmax.total);
  }
}

// The weights and the slopes of the scores for a tile of queries and a tile of keys.
template <class E, class T>
__device__ void weights_and_slopes(const Backward<E>& of, const Place<T>& place, i64 query, i64 key, Shared<T>& s) {
  const AttentionProblem& p = of.p;
  const int row = own_row<T>(), column = own_column<T>();
  Sums<T> scores, dweights;
  multiply_rows<T>(scores, rows_of(of.q, place, query, p.length), rows_of(of.k, place, key, p.keys), p.width, s.left,
                   s.right);
  multiply_rows<T>(dweights, rows_of(of.dy, place, query, p.length), rows_of(of.v, place, key, p.keys), p.value_width,
                   s.left, s.right);
  PhiloxReader words(p.stream);
#pragma unroll
  for (int i = 0; i < kSide<T>; ++i) {
    const i64 line = place.head * p.length + query + row + i;
    const bool there = query + row + i < p.length;
    const RowState<T> state = there ? of.states[line] : RowState<T>{T(0), T(0), T(0)};
#pragma unroll
    for (int j = 0; j < kSide<T>; ++j) {
      const i64 to = key + column + j;
      const T value = score<E>(p, of.mask, place, query + row + i, to, scores[i][j]);
      const T weight = exp(value - state.most - state.log_total);
      T factor = 1;
      if (p.drops && there && to < p.keys)
        factor = words.word(line * p.keys + to) < p.dropped_below ? T(0) : static_cast<T>(p.kept);
      s.weights.of[row + i][column + j] = weight * factor;
      s.slopes.of[row + i][column + j] = weight * (dweights[i][j] * factor - state.delta);
    }
  }
}

template <class E, class T>
__device__ void store(const Heads<E>& to, const Place<T>& place, i64 all, int width, const Sums<T>& sums, T scale) {
  const int row = own_row<T>(), column = place.column + own_column<T>();
#pragma unroll
  for (int i = 0; i < kSide<T>; ++i) {
    if (place.first + row + i >= all) continue;
    E* const out = to.at(place.b, place.h, place.first + row + i);
#pragma unroll
    for (int j = 0; j < kSide<T>; ++j) {
      if (column + j < width) out[column + j] = store_as<E>(sums[i][j] * scale);
    }
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads) backward_queries(Backward<E> of, Heads<E> dq) {
  using T = Compute<E>;
  __shared__ Shared<T> s;
  const AttentionProblem& p = of.p;
  const Place<T> place(p.length, p.heads);
  const i64 last = place.first + kTile<T>;
  const i64 keys = p.causal && last < p.keys ? last : p.keys;
  Sums<T> sums;
  clear<T>(sums);
  for (i64 key = 0; key < keys; key += kTile<T>) {
    weights_and_slopes(of, place, place.first, key, s);
    add_square<false, T>(sums, s.slopes, rows_of(of.k, place, key, p.keys, place.column), p.width - place.column,
                         s.right);
    __syncthreads();
  }
  store(dq, place, p.length, p.width, sums, static_cast<T>(p.scale));
}

template <class E>
__global__ void __launch_bounds__(kThreads) backward_keys(Backward<E> of, Heads<E> dk, Heads<E> dv) {
  using T = Compute<E>;
  __shared__ Shared<T> s;
  const AttentionProblem& p = of.p;
  const Place<T> place(p.keys, p.heads);
  Sums<T> dkeys, dvalues;
  clear<T>(dkeys);
  clear<T>(dvalues);
  for (i64 query = p.causal ? place.first : 0; query < p.length; query += kTile<T>) {
    weights_and_slopes(of, place, query, place.first, s);
    add_square<true, T>(dvalues, s.weights, rows_of(of.dy, place, query, p.length, place.column),
                        p.value_width - place.column, s.right);
    add_square<true, T>(dkeys, s.slopes, rows_of(of.q, place, query, p.length, place.column), p.width - place.column,
                        s.right);
    __syncthreads();
  }
  store(dk, place, p.keys, p.width, dkeys, static_cast<T>(p.scale));
  store(dv, place, p.keys, p.value_width, dvalues, T(1));
}

template <class E>
void run_forward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  using T = Compute<E>;
  const TensorView &q = inputs[0], &k = inputs[1], &v = inputs[2];
  const AttentionProblem p = attention_problem_of(q, k, v, attributes);
  // Even without columns of values there is a logarithm to write.
  const dim3 grid = grid_of<T>(p.length, q.sizes[0] * p.heads, p.value_width > 0 ? p.value_width : 1);
  launch(context, {.grid = grid, .block = kThreads}, forward<E>, p, Heads<E>(outputs[0]), outputs[1].as<T>(),
         Heads<const E>(q), Heads<const E>(k), Heads<const E>(v), AttentionMask(inputs[3]));
}

template <class E>
void run_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  using T = Compute<E>;
  const TensorView &dy = inputs[0], &q = inputs[1], &k = inputs[2], &v = inputs[3], &y = inputs[4];
  const AttentionProblem p = attention_problem_of(q, k, v, attributes);
  const i64 heads = q.sizes[0] * p.heads, rows = heads * p.length;
  auto* const states = static_cast<RowState<T>*>(context.scratch(static_cast<std::size_t>(rows) * sizeof(RowState<T>)));
  launch(context, {.grid = blocks_for(rows, kDeltaRows), .block = dim3(kWarp, kDeltaRows)}, row_states<E>, p, states,
         inputs[5].as<T>(), Heads<const E>(y), Heads<const E>(dy), rows);
  const Backward<E> of{p,      Heads<const E>(dy),      Heads<const E>(q), Heads<const E>(k), Heads<const E>(v),
                       states, AttentionMask(inputs[6])};
  launch(context, {.grid = grid_of<T>(p.length, heads, 1), .block = kThreads}, sum_again<E>, of);
  launch(context, {.grid = grid_of<T>(p.length, heads, p.width), .block = kThreads}, backward_queries<E>, of,
         Heads<E>(outputs[0]));
  launch(context,
         {.grid = grid_of<T>(p.keys, heads, p.width > p.value_width ? p.width : p.value_width), .block = kThreads},
         backward_keys<E>, of, Heads<E>(outputs[1]), Heads<E>(outputs[2]));
}

void attention(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (outputs[1].element_count() == 0 || attention_on_tensor_cores(context, outputs, inputs, attributes)) return;
  floats_only("attention", inputs[0].dtype,
              [&]<class E>(Type<E>) { run_forward<E>(context, outputs, inputs, attributes); });
}

void attention_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (attention_backward_on_tensor_cores(context, outputs, inputs, attributes)) return;
  floats_only("attention_backward", inputs[0].dtype,
              [&]<class E>(Type<E>) { run_backward<E>(context, outputs, inputs, attributes); });
}

}  // namespace

void add_attention(const KernelSink& sink) {
  sink.add(sink.host, "attention", &attention);
  sink.add(sink.host, "attention_backward", &attention_backward);
}

}  // namespace tenon::cuda
