// One step of a recurrent network as a module: RNNCell, LSTMCell, GRUCell.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/rnn_options.h>

#include <optional>
#include <string>
#include <tuple>

namespace tenon::nn {

namespace detail {

template <class Derived>
class TENON_EXPORT RNNCellImplBase : public Cloneable<Derived> {
 public:
  TENON_API explicit RNNCellImplBase(const RNNCellOptionsBase& options);
  TENON_API void reset() override;
  /// Uniform within 1 / sqrt(hidden_size).
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;

  RNNCellOptionsBase options_base;
  Tensor weight_ih;  ///< (gates * hidden_size, input_size)
  Tensor weight_hh;  ///< (gates * hidden_size, hidden_size)
  Tensor bias_ih;    ///< (gates * hidden_size); undefined without biases
  Tensor bias_hh;

 protected:
  TENON_API void check_forward_input(const Tensor& input) const;
  TENON_API void check_forward_hidden(const Tensor& input, const Tensor& hx, const std::string& label) const;
  TENON_API Tensor zero_state(const Tensor& input) const;
  virtual std::string get_nonlinearity_str() const { return {}; }
};

}  // namespace detail

/// h' = tanh(W x + b + U h + c), or relu: input (B, input_size), hx (B, hidden_size), zeros unless given.
class TENON_EXPORT RNNCellImpl : public detail::RNNCellImplBase<RNNCellImpl> {
 public:
  RNNCellImpl(std::int64_t input_size, std::int64_t hidden_size)
      : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  TENON_API explicit RNNCellImpl(const RNNCellOptions& options);
  /// One step: input (N, input_size), state (N, hidden_size), zeros where none is given -> the new state. Throws Error
  /// for other sizes. An input (input_size) has no batch, and so has its state.
  TENON_API Tensor forward(const Tensor& input, Tensor hx = {});
  RNNCellOptions options;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
  TENON_API std::string get_nonlinearity_str() const override;
};
extern template class detail::RNNCellImplBase<RNNCellImpl>;
TENON_LIBRARY_MODULE(RNNCell);

/// The state is {h, c}.
class TENON_EXPORT LSTMCellImpl : public detail::RNNCellImplBase<LSTMCellImpl> {
 public:
  LSTMCellImpl(std::int64_t input_size, std::int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  TENON_API explicit LSTMCellImpl(const LSTMCellOptions& options);
  /// One step: input (N, input_size), state (h, c), each (N, hidden_size), zeros where none is given -> the new (h, c).
  /// Throws Error for other sizes. An input (input_size) has no batch, and so have its states.
  TENON_API std::tuple<Tensor, Tensor> forward(const Tensor& input,
                                               std::optional<std::tuple<Tensor, Tensor>> hx_opt = {});
  LSTMCellOptions options;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
extern template class detail::RNNCellImplBase<LSTMCellImpl>;
TENON_LIBRARY_MODULE(LSTMCell);

class TENON_EXPORT GRUCellImpl : public detail::RNNCellImplBase<GRUCellImpl> {
 public:
  GRUCellImpl(std::int64_t input_size, std::int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  TENON_API explicit GRUCellImpl(const GRUCellOptions& options);
  /// One step: input (N, input_size), state (N, hidden_size), zeros where none is given -> the new state. Throws Error
  /// for other sizes. An input (input_size) has no batch, and so has its state.
  TENON_API Tensor forward(const Tensor& input, Tensor hx = {});
  GRUCellOptions options;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
extern template class detail::RNNCellImplBase<GRUCellImpl>;
TENON_LIBRARY_MODULE(GRUCell);

}  // namespace tenon::nn
