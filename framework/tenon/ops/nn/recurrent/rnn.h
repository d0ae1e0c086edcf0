// Recurrent networks over whole sequences, and one step of each kind of cell. Names and arguments are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// LSTM (Hochreiter and Schmidhuber, 1997) over (T, B, input), or (B, T, input) with batch_first; hx = {h, c} of
/// (layers * directions, B, projected or hidden) and (…, hidden). `weights` per layer and direction: input-hidden (4
/// hidden, input), hidden-hidden, then both biases if any, then the projection if any; gates in the order input,
/// forget, cell, output. In training `dropout` is the probability for the outputs of all layers but the last. Returns
/// the output (T, B, directions * hidden) or (B, T, …), with a projection of its size instead of hidden, then the last
/// h and the last c in the sizes of hx. Throws Error for an input of another rank, sizes and dtypes that do not fit,
/// another number of weights or states, and where T is 0.
TENON_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList weights,
                                                  bool has_biases, std::int64_t num_layers, double dropout, bool train,
                                                  bool bidirectional, bool batch_first);
/// Over packed data (rows, input) with batch_sizes (T, int64, on the CPU), see _pack_padded_sequence(); the output
/// (rows, directions * hidden) is packed too. Throws Error also for batch_sizes that rise, or on another device.
TENON_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx,
                                                  TensorList weights, bool has_biases, std::int64_t num_layers,
                                                  double dropout, bool train, bool bidirectional);

/// GRU (Cho et al., 2014), gates in the order reset, update, new; as in PyTorch the reset gate is applied to the
/// product of h and its weight, not to h. input (T, B, input), or (B, T, input) with batch_first, or packed (rows,
/// input) with batch_sizes (T, int64); hx (layers * directions, B, hidden); weights per layer and direction as
/// lstm()'s, with 3 hidden rows and without projection. Returns the output (T, B, directions * hidden), (B, T, …) or
/// (rows, …), and the last h in hx's sizes. Throws Error as lstm().
TENON_API std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList weights, bool has_biases,
                                         std::int64_t num_layers, double dropout, bool train, bool bidirectional,
                                         bool batch_first);
TENON_API std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                         TensorList weights, bool has_biases, std::int64_t num_layers, double dropout,
                                         bool train, bool bidirectional);

/// h' = tanh(w_ih x + b_ih + w_hh h + b_hh): Elman, "Finding structure in time", 1990. Sizes and errors as gru()'s,
/// with weights of hidden rows. Returns the output and the last h.
TENON_API std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList weights,
                                              bool has_biases, std::int64_t num_layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first);
TENON_API std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                              TensorList weights, bool has_biases, std::int64_t num_layers,
                                              double dropout, bool train, bool bidirectional);
/// rnn_tanh() with relu() in place of tanh(): the same sizes and errors.
TENON_API std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList weights,
                                              bool has_biases, std::int64_t num_layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first);
TENON_API std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                              TensorList weights, bool has_biases, std::int64_t num_layers,
                                              double dropout, bool train, bool bidirectional);

/// One step of lstm(): input (N, in), hx = {h, c} of (N, hidden), w_ih (4 hidden, in), w_hh (4 hidden, hidden), biases
/// (4 hidden) or undefined -> the new h and c. Throws Error for an input of another rank, sizes and dtypes that do not
/// fit, and another number of states.
TENON_API std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                               const Tensor& w_hh, const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// One step of gru(): input (N, in), hx (N, hidden), w_ih (3 hidden, in), w_hh (3 hidden, hidden), biases (3 hidden) or
/// undefined -> (N, hidden). Throws Error for an input of another rank, and sizes and dtypes that do not fit.
TENON_API Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                          const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// tanh(w_ih x + b_ih + w_hh h + b_hh): input (N, in), hx (N, hidden), w_ih (hidden, in), w_hh (hidden, hidden), biases
/// (hidden) or undefined -> (N, hidden). Throws Error as gru_cell().
TENON_API Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                               const Tensor& b_ih = {}, const Tensor& b_hh = {});
/// relu(w_ih x + b_ih + w_hh h + b_hh): sizes and errors as of rnn_tanh_cell().
TENON_API Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                               const Tensor& b_ih = {}, const Tensor& b_hh = {});

}  // namespace tenon
