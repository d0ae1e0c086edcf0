// The elementwise part of recurrent cells: gates to state, and back. Operands are matrices whose rows are dense.
//
//   lstm_cell            gates, c, h <- gates, c_prev         gates (n, 4 H) in the order input, forget, cell, output
//   hold
//                                                             sums on entry and their activations on return
//   lstm_cell_backward   dgates, dc_prev <- gates, c_prev, c, dh, dc
//   gru_cell             saved, h <- x, u, h_prev             x, u (n, 3 H): sums of input and of state in the order
//   reset,
//                                                             update, new; saved (n, 4 H): r, z, new, u's new
//   gru_cell_backward    dx, du, dh_prev <- saved, h_prev, dh
//   rnn_cell(_backward)  h <- sum; dsum <- h, dh              RecurrentAttributes chooses tanh or relu
#include <tenon/kernel/attributes/recurrent.h>

#include "kernels/pointwise/lanes.h"
#include "kernels/pointwise/math.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 2048;  // elements of a part: an LSTM element is five exponentials

template <class T>
struct Rows {
  explicit Rows(const TensorView& view)
      : first(static_cast<T*>(view.data)), step(view.rank == 2 && view.sizes[0] > 1 ? view.strides[0] : 0) {}
  T* operator[](i64 row) const { return first + row * step; }
  T* first;
  i64 step;
};

template <class Row>
void over_rows(const TensorView& h, const Row& row) {
  const i64 width = h.sizes[1];
  parallel(h.sizes[0], kGrain / larger<i64>(1, width) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) row(r, width);
  });
}

template <class T>
void lstm(Views outputs, Views inputs, const RecurrentAttributes&) {
  const Rows<T> gates(at(outputs, 0)), c(at(outputs, 1)), h(at(outputs, 2));
  const Rows<const T> sums(at(inputs, 0)), c_prev(at(inputs, 1));
  over_rows(at(outputs, 2), [&](i64 r, i64 n) {
    const T *in = sums[r], *old = c_prev[r];
    T *g = gates[r], *cell = c[r], *hidden = h[r];
#pragma GCC ivdep
    for (i64 j = 0; j < n; ++j) {
      const T input = math::sigmoid(in[j]), forget = math::sigmoid(in[n + j]);
      const T fresh = math::tanh(in[2 * n + j]), output = math::sigmoid(in[3 * n + j]);
      const T value = forget * old[j] + input * fresh;
      g[j] = input;
      g[n + j] = forget;
      g[2 * n + j] = fresh;
      g[3 * n + j] = output;
      cell[j] = value;
      hidden[j] = output * math::tanh(value);
    }
  });
}

template <class T>
void lstm_back(Views outputs, Views inputs, const RecurrentAttributes&) {
  const Rows<T> dgates(at(outputs, 0)), dc_prev(at(outputs, 1));
  const Rows<const T> gates(at(inputs, 0)), c_prev(at(inputs, 1)), c(at(inputs, 2)), dh(at(inputs, 3)),
      dc(at(inputs, 4));
  over_rows(at(inputs, 3), [&](i64 r, i64 n) {
    const T *g = gates[r], *old = c_prev[r], *cell = c[r], *dhidden = dh[r], *dcell = dc[r];
    T *dg = dgates[r], *dold = dc_prev[r];
#pragma GCC ivdep
    for (i64 j = 0; j < n; ++j) {
      const T input = g[j], forget = g[n + j], fresh = g[2 * n + j], output = g[3 * n + j];
      const T squashed = math::tanh(cell[j]);
      const T d = dcell[j] + dhidden[j] * output * (T(1) - squashed * squashed);
      dg[j] = d * fresh * input * (T(1) - input);
      dg[n + j] = d * old[j] * forget * (T(1) - forget);
      dg[2 * n + j] = d * input * (T(1) - fresh * fresh);
      dg[3 * n + j] = dhidden[j] * squashed * output * (T(1) - output);
      dold[j] = d * forget;
    }
  });
}

template <class T>
void gru(Views outputs, Views inputs, const RecurrentAttributes&) {
  const Rows<T> saved(at(outputs, 0)), h(at(outputs, 1));
  const Rows<const T> xs(at(inputs, 0)), us(at(inputs, 1)), h_prev(at(inputs, 2));
  over_rows(at(outputs, 1), [&](i64 r, i64 n) {
    const T *x = xs[r], *u = us[r], *old = h_prev[r];
    T *s = saved[r], *hidden = h[r];
#pragma GCC ivdep
    for (i64 j = 0; j < n; ++j) {
      const T reset = math::sigmoid(x[j] + u[j]), update = math::sigmoid(x[n + j] + u[n + j]);
      const T fresh = math::tanh(x[2 * n + j] + reset * u[2 * n + j]);
      s[j] = reset;
      s[n + j] = update;
      s[2 * n + j] = fresh;
      s[3 * n + j] = u[2 * n + j];
      hidden[j] = fresh + update * (old[j] - fresh);
    }
  });
}

template <class T>
void gru_back(Views outputs, Views inputs, const RecurrentAttributes&) {
  const Rows<T> dxs(at(outputs, 0)), dus(at(outputs, 1)), dh_prev(at(outputs, 2));
  const Rows<const T> saved(at(inputs, 0)), h_prev(at(inputs, 1)), dh(at(inputs, 2));
  over_rows(at(inputs, 2), [&](i64 r, i64 n) {
    const T *s = saved[r], *old = h_prev[r], *dhidden = dh[r];
    T *dx = dxs[r], *du = dus[r], *dold = dh_prev[r];
#pragma GCC ivdep
    for (i64 j = 0; j < n; ++j) {
      const T reset = s[j], update = s[n + j], fresh = s[2 * n + j], d = dhidden[j];
      const T dnew = d * (T(1) - update) * (T(1) - fresh * fresh);
      const T dupdate = d * (old[j] - fresh) * update * (T(1) - update);
      const T dreset = dnew * s[3 * n + j] * reset * (T(1) - reset);
      dx[j] = du[j] = dreset;
      dx[n + j] = du[n + j] = dupdate;
      dx[2 * n + j] = dnew;
      du[2 * n + j] = dnew * reset;
      dold[j] = d * update;
    }
  });
}

template <class T>
void rnn(Views outputs, Views inputs, const RecurrentAttributes& attributes) {
  const Rows<T> h(at(outputs, 0));
  const Rows<const T> sums(at(inputs, 0));
  const bool relu = attributes.relu;
  over_rows(at(outputs, 0), [&](i64 r, i64 n) {
    const T* x = sums[r];
    T* y = h[r];
    if (relu) {
      for (i64 j = 0; j < n; ++j) y[j] = x[j] < T(0) ? T(0) : x[j];  // nan stays
    } else {
      for (i64 j = 0; j < n; ++j) y[j] = math::tanh(x[j]);
    }
  });
}

template <class T>
void rnn_back(Views outputs, Views inputs, const RecurrentAttributes& attributes) {
  const Rows<T> dsums(at(outputs, 0));
  const Rows<const T> h(at(inputs, 0)), dh(at(inputs, 1));
  const bool relu = attributes.relu;
  over_rows(at(outputs, 0), [&](i64 r, i64 n) {
    const T *y = h[r], *d = dh[r];
    T* dx = dsums[r];
    if (relu) {
      for (i64 j = 0; j < n; ++j) dx[j] = y[j] <= T(0) ? T(0) : d[j];  // at nan, too
    } else {
      for (i64 j = 0; j < n; ++j) dx[j] = d[j] * (T(1) - y[j] * y[j]);
    }
  });
}

using Body = void (*)(Views, Views, const RecurrentAttributes&);

template <Body f32, Body f64>
void kernel(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  static const RecurrentAttributes kPlain;
  const auto& given = attributes ? *static_cast<const RecurrentAttributes*>(attributes) : kPlain;
  const Dtype dtype = at(outputs, 0).dtype;
  if (numel(at(outputs, 0)) == 0) return;
  if (dtype == Dtype::kFloat32) return f32(outputs, inputs, given);
  if (dtype == Dtype::kFloat64) return f64(outputs, inputs, given);
  refuse_dtype("recurrent cell", dtype);
}

}  // namespace

void add_recurrent(const KernelSink& sink) {
  sink.add(sink.host, "lstm_cell", &kernel<&lstm<float>, &lstm<double>>);
  sink.add(sink.host, "lstm_cell_backward", &kernel<&lstm_back<float>, &lstm_back<double>>);
  sink.add(sink.host, "gru_cell", &kernel<&gru<float>, &gru<double>>);
  sink.add(sink.host, "gru_cell_backward", &kernel<&gru_back<float>, &gru_back<double>>);
  sink.add(sink.host, "rnn_cell", &kernel<&rnn<float>, &rnn<double>>);
  sink.add(sink.host, "rnn_cell_backward", &kernel<&rnn_back<float>, &rnn_back<double>>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
