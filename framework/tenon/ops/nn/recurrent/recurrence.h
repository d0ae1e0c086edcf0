// One direction of one recurrent layer over packed rows: what rnn.cpp stacks into networks.
#pragma once

#include <tenon/tensor/tensor.h>

#include <vector>

namespace tenon::ops {

enum class Recurrence { kTanh, kRelu, kLstm, kGru };

/// Gates per hidden unit: the rows of w_ih are gates * hidden.
constexpr std::int64_t gates_of(Recurrence kind) {
  return kind == Recurrence::kLstm ? 4 : kind == Recurrence::kGru ? 3 : 1;
}

/// Weights of one layer and direction, undefined where there is none; w_hr projects the hidden state of an LSTM.
struct RecurrentWeights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

/// The hidden state, and the cell state of an LSTM; undefined otherwise.
struct RecurrentState {
  Tensor h, c;
};

/// Rows of step t are offsets[t] … offsets[t + 1]; their number never grows. A plain batch is B rows in every step.
struct TENON_API Steps {
  explicit Steps(std::vector<std::int64_t> batch_sizes);
  /// Steps of equal size, for sequences of one length.
  static Steps plain(std::int64_t steps, std::int64_t batch);
  /// The number of steps.
  std::int64_t count() const { return static_cast<std::int64_t>(sizes.size()); }
  /// The number of rows of all steps together.
  std::int64_t rows() const { return offsets.back(); }

  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> offsets;
};

/// Input (rows, input), state (B, hidden) before the first step (after the last one with `reverse`); returns the
/// outputs (rows, hidden or projected) and turns the state into the final one of each sequence.
TENON_API Tensor run_layer(Recurrence kind, const Tensor& input, const Steps& steps, bool reverse,
                           const RecurrentWeights& weights, RecurrentState& state);

/// The same, step by step with operators that differentiate themselves.
TENON_API Tensor run_layer_composite(Recurrence kind, const Tensor& input, const Steps& steps, bool reverse,
                                     const RecurrentWeights& weights, RecurrentState& state);

/// One step. `projected` = W x + b (rows, gates * hidden).
RecurrentState step_composite(Recurrence kind, const Tensor& projected, const RecurrentState& state,
                              const RecurrentWeights& weights);

}  // namespace tenon::ops
