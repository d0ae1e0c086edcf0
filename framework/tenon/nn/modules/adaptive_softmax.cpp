// AdaptiveLogSoftmaxWithLoss.
#include <tenon/nn/modules/adaptive_softmax.h>

#include <tenon/nn/containers/sequential.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace tenon::nn {

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions given)
    : options(std::move(given)) {
  AdaptiveLogSoftmaxWithLossImpl::reset();
}

void AdaptiveLogSoftmaxWithLossImpl::reset() {
  std::int64_t before = 0;
  bool fine = !options.cutoffs().empty();
  for (const std::int64_t cutoff : options.cutoffs()) {
    fine = fine && cutoff > before && cutoff <= options.n_classes() - 1;
    before = cutoff;
  }
  if (!fine) {
    throw Error(
        "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
        "between "
        "1 and n_classes-1");
  }
  cutoffs = options.cutoffs();
  cutoffs.push_back(options.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = static_cast<std::int64_t>(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head", Linear(LinearOptions(options.in_features(), head_size).bias(options.head_bias())));
  tail = register_module("tail", ModuleList());
  for (std::size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    const auto divisor = static_cast<std::int64_t>(std::pow(options.div_value(), static_cast<double>(i + 1)));
    const std::int64_t hidden = options.in_features() / divisor;
    tail->push_back(Sequential(Linear(LinearOptions(options.in_features(), hidden).bias(false)),
                               Linear(LinearOptions(hidden, cutoffs[i + 1] - cutoffs[i]).bias(false))));
  }
}

void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (const auto& projection : *tail) {
    for (const auto& layer : projection->children()) layer->as<LinearImpl>()->reset_parameters();
  }
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& given_input, const Tensor& given_target) {
  const ModuleScope scope(*this);
  const bool batched = given_target.dim() == 1;
  if (given_target.dim() > 1) throw Error("0D or 1D target tensor expected, multi-target not supported");
  if (given_input.dim() != given_target.dim() + 1) {
    throw Error(fmt::format("{}D target tensor expects {}D input tensors, but found inputs with sizes {}.",
                            given_target.dim(), given_target.dim() + 1, to_string(given_input.sizes())));
  }
  ops::check_has_values("adaptive_log_softmax_with_loss", given_target, "how many targets fall in each cluster");
  const Tensor input = batched ? given_input : given_input.unsqueeze(0);
  const Tensor target = batched ? given_target : given_target.unsqueeze(0);
  if (target.numel() > 0) {
    const auto low = target.min().item<std::int64_t>(), high = target.max().item<std::int64_t>();
    if (low < 0 || high >= options.n_classes()) {
      throw Error(fmt::format("Target values should be in [0, {}], but values in range [{}, {}] were found. ",
                              options.n_classes() - 1, low, high));
    }
  }
  // Column of the head: the class itself, or its cluster.
  Tensor column = target;
  Tensor output = input.new_zeros(target.sizes());
  for (std::size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    const Tensor of_cluster = tenon::logical_and(target.ge(cutoffs[i]), target.lt(cutoffs[i + 1]));
    const Tensor rows = of_cluster.nonzero().flatten();
    if (rows.numel() == 0) continue;
    column = column.masked_fill(of_cluster, shortlist_size + static_cast<std::int64_t>(i));
    const Tensor relative = target.index_select(0, rows) - cutoffs[i];
    const Tensor log_probs = tail[i]->as<SequentialImpl>()->forward(input.index_select(0, rows)).log_softmax(1);
    output = output.index_add(0, rows, log_probs.gather(1, relative.unsqueeze(1)).squeeze(1));
  }
  output = output + head->forward(input).log_softmax(1).gather(1, column.unsqueeze(1)).squeeze(1);
  const double loss = -output.mean().item<double>();
  return {batched ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::_get_full_log_prob(const Tensor& input, const Tensor& head_output) {
  const Tensor head_log_probs = head_output.log_softmax(1);
  std::vector<Tensor> pieces{head_log_probs.narrow(1, 0, shortlist_size)};
  for (std::size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    const Tensor within = tail[i]->as<SequentialImpl>()->forward(input).log_softmax(1);
    pieces.push_back(within + head_log_probs.narrow(1, shortlist_size + static_cast<std::int64_t>(i), 1));
  }
  return tenon::cat(pieces, 1);
}
Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) {
  return _get_full_log_prob(input, head->forward(input));
}

Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) {
  const Tensor head_output = head->forward(input);
  Tensor best = head_output.argmax(1);
  // A cluster's column may win although none of its classes does.
  const Tensor rows = best.ge(shortlist_size).nonzero().flatten();
  if (rows.numel() == 0) return best;
  const Tensor full = _get_full_log_prob(input.index_select(0, rows), head_output.index_select(0, rows)).argmax(1);
  return best.scatter(0, rows, full);
}

void AdaptiveLogSoftmaxWithLossImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::AdaptiveLogSoftmaxWithLoss";
}

template class Cloneable<AdaptiveLogSoftmaxWithLossImpl>;

}  // namespace tenon::nn
