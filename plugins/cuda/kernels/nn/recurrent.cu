// The elementwise part of recurrent cells: gates to state, and back. Operands are matrices whose rows are dense; which
// columns mean what is in kernel/README.md.
#include <tenon/kernel/attributes/recurrent.h>

#include "kernels/launch.h"
#include "kernels/offsets.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct Rows {
  explicit Rows(const TensorView& view) : first(view.as<T>()), step(view.rank == 2 ? view.strides[0] : 0) {}
  __device__ T* operator[](i64 row) const { return first + row * step; }
  T* first;
  i64 step;
};

template <class T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

// Cells: step(row r, column j of H columns) computes one element of the state.
template <class T>
struct Lstm {
  Rows<T> gates, c, h;
  Rows<const T> sums, c_prev;
  Lstm(Views out, Views in, const RecurrentAttributes&)
      : gates(out[0]), c(out[1]), h(out[2]), sums(in[0]), c_prev(in[1]) {}
  __device__ void step(i64 r, i64 j, i64 n) const {
    const T* const x = sums[r];
    const T input = sigmoid(x[j]), forget = sigmoid(x[n + j]), fresh = tanh(x[2 * n + j]),
            output = sigmoid(x[3 * n + j]);
    const T value = forget * c_prev[r][j] + input * fresh;
    T* const g = gates[r];
    g[j] = input;
    g[n + j] = forget;
    g[2 * n + j] = fresh;
    g[3 * n + j] = output;
    c[r][j] = value;
    h[r][j] = output * tanh(value);
  }
};

template <class T>
struct LstmBackward {
  Rows<T> dsums, dc_prev;
  Rows<const T> gates, c_prev, c, dh, dc;
  LstmBackward(Views out, Views in, const RecurrentAttributes&)
      : dsums(out[0]), dc_prev(out[1]), gates(in[0]), c_prev(in[1]), c(in[2]), dh(in[3]), dc(in[4]) {}
  __device__ void step(i64 r, i64 j, i64 n) const {
    const T* const g = gates[r];
    const T input = g[j], forget = g[n + j], fresh = g[2 * n + j], output = g[3 * n + j];
    const T squashed = tanh(c[r][j]), dhidden = dh[r][j];
    const T d = dc[r][j] + dhidden * output * (T(1) - squashed * squashed);
    T* const to = dsums[r];
    to[j] = d * fresh * input * (T(1) - input);
    to[n + j] = d * c_prev[r][j] * forget * (T(1) - forget);
    to[2 * n + j] = d * input * (T(1) - fresh * fresh);
    to[3 * n + j] = dhidden * squashed * output * (T(1) - output);
    dc_prev[r][j] = d * forget;
  }
};

template <class T>
struct Gru {
  Rows<T> saved, h;
  Rows<const T> x, u, h_prev;
  Gru(Views out, Views in, const RecurrentAttributes&) : saved(out[0]), h(out[1]), x(in[0]), u(in[1]), h_prev(in[2]) {}
  __device__ void step(i64 r, i64 j, i64 n) const {
    const T *const a = x[r], *const b = u[r];
    const T reset = sigmoid(a[j] + b[j]), update = sigmoid(a[n + j] + b[n + j]);
    const T fresh = tanh(a[2 * n + j] + reset * b[2 * n + j]);
    T* const s = saved[r];
    s[j] = reset;
    s[n + j] = update;
    s[2 * n + j] = fresh;
    s[3 * n + j] = b[2 * n + j];
    h[r][j] = fresh + update * (h_prev[r][j] - fresh);
  }
};

template <class T>
struct GruBackward {
  Rows<T> dx, du, dh_prev;
  Rows<const T> saved, h_prev, dh;
  GruBackward(Views out, Views in, const RecurrentAttributes&)
      : dx(out[0]), du(out[1]), dh_prev(out[2]), saved(in[0]), h_prev(in[1]), dh(in[2]) {}
  __device__ void step(i64 r, i64 j, i64 n) const {
    const T* const s = saved[r];
    const T reset = s[j], update = s[n + j], fresh = s[2 * n + j], d = dh[r][j];
    const T dnew = d * (T(1) - update) * (T(1) - fresh * fresh);
    T *const to_x = dx[r], *const to_u = du[r];
    to_x[j] = to_u[j] = dnew * s[3 * n + j] * reset * (T(1) - reset);
    to_x[n + j] = to_u[n + j] = d * (h_prev[r][j] - fresh) * update * (T(1) - update);
    to_x[2 * n + j] = dnew;
    to_u[2 * n + j] = dnew * reset;
    dh_prev[r][j] = d * update;
  }
};

template <class T>
struct Rnn {
  Rows<T> h;
  Rows<const T> sums;
  bool relu;
  Rnn(Views out, Views in, const RecurrentAttributes& a) : h(out[0]), sums(in[0]), relu(a.relu) {}
  __device__ void step(i64 r, i64 j, i64) const {
    const T x = sums[r][j];
    h[r][j] = !relu ? tanh(x) : x < T(0) ? T(0) : x;  // nan stays
  }
};

template <class T>
struct RnnBackward {
  Rows<T> dsums;
  Rows<const T> h, dh;
  bool relu;
  RnnBackward(Views out, Views in, const RecurrentAttributes& a) : dsums(out[0]), h(in[0]), dh(in[1]), relu(a.relu) {}
  __device__ void step(i64 r, i64 j, i64) const {
    const T y = h[r][j], d = dh[r][j];
    dsums[r][j] = !relu ? d * (T(1) - y * y) : y <= T(0) ? T(0) : d;  // at nan, too
  }
};

template <class Cell>
__global__ void cell_kernel(Cell cell, i64 rows, i64 width) {
  for (i64 i = first_item(); i < rows * width; i += all_items()) cell.step(i / width, i % width, width);
}

/// state: which output has the sizes of the state.
template <template <class> class Cell, int state>
void kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const RecurrentAttributes given =
      attributes != nullptr ? *static_cast<const RecurrentAttributes*>(attributes) : RecurrentAttributes{};
  const TensorView& h = outputs[state];
  const auto run = [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(h.element_count()), .block = kThreads}, cell_kernel<Cell<T>>,
           Cell<T>(outputs, inputs, given), h.sizes[0], h.sizes[1]);
  };
  if (h.dtype == Dtype::kFloat32) return run(Type<float>{});
  if (h.dtype == Dtype::kFloat64) return run(Type<double>{});
  refuse_dtype("recurrent cell", h.dtype);
}

}  // namespace

void add_recurrent(const KernelSink& sink) {
  sink.add(sink.host, "lstm_cell", &kernel<Lstm, 2>);
  sink.add(sink.host, "lstm_cell_backward", &kernel<LstmBackward, 1>);
  sink.add(sink.host, "gru_cell", &kernel<Gru, 1>);
  sink.add(sink.host, "gru_cell_backward", &kernel<GruBackward, 2>);
  sink.add(sink.host, "rnn_cell", &kernel<Rnn, 0>);
  sink.add(sink.host, "rnn_cell_backward", &kernel<RnnBackward, 0>);
}

}  // namespace tenon::cuda
