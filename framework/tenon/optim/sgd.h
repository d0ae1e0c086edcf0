// SGD: stochastic gradient descent with momentum, dampening, weight decay and Nesterov's variant.
#pragma once

#include <tenon/optim/optimizer.h>

namespace tenon::optim {

struct TENON_EXPORT SGDOptions : public OptimizerCloneableOptions<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}    // NOLINT: as in libtorch
  TENON_ARG(double, lr);                ///< the learning rate
  TENON_ARG(double, momentum) = 0;      ///< how much of the last step is kept
  TENON_ARG(double, dampening) = 0;     ///< 1 - dampening is the gradient's share
  TENON_ARG(double, weight_decay) = 0;  ///< its share of each parameter is added to the gradient
  TENON_ARG(bool, nesterov) = false;    ///< look ahead by the momentum: Nesterov

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API friend bool operator==(const SGDOptions& a, const SGDOptions& b);
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  TENON_API void inherit(const OptimizerOptions& defaults) override;
};
extern template class OptimizerCloneableOptions<SGDOptions>;

struct TENON_EXPORT SGDParamState : public OptimizerCloneableParamState<SGDParamState> {
  TENON_ARG(Tensor, momentum_buffer);  ///< the running step; undefined without momentum

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API std::vector<StateTensor> tensors() override;
  TENON_API friend bool operator==(const SGDParamState& a, const SGDParamState& b);
};
extern template class OptimizerCloneableParamState<SGDParamState>;

class TENON_EXPORT SGD : public Optimizer {
 public:
  /// `defaults` are for groups without options of their own; those that a group brings are not checked. Throws Error
  /// for a negative learning rate, momentum or weight decay, for nesterov without momentum or with dampening, and as
  /// add_param_group().
  TENON_API explicit SGD(const std::vector<OptimizerParamGroup>& groups, SGDOptions defaults);
  explicit SGD(std::vector<Tensor> parameters, SGDOptions defaults)
      : SGD({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  TENON_API Tensor step(LossClosure closure = nullptr) override;

 protected:
  TENON_API std::unique_ptr<OptimizerParamState> make_state() const override;
};

}  // namespace tenon::optim
