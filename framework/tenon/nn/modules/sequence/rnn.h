// Recurrent modules over whole sequences: RNN, LSTM, GRU.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/modules/sequence/packed_sequence.h>
#include <tenon/nn/options/rnn_options.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace tenon::nn {

namespace detail {

/// Parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0 (projected), then the same with _reverse
/// and for each further layer; checks of arguments.
template <class Derived>
class TENON_EXPORT RNNImplBase : public Cloneable<Derived> {
 public:
  TENON_API explicit RNNImplBase(const RNNOptionsBase& options);
  TENON_API void reset() override;
  /// Uniform within 1 / sqrt(hidden_size).
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// Parameters are used as they lie: nothing to do, kept for programs that call it.
  TENON_API void flatten_parameters();
  TENON_API std::vector<Tensor> all_weights() const;

  RNNOptionsBase options_base;

 protected:
  /// A state of zeros (layers * directions, batch, size).
  TENON_API Tensor zero_state(const Tensor& input, std::int64_t batch, std::int64_t size) const;
  TENON_API void check_input(const Tensor& input, const Tensor& batch_sizes) const;
  /// Throws Error unless the state is (layers * directions, batch, size).
  TENON_API void check_state(const Tensor& state, std::int64_t batch, std::int64_t size, const char* what) const;
  TENON_API std::int64_t batch_of(const Tensor& input, const Tensor& batch_sizes) const;
  std::int64_t output_size() const {
    return options_base.proj_size() > 0 ? options_base.proj_size() : options_base.hidden_size();
  }

 private:
  std::vector<std::string> weight_names_;
};

/// RNN and GRU: the state is one tensor.
template <class Derived>
class TENON_EXPORT SingleStateRNN : public RNNImplBase<Derived> {
 public:
  using RNNImplBase<Derived>::RNNImplBase;
  /// input (T, B, input_size), hx (layers * directions, B, hidden_size), zeros unless given -> output
  /// (T, B, directions * hidden_size) and the last state.
  TENON_API std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  TENON_API std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input, Tensor hx = {});

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};

}  // namespace detail

class TENON_EXPORT RNNImpl : public detail::SingleStateRNN<RNNImpl> {
 public:
  RNNImpl(std::int64_t input_size, std::int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  TENON_API explicit RNNImpl(const RNNOptions& options);
  RNNOptions options;
};
extern template class detail::RNNImplBase<RNNImpl>;
extern template class detail::SingleStateRNN<RNNImpl>;
TENON_LIBRARY_MODULE(RNN);

class TENON_EXPORT GRUImpl : public detail::SingleStateRNN<GRUImpl> {
 public:
  GRUImpl(std::int64_t input_size, std::int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  TENON_API explicit GRUImpl(const GRUOptions& options);
  GRUOptions options;
};
extern template class detail::RNNImplBase<GRUImpl>;
extern template class detail::SingleStateRNN<GRUImpl>;
TENON_LIBRARY_MODULE(GRU);

class TENON_EXPORT LSTMImpl : public detail::RNNImplBase<LSTMImpl> {
 public:
  LSTMImpl(std::int64_t input_size, std::int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  TENON_API explicit LSTMImpl(const LSTMOptions& options);
  /// The state is {h, c}: (layers * directions, B, proj_size or hidden_size) and (…, hidden_size), zeros unless given.
  TENON_API std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(
      const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx_opt = {});
  /// As forward(), for sequences of different lengths: the output is packed alike.
  TENON_API std::tuple<utils::rnn::PackedSequence, std::tuple<Tensor, Tensor>> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input, std::optional<std::tuple<Tensor, Tensor>> hx_opt = {});
  LSTMOptions options;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()

 private:
  std::tuple<Tensor, Tensor> checked_state(const Tensor& input, const Tensor& batch_sizes, const Tensor& sorted_indices,
                                           const std::optional<std::tuple<Tensor, Tensor>>& given) const;
};
extern template class detail::RNNImplBase<LSTMImpl>;
TENON_LIBRARY_MODULE(LSTM);

}  // namespace tenon::nn
