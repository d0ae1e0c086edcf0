// The recurrence in operators that differentiate themselves: the meaning of a layer, and its second derivative.
#include <tenon/ops/nn/recurrent/recurrence.h>

#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/shape/concat.h>

#include <algorithm>

namespace tenon::ops {

Steps::Steps(std::vector<std::int64_t> batch_sizes) : sizes(std::move(batch_sizes)) {
  offsets.push_back(0);
  for (const std::int64_t size : sizes) offsets.push_back(offsets.back() + size);
}
Steps Steps::plain(std::int64_t steps, std::int64_t batch) {
  return Steps(std::vector<std::int64_t>(static_cast<std::size_t>(steps), batch));
}

RecurrentState step_composite(Recurrence kind, const Tensor& projected, const RecurrentState& state,
                              const RecurrentWeights& weights) {
  const Tensor recurrent = linear(state.h, weights.w_hh, weights.b_hh);
  switch (kind) {
    case Recurrence::kTanh:
      return {(projected + recurrent).tanh(), {}};
    case Recurrence::kRelu:
      return {(projected + recurrent).relu(), {}};
    case Recurrence::kGru: {
      const auto x = projected.chunk(3, 1);
      const auto u = recurrent.chunk(3, 1);
      const Tensor reset = (x[0] + u[0]).sigmoid();
      const Tensor update = (x[1] + u[1]).sigmoid();
      const Tensor fresh = (x[2] + reset * u[2]).tanh();
      return {fresh + update * (state.h - fresh), {}};
    }
    case Recurrence::kLstm:
      break;
  }
  const auto gates = (projected + recurrent).chunk(4, 1);
  const Tensor c = gates[1].sigmoid() * state.c + gates[0].sigmoid() * gates[2].tanh();
  const Tensor h = gates[3].sigmoid() * c.tanh();
  return {weights.w_hr.defined() ? linear(h, weights.w_hr) : h, c};
}

namespace {

/// Rows begin … end of every part of the state.
RecurrentState rows_of(const RecurrentState& state, std::int64_t begin, std::int64_t end) {
  return {state.h.narrow(0, begin, end - begin), state.c.defined() ? state.c.narrow(0, begin, end - begin) : Tensor()};
}
RecurrentState join(const RecurrentState& upper, const RecurrentState& lower) {
  return {cat({upper.h, lower.h}), upper.c.defined() ? cat({upper.c, lower.c}) : Tensor()};
}

}  // namespace

Tensor run_layer_composite(Recurrence kind, const Tensor& input, const Steps& steps, bool reverse,
                           const RecurrentWeights& weights, RecurrentState& state) {
  const Tensor projected = linear(input, weights.w_ih, weights.b_ih);
  const std::int64_t count = steps.count();
  std::vector<Tensor> outputs(static_cast<std::size_t>(count));
  const RecurrentState initial = state;
  std::vector<RecurrentState> finished;  // of sequences that ended, the shortest last
  std::int64_t live = reverse ? 0 : steps.sizes[0];
  if (reverse) state = rows_of(initial, 0, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t t = reverse ? count - 1 - i : i;
    const auto at = static_cast<std::size_t>(t);
    const std::int64_t rows = steps.sizes[at];
    if (rows < live) {
      finished.push_back(rows_of(state, rows, live));
      state = rows_of(state, 0, rows);
    } else if (rows > live) {
      const RecurrentState fresh = rows_of(initial, live, rows);
      state = live == 0 ? fresh : join(state, fresh);
    }
    live = rows;
    state = step_composite(kind, projected.narrow(0, steps.offsets[at], rows), state, weights);
    outputs[at] = state.h;
  }
  for (auto it = finished.rbegin(); it != finished.rend(); ++it) state = join(state, *it);
  return cat(outputs);
}

}  // namespace tenon::ops
