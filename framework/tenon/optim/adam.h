// Adam (Kingma and Ba, 2014), with AMSGrad, and AdamW with decoupled weight decay (Loshchilov and Hutter, 2017).
#pragma once

#include <tenon/optim/optimizer.h>

#include <tuple>

namespace tenon::optim {

using Betas = std::tuple<double, double>;

#define TENON_ADAM_OPTIONS(Name, decay)                                                                    \
  struct TENON_EXPORT Name : public OptimizerCloneableOptions<Name> {                                      \
    Name(double lr = 1e-3) : lr_(lr) {} /* NOLINT: as in libtorch */                                       \
    typedef std::tuple<double, double> betas_t;                                                            \
    /** The learning rate. */                                                                              \
    TENON_ARG(double, lr) = 1e-3;                                                                          \
    /** How much the running means of gradient and square keep at each step. */                            \
    TENON_ARG(betas_t, betas) = betas_t(0.9, 0.999);                                                       \
    /** Added to the divisor. */                                                                           \
    TENON_ARG(double, eps) = 1e-8;                                                                         \
    /** Of Adam its share of each parameter is added to the gradient, of AdamW taken off the parameter. */ \
    TENON_ARG(double, weight_decay) = decay;                                                               \
    /** Divide by the largest running mean of squares so far. */                                           \
    TENON_ARG(bool, amsgrad) = false;                                                                      \
                                                                                                           \
   public:                                                                                                 \
    TENON_API void serialize(InputArchive& archive) override;                                              \
    TENON_API void serialize(OutputArchive& archive) const override;                                       \
    TENON_API friend bool operator==(const Name& a, const Name& b);                                        \
    double get_lr() const override { return lr(); }                                                        \
    void set_lr(double value) override { lr(value); }                                                      \
    TENON_API void inherit(const OptimizerOptions& defaults) override;                                     \
  };                                                                                                       \
  extern template class OptimizerCloneableOptions<Name>;
TENON_ADAM_OPTIONS(AdamOptions, 0)
TENON_ADAM_OPTIONS(AdamWOptions, 1e-2)
#undef TENON_ADAM_OPTIONS

#define TENON_ADAM_STATE(Name)                                           \
  struct TENON_EXPORT Name : public OptimizerCloneableParamState<Name> { \
    /** How many steps were made. */                                     \
    TENON_ARG(std::int64_t, step) = 0;                                   \
    /** The running mean of gradients. */                                \
    TENON_ARG(Tensor, exp_avg);                                          \
    /** The running mean of their squares. */                            \
    TENON_ARG(Tensor, exp_avg_sq);                                       \
    /** The largest exp_avg_sq so far; amsgrad only. */                  \
    TENON_ARG(Tensor, max_exp_avg_sq) = {};                              \
                                                                         \
   public:                                                               \
    TENON_API void serialize(InputArchive& archive) override;            \
    TENON_API void serialize(OutputArchive& archive) const override;     \
    TENON_API std::vector<StateTensor> tensors() override;               \
    TENON_API friend bool operator==(const Name& a, const Name& b);      \
  };                                                                     \
  extern template class OptimizerCloneableParamState<Name>;
TENON_ADAM_STATE(AdamParamState)
TENON_ADAM_STATE(AdamWParamState)
#undef TENON_ADAM_STATE

class TENON_EXPORT Adam : public Optimizer {
 public:
  /// `defaults` are for groups without options of their own; those that a group brings are not checked. Throws Error
  /// for a negative learning rate, eps or weight decay, for betas outside of [0, 1), and as add_param_group().
  TENON_API explicit Adam(const std::vector<OptimizerParamGroup>& groups, AdamOptions defaults = {});
  explicit Adam(std::vector<Tensor> parameters, AdamOptions defaults = {})
      : Adam({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  TENON_API Tensor step(LossClosure closure = nullptr) override;

 protected:
  TENON_API std::unique_ptr<OptimizerParamState> make_state() const override;
};

class TENON_EXPORT AdamW : public Optimizer {
 public:
  /// `defaults` are for groups without options of their own; those that a group brings are not checked. Throws Error
  /// for a negative learning rate, eps or weight decay, for betas outside of [0, 1), and as add_param_group().
  TENON_API explicit AdamW(const std::vector<OptimizerParamGroup>& groups, AdamWOptions defaults = {});
  explicit AdamW(std::vector<Tensor> parameters, AdamWOptions defaults = {})
      : AdamW({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  TENON_API Tensor step(LossClosure closure = nullptr) override;

 protected:
  TENON_API std::unique_ptr<OptimizerParamState> make_state() const override;
};

}  // namespace tenon::optim
