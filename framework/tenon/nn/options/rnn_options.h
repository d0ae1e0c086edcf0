// Options of recurrent modules.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>

#include <cstdint>

namespace tenon::nn {

namespace detail {

/// What the three kinds have in common.
struct TENON_EXPORT RNNOptionsBase {
  using rnn_options_base_mode_t =
      enumtype::OneOf<enumtype::kLSTM, enumtype::kGRU, enumtype::kRNN_TANH, enumtype::kRNN_RELU>;
  RNNOptionsBase(rnn_options_base_mode_t mode, std::int64_t input_size, std::int64_t hidden_size)
      : mode_(mode), input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(rnn_options_base_mode_t, mode);  ///< which network: kRNN_TANH, kRNN_RELU, kLSTM or kGRU
  TENON_ARG(std::int64_t, input_size);       ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);      ///< the size of the hidden state
  TENON_ARG(std::int64_t, num_layers) = 1;   ///< how many layers are stacked
  TENON_ARG(bool, bias) = true;              ///< whether there is a bias
  TENON_ARG(bool, batch_first) = false;    ///< whether the batch is the first dim: (B, T, …) in place of (T, B, …)
  TENON_ARG(double, dropout) = 0.0;        ///< the probability, for the outputs of all layers but the last
  TENON_ARG(bool, bidirectional) = false;  ///< whether a second network reads backwards
  TENON_ARG(std::int64_t, proj_size) = 0;  ///< the size that the hidden state is projected to; 0 for no projection
};

struct TENON_EXPORT RNNCellOptionsBase {
  RNNCellOptionsBase(std::int64_t input_size, std::int64_t hidden_size, bool bias, std::int64_t num_chunks)
      : input_size_(input_size), hidden_size_(hidden_size), bias_(bias), num_chunks_(num_chunks) {}
  TENON_ARG(std::int64_t, input_size);   ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);  ///< the size of the hidden state
  TENON_ARG(bool, bias);                 ///< whether there is a bias
  TENON_ARG(std::int64_t, num_chunks);   ///< how many gates there are: rows of a weight by hidden size
};

}  // namespace detail

struct TENON_EXPORT RNNOptions {
  using nonlinearity_t = enumtype::OneOf<enumtype::kTanh, enumtype::kReLU>;
  RNNOptions(std::int64_t input_size, std::int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);              ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);             ///< the size of the hidden state
  TENON_ARG(std::int64_t, num_layers) = 1;          ///< how many layers are stacked
  TENON_ARG(nonlinearity_t, nonlinearity) = kTanh;  ///< kTanh or kReLU
  TENON_ARG(bool, bias) = true;                     ///< whether there is a bias
  /// Input and output are (B, T, …) instead of (T, B, …).
  TENON_ARG(bool, batch_first) = false;
  /// After every layer but the last.
  TENON_ARG(double, dropout) = 0.0;
  TENON_ARG(bool, bidirectional) = false;  ///< whether a second network reads backwards
};

struct TENON_EXPORT LSTMOptions {
  LSTMOptions(std::int64_t input_size, std::int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);      ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);     ///< the size of the hidden state
  TENON_ARG(std::int64_t, num_layers) = 1;  ///< how many layers are stacked
  TENON_ARG(bool, bias) = true;             ///< whether there is a bias
  TENON_ARG(bool, batch_first) = false;     ///< whether the batch is the first dim: (B, T, …) in place of (T, B, …)
  TENON_ARG(double, dropout) = 0.0;         ///< the probability, for the outputs of all layers but the last
  TENON_ARG(bool, bidirectional) = false;   ///< whether a second network reads backwards
  /// Above 0: the hidden state is projected to this size (Sak et al., 2014).
  TENON_ARG(std::int64_t, proj_size) = 0;
};

struct TENON_EXPORT GRUOptions {
  GRUOptions(std::int64_t input_size, std::int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);      ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);     ///< the size of the hidden state
  TENON_ARG(std::int64_t, num_layers) = 1;  ///< how many layers are stacked
  TENON_ARG(bool, bias) = true;             ///< whether there is a bias
  TENON_ARG(bool, batch_first) = false;     ///< whether the batch is the first dim: (B, T, …) in place of (T, B, …)
  TENON_ARG(double, dropout) = 0.0;         ///< the probability, for the outputs of all layers but the last
  TENON_ARG(bool, bidirectional) = false;   ///< whether a second network reads backwards
};

struct TENON_EXPORT RNNCellOptions {
  using nonlinearity_t = enumtype::OneOf<enumtype::kTanh, enumtype::kReLU>;
  RNNCellOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);              ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);             ///< the size of the hidden state
  TENON_ARG(bool, bias) = true;                     ///< whether there is a bias
  TENON_ARG(nonlinearity_t, nonlinearity) = kTanh;  ///< kTanh or kReLU
};
struct TENON_EXPORT LSTMCellOptions {
  LSTMCellOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);   ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);  ///< the size of the hidden state
  TENON_ARG(bool, bias) = true;          ///< whether there is a bias
};
struct TENON_EXPORT GRUCellOptions {
  GRUCellOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);   ///< the size of the input's last dim
  TENON_ARG(std::int64_t, hidden_size);  ///< the size of the hidden state
  TENON_ARG(bool, bias) = true;          ///< whether there is a bias
};

}  // namespace tenon::nn
