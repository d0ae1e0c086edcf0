// RMSprop (Hinton, 2012): steps divided by a running root mean square of the gradient, centred or not.
#pragma once

#include <tenon/optim/optimizer.h>

namespace tenon::optim {

struct TENON_EXPORT RMSpropOptions : public OptimizerCloneableOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT: as in libtorch
  TENON_ARG(double, lr) = 1e-2;                  ///< the learning rate
  TENON_ARG(double, alpha) = 0.99;               ///< how much the running mean of squares keeps at each step
  TENON_ARG(double, eps) = 1e-8;                 ///< added to the divisor
  TENON_ARG(double, weight_decay) = 0;           ///< its share of each parameter is added to the gradient
  TENON_ARG(double, momentum) = 0;               ///< how much of the last step is kept
  TENON_ARG(bool, centered) = false;             ///< divide by the variance, not by the mean of squares

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API friend bool operator==(const RMSpropOptions& a, const RMSpropOptions& b);
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  TENON_API void inherit(const OptimizerOptions& defaults) override;
};
extern template class OptimizerCloneableOptions<RMSpropOptions>;

struct TENON_EXPORT RMSpropParamState : public OptimizerCloneableParamState<RMSpropParamState> {
  TENON_ARG(std::int64_t, step) = 0;        ///< how many steps were made
  TENON_ARG(Tensor, square_avg);            ///< the running mean of squares
  TENON_ARG(Tensor, momentum_buffer) = {};  ///< the running step; undefined without momentum
  TENON_ARG(Tensor, grad_avg) = {};         ///< the running mean of gradients; centered only

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API std::vector<StateTensor> tensors() override;
  TENON_API friend bool operator==(const RMSpropParamState& a, const RMSpropParamState& b);
};
extern template class OptimizerCloneableParamState<RMSpropParamState>;

class TENON_EXPORT RMSprop : public Optimizer {
 public:
  /// `defaults` are for groups without options of their own; those that a group brings are not checked. Throws Error
  /// for a negative learning rate, eps, momentum, weight decay or alpha, and as add_param_group().
  TENON_API explicit RMSprop(const std::vector<OptimizerParamGroup>& groups, RMSpropOptions defaults = {});
  explicit RMSprop(std::vector<Tensor> parameters, RMSpropOptions defaults = {})
      : RMSprop({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  TENON_API Tensor step(LossClosure closure = nullptr) override;

 protected:
  TENON_API std::unique_ptr<OptimizerParamState> make_state() const override;
};

}  // namespace tenon::optim
