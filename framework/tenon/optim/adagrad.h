// Adagrad (Duchi et al., 2011): steps divided by the root of the sum of squared gradients.
#pragma once

#include <tenon/optim/optimizer.h>

namespace tenon::optim {

struct TENON_EXPORT AdagradOptions : public OptimizerCloneableOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}      // NOLINT: as in libtorch
  TENON_ARG(double, lr) = 1e-2;                      ///< the learning rate
  TENON_ARG(double, lr_decay) = 0;                   ///< the rate is divided by 1 + steps * lr_decay
  TENON_ARG(double, weight_decay) = 0;               ///< its share of each parameter is added to the gradient
  TENON_ARG(double, initial_accumulator_value) = 0;  ///< what sums of squares begin with
  TENON_ARG(double, eps) = 1e-10;                    ///< added to the divisor

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API friend bool operator==(const AdagradOptions& a, const AdagradOptions& b);
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  TENON_API void inherit(const OptimizerOptions& defaults) override;
};
extern template class OptimizerCloneableOptions<AdagradOptions>;

struct TENON_EXPORT AdagradParamState : public OptimizerCloneableParamState<AdagradParamState> {
  TENON_ARG(Tensor, sum);             ///< of the squares of all gradients
  TENON_ARG(std::int64_t, step) = 0;  ///< how many steps were made

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API std::vector<StateTensor> tensors() override;
  TENON_API friend bool operator==(const AdagradParamState& a, const AdagradParamState& b);
};
extern template class OptimizerCloneableParamState<AdagradParamState>;

/// Its state exists from the beginning, as in libtorch.
class TENON_EXPORT Adagrad : public Optimizer {
 public:
  /// `defaults` are for groups without options of their own; those that a group brings are not checked. Makes every
  /// state at once. Throws Error for a negative learning rate, its decay, weight decay, first value or eps, and as
  /// add_param_group().
  TENON_API explicit Adagrad(const std::vector<OptimizerParamGroup>& groups, AdagradOptions defaults = {});
  explicit Adagrad(std::vector<Tensor> parameters, AdagradOptions defaults = {})
      : Adagrad({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  TENON_API Tensor step(LossClosure closure = nullptr) override;

 protected:
  TENON_API std::unique_ptr<OptimizerParamState> make_state() const override;
};

}  // namespace tenon::optim
