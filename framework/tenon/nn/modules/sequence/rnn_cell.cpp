// Cells: parameters, checks, and the operators of ops/nn/recurrent/rnn.h.
#include <tenon/nn/modules/sequence/rnn_cell.h>

#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace tenon::nn {

namespace detail {

template <class Derived>
RNNCellImplBase<Derived>::RNNCellImplBase(const RNNCellOptionsBase& options) : options_base(options) {
  RNNCellImplBase::reset();
}

template <class Derived>
void RNNCellImplBase<Derived>::reset() {
  const std::int64_t rows = options_base.num_chunks() * options_base.hidden_size();
  weight_ih = this->register_parameter("weight_ih", new_parameter({rows, options_base.input_size()}));
  weight_hh = this->register_parameter("weight_hh", new_parameter({rows, options_base.hidden_size()}));
  const bool biased = options_base.bias();
  bias_ih = this->register_parameter("bias_ih", biased ? new_parameter({rows}) : Tensor(), biased);
  bias_hh = this->register_parameter("bias_hh", biased ? new_parameter({rows}) : Tensor(), biased);
  reset_parameters();
}

template <class Derived>
void RNNCellImplBase<Derived>::reset_parameters() {
  const double bound = 1.0 / std::sqrt(static_cast<double>(options_base.hidden_size()));
  for (const Tensor& weight : this->parameters()) init::uniform_(weight, -bound, bound);
}

template <class Derived>
void RNNCellImplBase<Derived>::pretty_print(std::ostream& stream) const {
  const std::string& name = this->name();
  stream << name.substr(0, name.size() - 4) << "(" << options_base.input_size() << ", " << options_base.hidden_size();
  if (!options_base.bias()) stream << ", bias=false";
  const std::string nonlinearity = get_nonlinearity_str();
  if (!nonlinearity.empty() && nonlinearity != "kTanh") stream << ", nonlinearity=" << nonlinearity;
  stream << ")";
}

template <class Derived>
void RNNCellImplBase<Derived>::check_forward_input(const Tensor& input) const {
  if (input.dim() != 2) throw Error(fmt::format("Expected input to be 1D or 2D, got {}D instead", input.dim()));
  if (input.size(1) != options_base.input_size()) {
    throw Error(
        fmt::format("input has inconsistent input_size: got {} expected {}", input.size(1), options_base.input_size()));
  }
}

template <class Derived>
void RNNCellImplBase<Derived>::check_forward_hidden(const Tensor& input, const Tensor& hx,
                                                    const std::string& label) const {
  if (hx.dim() != 2) {
    throw Error(fmt::format("Expected hidden{} to have the dimensions of the input, got {}D", label, hx.dim()));
  }
  if (input.size(0) != hx.size(0)) {
    throw Error(
        fmt::format("Input batch size {} doesn't match hidden{} batch size {}", input.size(0), label, hx.size(0)));
  }
  if (hx.size(1) != options_base.hidden_size()) {
    throw Error(fmt::format("hidden{} has inconsistent hidden_size: got {}, expected {}", label, hx.size(1),
                            options_base.hidden_size()));
  }
}

template <class Derived>
Tensor RNNCellImplBase<Derived>::zero_state(const Tensor& input) const {
  return zeros({input.size(0), options_base.hidden_size()}, input.options());
}

/// The step of a batch of one for what has no batch: input (input_size), state (hidden_size).
template <class Cell>
Tensor step_of_one(Cell& cell, const Tensor& input, const Tensor& hx) {
  return cell.forward(input.unsqueeze(0), hx.defined() ? hx.unsqueeze(0) : hx).squeeze(0);
}

template class RNNCellImplBase<RNNCellImpl>;
template class RNNCellImplBase<LSTMCellImpl>;
template class RNNCellImplBase<GRUCellImpl>;

}  // namespace detail

RNNCellImpl::RNNCellImpl(const RNNCellOptions& options)
    : RNNCellImplBase({options.input_size(), options.hidden_size(), options.bias(), 1}), options(options) {}

Tensor RNNCellImpl::forward(const Tensor& input, Tensor hx) {
  if (input.dim() == 1) return detail::step_of_one(*this, input, hx);
  const ModuleScope scope(*this);
  check_forward_input(input);
  if (!hx.defined()) hx = zero_state(input);
  check_forward_hidden(input, hx, "");
  const bool tanh = options.nonlinearity().is<enumtype::kTanh>();
  return (tanh ? rnn_tanh_cell : rnn_relu_cell)(input, hx, weight_ih, weight_hh, bias_ih, bias_hh);
}

std::string RNNCellImpl::get_nonlinearity_str() const { return enumtype::get_enum_name(options.nonlinearity()); }

LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& options)
    : RNNCellImplBase({options.input_size(), options.hidden_size(), options.bias(), 4}), options(options) {}

std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& input,
                                                 std::optional<std::tuple<Tensor, Tensor>> hx_opt) {
  if (input.dim() == 1) {
    if (hx_opt) hx_opt = std::tuple(std::get<0>(*hx_opt).unsqueeze(0), std::get<1>(*hx_opt).unsqueeze(0));
    const auto [h, c] = forward(input.unsqueeze(0), hx_opt);
    return {h.squeeze(0), c.squeeze(0)};
  }
  const ModuleScope scope(*this);
  check_forward_input(input);
  const Tensor h = hx_opt ? std::get<0>(*hx_opt) : zero_state(input);
  const Tensor c = hx_opt ? std::get<1>(*hx_opt) : zero_state(input);
  check_forward_hidden(input, h, "[0]");
  check_forward_hidden(input, c, "[1]");
  return lstm_cell(input, {h, c}, weight_ih, weight_hh, bias_ih, bias_hh);
}

GRUCellImpl::GRUCellImpl(const GRUCellOptions& options)
    : RNNCellImplBase({options.input_size(), options.hidden_size(), options.bias(), 3}), options(options) {}

Tensor GRUCellImpl::forward(const Tensor& input, Tensor hx) {
  if (input.dim() == 1) return detail::step_of_one(*this, input, hx);
  const ModuleScope scope(*this);
  check_forward_input(input);
  if (!hx.defined()) hx = zero_state(input);
  check_forward_hidden(input, hx, "");
  return gru_cell(input, hx, weight_ih, weight_hh, bias_ih, bias_hh);
}

TENON_DEFAULT_ARGS_OF(RNNCellImpl, {1, AnyValue(Tensor())})
TENON_DEFAULT_ARGS_OF(LSTMCellImpl, {1, AnyValue(std::optional<std::tuple<Tensor, Tensor>>())})
TENON_DEFAULT_ARGS_OF(GRUCellImpl, {1, AnyValue(Tensor())})

template class Cloneable<RNNCellImpl>;
template class Cloneable<LSTMCellImpl>;
template class Cloneable<GRUCellImpl>;

}  // namespace tenon::nn
