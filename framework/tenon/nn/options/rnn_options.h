// Options of recurrent modules.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>

#include <cstdint>
#include <variant>

namespace tenon::nn {

namespace detail {

/// What the three kinds have in common.
struct TENON_EXPORT RNNOptionsBase {
  using rnn_options_base_mode_t =
      std::variant<enumtype::kLSTM, enumtype::kGRU, enumtype::kRNN_TANH, enumtype::kRNN_RELU>;
  RNNOptionsBase(rnn_options_base_mode_t mode, std::int64_t input_size, std::int64_t hidden_size)
      : mode_(mode), input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(rnn_options_base_mode_t, mode);
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(std::int64_t, num_layers) = 1;
  TENON_ARG(bool, bias) = true;
  TENON_ARG(bool, batch_first) = false;
  TENON_ARG(double, dropout) = 0.0;
  TENON_ARG(bool, bidirectional) = false;
  TENON_ARG(std::int64_t, proj_size) = 0;
};

struct TENON_EXPORT RNNCellOptionsBase {
  RNNCellOptionsBase(std::int64_t input_size, std::int64_t hidden_size, bool bias, std::int64_t num_chunks)
      : input_size_(input_size), hidden_size_(hidden_size), bias_(bias), num_chunks_(num_chunks) {}
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(bool, bias);
  TENON_ARG(std::int64_t, num_chunks);
};

}  // namespace detail

struct TENON_EXPORT RNNOptions {
  using nonlinearity_t = std::variant<enumtype::kTanh, enumtype::kReLU>;
  RNNOptions(std::int64_t input_size, std::int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(std::int64_t, num_layers) = 1;
  TENON_ARG(nonlinearity_t, nonlinearity) = kTanh;
  TENON_ARG(bool, bias) = true;
  /// Input and output are (B, T, …) instead of (T, B, …).
  TENON_ARG(bool, batch_first) = false;
  /// After every layer but the last.
  TENON_ARG(double, dropout) = 0.0;
  TENON_ARG(bool, bidirectional) = false;
};

struct TENON_EXPORT LSTMOptions {
  LSTMOptions(std::int64_t input_size, std::int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(std::int64_t, num_layers) = 1;
  TENON_ARG(bool, bias) = true;
  TENON_ARG(bool, batch_first) = false;
  TENON_ARG(double, dropout) = 0.0;
  TENON_ARG(bool, bidirectional) = false;
  /// Above 0: the hidden state is projected to this size (Sak et al., 2014).
  TENON_ARG(std::int64_t, proj_size) = 0;
};

struct TENON_EXPORT GRUOptions {
  GRUOptions(std::int64_t input_size, std::int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(std::int64_t, num_layers) = 1;
  TENON_ARG(bool, bias) = true;
  TENON_ARG(bool, batch_first) = false;
  TENON_ARG(double, dropout) = 0.0;
  TENON_ARG(bool, bidirectional) = false;
};

struct TENON_EXPORT RNNCellOptions {
  using nonlinearity_t = std::variant<enumtype::kTanh, enumtype::kReLU>;
  RNNCellOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(bool, bias) = true;
  TENON_ARG(nonlinearity_t, nonlinearity) = kTanh;
};
struct TENON_EXPORT LSTMCellOptions {
  LSTMCellOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(bool, bias) = true;
};
struct TENON_EXPORT GRUCellOptions {
  GRUCellOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  TENON_ARG(std::int64_t, input_size);
  TENON_ARG(std::int64_t, hidden_size);
  TENON_ARG(bool, bias) = true;
};

}  // namespace tenon::nn
