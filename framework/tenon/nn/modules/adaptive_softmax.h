// AdaptiveLogSoftmaxWithLoss: a softmax over many classes whose rare ones stand in clusters with smaller projections
// (Grave et al., "Efficient softmax approximation for GPUs", 2017).
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/containers/module_list.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/options/arg.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::nn {

struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(std::int64_t in_features, std::int64_t n_classes, std::vector<std::int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  TENON_ARG(std::int64_t, in_features);           ///< the size of the input's last dim
  TENON_ARG(std::int64_t, n_classes);             ///< how many classes there are
  TENON_ARG(std::vector<std::int64_t>, cutoffs);  ///< the class with which each cluster begins, ascending
  TENON_ARG(double, div_value) = 4.0;             ///< cluster i projects to in_features / div_value^(i + 1)
  TENON_ARG(bool, head_bias) = false;             ///< whether the head has a bias
};

struct ASMoutput {
  ASMoutput(Tensor output, double loss) : output(std::move(output)), loss(loss) {}
  Tensor output;  ///< log probability of each target
  double loss;    ///< minus their mean
};

class TENON_EXPORT AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  AdaptiveLogSoftmaxWithLossImpl(std::int64_t in_features, std::int64_t n_classes, std::vector<std::int64_t> cutoffs)
      : AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs))) {}
  /// Throws Error for cutoffs that do not ascend within [1, n_classes - 1].
  TENON_API explicit AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions options);
  TENON_API void reset() override;
  /// Draws the parameters of the head and of every cluster anew.
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;

  /// input (N, in_features) and target (N), or without N. Throws Error for other ranks, a target that is not a class,
  /// and on a device without data.
  TENON_API ASMoutput forward(const Tensor& input, const Tensor& target);
  /// Log probabilities of all classes: (N, n_classes).
  TENON_API Tensor log_prob(const Tensor& input);
  /// Log-probabilities of every class, (N, n_classes), from the input (N, in_features) and the head's output.
  TENON_API Tensor _get_full_log_prob(const Tensor& input, const Tensor& head_output);
  /// log_prob(input).argmax(1), with the clusters computed only for rows that need them.
  TENON_API Tensor predict(const Tensor& input);

  AdaptiveLogSoftmaxWithLossOptions options;
  std::vector<std::int64_t> cutoffs;
  std::int64_t shortlist_size = 0;
  std::int64_t n_clusters = 0;
  std::int64_t head_size = 0;
  Linear head = nullptr;
  ModuleList tail;
};
TENON_LIBRARY_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace tenon::nn
