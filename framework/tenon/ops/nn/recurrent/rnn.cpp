// Recurrent networks: layers stacked, directions side by side, dropout between layers.
#include <tenon/ops/nn/recurrent/rnn.h>

#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/nn/dropout.h>
#include <tenon/ops/nn/recurrent/recurrence.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/fresh.h>

#include <fmt/format.h>

namespace tenon {

using ops::Recurrence;
using ops::RecurrentState;
using ops::RecurrentWeights;
using ops::Steps;

namespace {

struct Network {
  Recurrence kind;
  bool has_biases;
  std::int64_t num_layers;
  double dropout;
  bool train;
  bool bidirectional;
};

std::vector<RecurrentWeights> gather_weights(const Network& network, TensorList weights, bool projected) {
  const std::size_t each = (network.has_biases ? 4u : 2u) + (projected ? 1u : 0u);
  const std::size_t cells = static_cast<std::size_t>(network.num_layers) * (network.bidirectional ? 2u : 1u);
  if (weights.size() != each * cells) {
    throw Error(fmt::format("rnn: {} layers in {} direction(s) with {} tensors each need {} weights, got {}",
                            network.num_layers, network.bidirectional ? 2 : 1, each, each * cells, weights.size()));
  }
  std::vector<RecurrentWeights> gathered;
  for (std::size_t i = 0; i < weights.size(); i += each) {
    RecurrentWeights cell{weights[i], weights[i + 1], {}, {}, {}};
    if (network.has_biases) {
      cell.b_ih = weights[i + 2];
      cell.b_hh = weights[i + 3];
    }
    if (projected) cell.w_hr = weights[i + each - 1];
    gathered.push_back(std::move(cell));
  }
  return gathered;
}

/// `input` packed as (rows, input); hx (layers * directions, B, hidden).
std::tuple<Tensor, Tensor, Tensor> run(const Network& network, Tensor input, const Steps& steps, const Tensor& h,
                                       const Tensor& c, TensorList weights) {
  const bool projected = c.defined() && c.size(2) != h.size(2);
  const std::vector<RecurrentWeights> cells = gather_weights(network, weights, projected);
  const std::int64_t directions = network.bidirectional ? 2 : 1;
  std::vector<Tensor> last_h, last_c;
  for (std::int64_t layer = 0; layer < network.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::int64_t cell = layer * directions + direction;
      RecurrentState state{h.select(0, cell), c.defined() ? c.select(0, cell) : Tensor()};
      outputs.push_back(
          ops::run_layer(network.kind, input, steps, direction == 1, cells[static_cast<std::size_t>(cell)], state));
      last_h.push_back(state.h);
      if (c.defined()) last_c.push_back(state.c);
    }
    input = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
    if (network.dropout > 0 && network.train && layer + 1 < network.num_layers) {
      input = tenon::dropout(input, network.dropout, true);
    }
  }
  return {input, stack(last_h), c.defined() ? stack(last_c) : Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> run_plain(const Network& network, const Tensor& input, bool batch_first,
                                             const Tensor& h, const Tensor& c, TensorList weights) {
  if (input.dim() != 3) throw Error(fmt::format("rnn: input must have 3 dimensions, got {}", input.dim()));
  const Tensor by_step = batch_first ? input.transpose(0, 1) : input;
  const std::int64_t steps = by_step.size(0);
  const std::int64_t batch = by_step.size(1);
  if (steps == 0) throw Error("Expected sequence length to be larger than 0 in RNN");
  auto [output, last_h, last_c] =
      run(network, by_step.reshape({steps * batch, input.size(2)}), Steps::plain(steps, batch), h, c, weights);
  const Tensor unpacked = output.view({steps, batch, output.size(1)});
  return {ops::as_owned(batch_first ? unpacked.transpose(0, 1) : unpacked), last_h, last_c};
}

std::tuple<Tensor, Tensor, Tensor> run_packed(const Network& network, const Tensor& data, const Tensor& batch_sizes,
                                              const Tensor& h, const Tensor& c, TensorList weights) {
  if (!batch_sizes.is_cpu()) throw Error("batch_sizes should always be on CPU");
  const Tensor dense = batch_sizes.contiguous();
  const auto* first = dense.data_ptr<std::int64_t>();
  std::vector<std::int64_t> sizes(first, first + dense.numel());
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] > sizes[i - 1])
      throw Error(fmt::format("batch_sizes must fall: step {} has {} rows after {}", i, sizes[i], sizes[i - 1]));
  }
  if (sizes.empty()) throw Error("Expected sequence length to be larger than 0 in RNN");
  return run(network, data, Steps(std::move(sizes)), h, c, weights);
}

void check_pair(TensorList hx) {
  if (hx.size() != 2) throw Error(fmt::format("lstm expects two hidden states, got {}", hx.size()));
}

/// Throws Error where a cell's state does not belong to its input and weights.
void check_cell_state(const Tensor& input, const Tensor& state, const Tensor& w_hh, int number) {
  if (!state.defined()) return;
  if (state.dim() != 2) {
    throw Error(fmt::format("a recurrent cell expects a state (batch, hidden), got {}", to_string(state.sizes())));
  }
  if (state.size(0) != input.size(0)) {
    throw Error(
        fmt::format("Input batch size {} doesn't match hidden{} batch size {}", input.size(0), number, state.size(0)));
  }
  if (state.size(1) != w_hh.size(1)) {
    throw Error(
        fmt::format("hidden{} has inconsistent hidden_size: got {}, expected {}", number, state.size(1), w_hh.size(1)));
  }
}

/// A sequence of one step.
RecurrentState cell(Recurrence kind, const Tensor& input, RecurrentState state, const RecurrentWeights& weights) {
  if (input.dim() != 2)
    throw Error(fmt::format("a recurrent cell expects an input (batch, features), got {}", to_string(input.sizes())));
  if (input.size(1) != weights.w_ih.size(1)) {
    throw Error(
        fmt::format("input has inconsistent input_size: got {} expected {}", input.size(1), weights.w_ih.size(1)));
  }
  check_cell_state(input, state.h, weights.w_hh, 0);
  check_cell_state(input, state.c, weights.w_hh, 1);
  ops::run_layer(kind, input, Steps::plain(1, input.size(0)), false, weights, state);
  ops::as_owned(state.h);
  if (state.c.defined()) ops::as_owned(state.c);
  return state;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList weights, bool has_biases,
                                        std::int64_t num_layers, double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  TENON_AUTOCAST(lstm, input, hx, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)
  check_pair(hx);
  return run_plain({Recurrence::kLstm, has_biases, num_layers, dropout, train, bidirectional}, input, batch_first,
                   hx[0], hx[1], weights);
}
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx,
                                        TensorList weights, bool has_biases, std::int64_t num_layers, double dropout,
                                        bool train, bool bidirectional) {
  TENON_AUTOCAST(lstm, data, batch_sizes, hx, weights, has_biases, num_layers, dropout, train, bidirectional)
  check_pair(hx);
  return run_packed({Recurrence::kLstm, has_biases, num_layers, dropout, train, bidirectional}, data, batch_sizes,
                    hx[0], hx[1], weights);
}

#define TENON_RECURRENT(name, kind)                                                                                    \
  std::tuple<Tensor, Tensor> name(const Tensor& input, const Tensor& hx, TensorList weights, bool has_biases,          \
                                  std::int64_t num_layers, double dropout, bool train, bool bidirectional,             \
                                  bool batch_first) {                                                                  \
    TENON_AUTOCAST(name, input, hx, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)       \
    auto [output, h, c] = run_plain({Recurrence::kind, has_biases, num_layers, dropout, train, bidirectional}, input,  \
                                    batch_first, hx, {}, weights);                                                     \
    return {output, h};                                                                                                \
  }                                                                                                                    \
  std::tuple<Tensor, Tensor> name(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList weights, \
                                  bool has_biases, std::int64_t num_layers, double dropout, bool train,                \
                                  bool bidirectional) {                                                                \
    TENON_AUTOCAST(name, data, batch_sizes, hx, weights, has_biases, num_layers, dropout, train, bidirectional)        \
    auto [output, h, c] = run_packed({Recurrence::kind, has_biases, num_layers, dropout, train, bidirectional}, data,  \
                                     batch_sizes, hx, {}, weights);                                                    \
    return {output, h};                                                                                                \
  }                                                                                                                    \
  Tensor name##_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,                    \
                     const Tensor& b_ih, const Tensor& b_hh) {                                                         \
    TENON_AUTOCAST(name##_cell, input, hx, w_ih, w_hh, b_ih, b_hh)                                                     \
    return cell(Recurrence::kind, input, {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;                                    \
  }
TENON_RECURRENT(gru, kGru)
TENON_RECURRENT(rnn_tanh, kTanh)
TENON_RECURRENT(rnn_relu, kRelu)
#undef TENON_RECURRENT

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                     const Tensor& b_ih, const Tensor& b_hh) {
  TENON_AUTOCAST(lstm_cell, input, hx, w_ih, w_hh, b_ih, b_hh)
  check_pair(hx);
  const RecurrentState next = cell(Recurrence::kLstm, input, {hx[0], hx[1]}, {w_ih, w_hh, b_ih, b_hh, {}});
  return {next.h, next.c};
}

}  // namespace tenon
