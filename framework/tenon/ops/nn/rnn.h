// Recurrent networks over whole sequences, and one step of each kind of cell. Names and arguments are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// LSTM (Hochreiter and Schmidhuber, 1997) over (T, B, input), or (B, T, input) with batch_first; hx = {h, c} of
/// (layers * directions, B, projected or hidden) and (…, hidden). `weights` per layer and direction: input-hidden
/// (4 hidden, input), hidden-hidden, then both biases if any, then the projection if any; gates in the order input,
/// forget, cell, output. Returns the output (T, B, directions * hidden), the last h and the last c.
TENON_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList weights,
                                                  bool has_biases, std::int64_t num_layers, double dropout, bool train,
                                                  bool bidirectional, bool batch_first);
/// Over packed data, see _pack_padded_sequence.
TENON_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx,
                                                  TensorList weights, bool has_biases, std::int64_t num_layers,
                                                  double dropout, bool train, bool bidirectional);

/// GRU (Cho et al., 2014), gates in the order reset, update, new; otherwise like lstm. Returns the output and the last
/// h.
TENON_API std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList weights, bool has_biases,
                                         std::int64_t num_layers, double dropout, bool train, bool bidirectional,
                                         bool batch_first);
TENON_API std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                         TensorList weights, bool has_biases, std::int64_t num_layers, double dropout,
                                         bool train, bool bidirectional);

/// h' = tanh(W x + b + U h + c) (Elman, 1990), or relu.
TENON_API std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList weights,
                                              bool has_biases, std::int64_t num_layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first);
TENON_API std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                              TensorList weights, bool has_biases, std::int64_t num_layers,
                                              double dropout, bool train, bool bidirectional);
/// As rnn_tanh(), with ReLU.
TENON_API std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList weights,
                                              bool has_biases, std::int64_t num_layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first);
TENON_API std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                              TensorList weights, bool has_biases, std::int64_t num_layers,
                                              double dropout, bool train, bool bidirectional);

/// One step: input (B, input), state (B, hidden). Biases may be undefined.
TENON_API std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                               const Tensor& w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// One step: input (N, in), hx (N, hidden) -> (N, hidden). Cho et al., 2014.
TENON_API Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                          const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// tanh(w_ih x + b_ih + w_hh h + b_hh): input (N, in), hx (N, hidden) -> (N, hidden).
TENON_API Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                               const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// relu(w_ih x + b_ih + w_hh h + b_hh): input (N, in), hx (N, hidden) -> (N, hidden).
TENON_API Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                               const Tensor& b_ih = {}, const Tensor& b_hh = {});

}  // namespace tenon
