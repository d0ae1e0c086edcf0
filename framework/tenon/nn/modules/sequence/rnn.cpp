// Recurrent modules: parameters, checks, and the operators of ops/nn/recurrent/rnn.h.
#include <tenon/nn/modules/sequence/rnn.h>

#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/warning.h>

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace tenon::nn {

using utils::rnn::PackedSequence;

namespace {

template <class Word>
bool is(const detail::RNNOptionsBase& options) {
  return options.mode().template is<Word>();
}

std::int64_t gates_of(const detail::RNNOptionsBase& options) {
  return is<enumtype::kLSTM>(options) ? 4 : is<enumtype::kGRU>(options) ? 3 : 1;
}

Tensor permuted(const Tensor& state, const Tensor& order) {
  return order.defined() ? state.index_select(1, order) : state;
}

template <class Options>
detail::RNNOptionsBase common(detail::RNNOptionsBase::rnn_options_base_mode_t mode, const Options& options) {
  return detail::RNNOptionsBase(mode, options.input_size(), options.hidden_size())
      .num_layers(options.num_layers())
      .bias(options.bias())
      .batch_first(options.batch_first())
      .dropout(options.dropout())
      .bidirectional(options.bidirectional());
}

detail::RNNOptionsBase::rnn_options_base_mode_t mode_of(const RNNOptions& options) {
  if (options.nonlinearity().is<enumtype::kTanh>()) return kRNN_TANH;
  return kRNN_RELU;
}

// The operator of a kind, plain or packed.
using Plain = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, TensorList, bool, std::int64_t, double, bool,
                                         bool, bool);
using Packed = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, TensorList, bool, std::int64_t,
                                          double, bool, bool);
template <class Function>
Function* pick(const detail::RNNOptionsBase& options, Function* gru, Function* tanh, Function* relu) {
  return is<enumtype::kGRU>(options) ? gru : is<enumtype::kRNN_TANH>(options) ? tanh : relu;
}

}  // namespace

namespace detail {

template <class Derived>
RNNImplBase<Derived>::RNNImplBase(const RNNOptionsBase& options) : options_base(options) {
  RNNImplBase::reset();
}

template <class Derived>
void RNNImplBase<Derived>::reset() {
  const RNNOptionsBase& o = options_base;
  if (!(o.dropout() >= 0 && o.dropout() <= 1)) {
    throw Error(
        fmt::format("dropout should be a number in range [0, 1] representing the probability of an element being "
                    "zeroed, got {}",
                    o.dropout()));
  }
  if (o.dropout() > 0 && o.num_layers() == 1) {
    TENON_WARN(
        "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers ",
        "greater than 1, but got dropout=", o.dropout(), " and num_layers=", o.num_layers());
  }
  if (o.hidden_size() <= 0) throw Error(fmt::format("hidden_size must be greater than zero, got {}", o.hidden_size()));
  if (o.num_layers() <= 0) throw Error(fmt::format("num_layers must be greater than zero, got {}", o.num_layers()));
  if (o.proj_size() < 0 || o.proj_size() >= o.hidden_size()) {
    throw Error(
        fmt::format("proj_size has to be a positive integer, smaller than hidden_size or zero to disable "
                    "projections, got {} with hidden_size {}",
                    o.proj_size(), o.hidden_size()));
  }
  if (o.proj_size() > 0 && !is<enumtype::kLSTM>(o)) {
    throw Error("proj_size argument is only supported for LSTM, not RNN or GRU");
  }
  const std::int64_t rows = gates_of(o) * o.hidden_size();
  const std::int64_t directions = o.bidirectional() ? 2 : 1;
  weight_names_.clear();
  const auto add = [this](const std::string& name, IntArrayRef sizes) {
    this->register_parameter(name, new_parameter(sizes));
    weight_names_.push_back(name);
  };
  for (std::int64_t layer = 0; layer < o.num_layers(); ++layer) {
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
      add("weight_ih" + suffix, {rows, layer == 0 ? o.input_size() : output_size() * directions});
      add("weight_hh" + suffix, {rows, output_size()});
      if (o.bias()) {
        add("bias_ih" + suffix, {rows});
        add("bias_hh" + suffix, {rows});
      }
      if (o.proj_size() > 0) add("weight_hr" + suffix, {o.proj_size(), o.hidden_size()});
    }
  }
  reset_parameters();
}

template <class Derived>
void RNNImplBase<Derived>::reset_parameters() {
  const double bound = 1.0 / std::sqrt(static_cast<double>(options_base.hidden_size()));
  for (const Tensor& weight : this->parameters()) init::uniform_(weight, -bound, bound);
}

template <class Derived>
void RNNImplBase<Derived>::pretty_print(std::ostream& stream) const {
  const std::string& name = this->name();
  stream << std::boolalpha << name.substr(0, name.size() - 4) << "(input_size=" << options_base.input_size()
         << ", hidden_size=" << options_base.hidden_size() << ", num_layers=" << options_base.num_layers()
         << ", bias=" << options_base.bias() << ", batch_first=" << options_base.batch_first()
         << ", dropout=" << options_base.dropout() << ", bidirectional=" << options_base.bidirectional();
  if (options_base.proj_size() > 0) stream << ", proj_size=" << options_base.proj_size();
  stream << ")";
}

template <class Derived>
void RNNImplBase<Derived>::flatten_parameters() {}

template <class Derived>
std::vector<Tensor> RNNImplBase<Derived>::all_weights() const {
  std::vector<Tensor> weights;
  weights.reserve(weight_names_.size());
  for (const std::string& name : weight_names_) weights.push_back(this->parameters_[name]);
  return weights;
}

template <class Derived>
std::int64_t RNNImplBase<Derived>::batch_of(const Tensor& input, const Tensor& batch_sizes) const {
  if (batch_sizes.defined()) return batch_sizes[0].template item<std::int64_t>();
  return input.size(options_base.batch_first() ? 0 : 1);
}

template <class Derived>
Tensor RNNImplBase<Derived>::zero_state(const Tensor& input, std::int64_t batch, std::int64_t size) const {
  return zeros({options_base.num_layers() * (options_base.bidirectional() ? 2 : 1), batch, size}, input.options());
}

template <class Derived>
void RNNImplBase<Derived>::check_input(const Tensor& input, const Tensor& batch_sizes) const {
  const std::int64_t expected = batch_sizes.defined() ? 2 : 3;
  if (input.dim() != expected) throw Error(fmt::format("input must have {} dimensions, got {}", expected, input.dim()));
  if (input.size(-1) != options_base.input_size()) {
    throw Error(fmt::format("input.size(-1) must be equal to input_size. Expected {}, got {}",
                            options_base.input_size(), input.size(-1)));
  }
}

template <class Derived>
void RNNImplBase<Derived>::check_state(const Tensor& state, std::int64_t batch, std::int64_t size,
                                       const char* what) const {
  const std::vector<std::int64_t> expected = {options_base.num_layers() * (options_base.bidirectional() ? 2 : 1), batch,
                                              size};
  if (state.sizes() != IntArrayRef(expected)) {
    throw Error(
        fmt::format("Expected {} size {}, got {}", what, to_string(IntArrayRef(expected)), to_string(state.sizes())));
  }
}

template class RNNImplBase<RNNImpl>;
template class RNNImplBase<GRUImpl>;
template class RNNImplBase<LSTMImpl>;

template <class Derived>
std::tuple<Tensor, Tensor> SingleStateRNN<Derived>::forward(const Tensor& input, Tensor hx) {
  const ModuleScope scope(*this);
  const RNNOptionsBase& o = this->options_base;
  this->check_input(input, {});
  const std::int64_t batch = this->batch_of(input, {});
  if (!hx.defined()) hx = this->zero_state(input, batch, o.hidden_size());
  this->check_state(hx, batch, o.hidden_size(), "hidden");
  return pick<Plain>(o, gru, rnn_tanh, rnn_relu)(input, hx, this->all_weights(), o.bias(), o.num_layers(), o.dropout(),
                                                 this->is_training(), o.bidirectional(), o.batch_first());
}

template <class Derived>
std::tuple<PackedSequence, Tensor> SingleStateRNN<Derived>::forward_with_packed_input(const PackedSequence& packed,
                                                                                      Tensor hx) {
  const RNNOptionsBase& o = this->options_base;
  this->check_input(packed.data(), packed.batch_sizes());
  const std::int64_t batch = this->batch_of(packed.data(), packed.batch_sizes());
  hx = hx.defined() ? permuted(hx, packed.sorted_indices()) : this->zero_state(packed.data(), batch, o.hidden_size());
  this->check_state(hx, batch, o.hidden_size(), "hidden");
  auto [output, last] =
      pick<Packed>(o, gru, rnn_tanh, rnn_relu)(packed.data(), packed.batch_sizes(), hx, this->all_weights(), o.bias(),
                                               o.num_layers(), o.dropout(), this->is_training(), o.bidirectional());
  return {PackedSequence(output, packed.batch_sizes(), packed.sorted_indices(), packed.unsorted_indices()),
          permuted(last, packed.unsorted_indices())};
}

template <class Derived>
unsigned int SingleStateRNN<Derived>::_forward_num_required_args() {
  return 1;
}
template <class Derived>
std::vector<AnyValue> SingleStateRNN<Derived>::_forward_populate_default_args(std::vector<AnyValue>&& arguments) {
  return nn::detail::with_defaults(std::move(arguments), {{1, AnyValue(Tensor())}});
}

template class SingleStateRNN<RNNImpl>;
template class SingleStateRNN<GRUImpl>;

}  // namespace detail

RNNImpl::RNNImpl(const RNNOptions& options)
    : detail::SingleStateRNN<RNNImpl>(common(mode_of(options), options)), options(options) {}

GRUImpl::GRUImpl(const GRUOptions& options)
    : detail::SingleStateRNN<GRUImpl>(common(kGRU, options)), options(options) {}

LSTMImpl::LSTMImpl(const LSTMOptions& options)
    : detail::RNNImplBase<LSTMImpl>(common(kLSTM, options).proj_size(options.proj_size())), options(options) {}

std::tuple<Tensor, Tensor> LSTMImpl::checked_state(const Tensor& input, const Tensor& batch_sizes,
                                                   const Tensor& sorted_indices,
                                                   const std::optional<std::tuple<Tensor, Tensor>>& given) const {
  check_input(input, batch_sizes);
  const std::int64_t batch = batch_of(input, batch_sizes);
  const std::int64_t hidden = options_base.hidden_size();
  Tensor h = given ? permuted(std::get<0>(*given), sorted_indices) : zero_state(input, batch, output_size());
  Tensor c = given ? permuted(std::get<1>(*given), sorted_indices) : zero_state(input, batch, hidden);
  check_state(h, batch, output_size(), "hidden[0]");
  check_state(c, batch, hidden, "hidden[1]");
  return {std::move(h), std::move(c)};
}

std::tuple<Tensor, std::tuple<Tensor, Tensor>> LSTMImpl::forward(const Tensor& input,
                                                                 std::optional<std::tuple<Tensor, Tensor>> hx_opt) {
  const ModuleScope scope(*this);
  const auto [h, c] = checked_state(input, {}, {}, hx_opt);
  auto [output, last_h, last_c] =
      lstm(input, {h, c}, all_weights(), options_base.bias(), options_base.num_layers(), options_base.dropout(),
           is_training(), options_base.bidirectional(), options_base.batch_first());
  return {output, {last_h, last_c}};
}

std::tuple<PackedSequence, std::tuple<Tensor, Tensor>> LSTMImpl::forward_with_packed_input(
    const PackedSequence& packed, std::optional<std::tuple<Tensor, Tensor>> hx_opt) {
  const auto [h, c] = checked_state(packed.data(), packed.batch_sizes(), packed.sorted_indices(), hx_opt);
  auto [output, last_h, last_c] =
      lstm(packed.data(), packed.batch_sizes(), {h, c}, all_weights(), options_base.bias(), options_base.num_layers(),
           options_base.dropout(), is_training(), options_base.bidirectional());
  return {PackedSequence(output, packed.batch_sizes(), packed.sorted_indices(), packed.unsorted_indices()),
          {permuted(last_h, packed.unsorted_indices()), permuted(last_c, packed.unsorted_indices())}};
}

TENON_DEFAULT_ARGS_OF(LSTMImpl, {1, AnyValue(std::optional<std::tuple<Tensor, Tensor>>())})

template class Cloneable<RNNImpl>;
template class Cloneable<GRUImpl>;
template class Cloneable<LSTMImpl>;

}  // namespace tenon::nn
