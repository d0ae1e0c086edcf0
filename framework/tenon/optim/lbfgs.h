// L-BFGS (Liu and Nocedal, 1989): a quasi-Newton step from the last gradients, with a strong Wolfe line search if
// asked.
#pragma once

#include <tenon/optim/optimizer.h>

#include <deque>
#include <optional>
#include <string>

// Compiled once, in lbfgs.cpp.
extern template class std::deque<tenon::Tensor>;

namespace tenon::optim {

struct TENON_EXPORT LBFGSOptions : public OptimizerCloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}  // NOLINT: as in libtorch
  TENON_ARG(double, lr) = 1;                ///< the learning rate
  /// Per step().
  TENON_ARG(std::int64_t, max_iter) = 20;
  /// Calls of the closure per step(); max_iter * 5 / 4 unless given.
  TENON_ARG(std::optional<std::int64_t>, max_eval) = std::nullopt;
  TENON_ARG(double, tolerance_grad) = 1e-7;     ///< ends where no slope is steeper
  TENON_ARG(double, tolerance_change) = 1e-9;   ///< ends where a step changes less
  TENON_ARG(std::int64_t, history_size) = 100;  ///< how many steps are remembered
  /// "strong_wolfe"; without one every step has length lr.
  TENON_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API friend bool operator==(const LBFGSOptions& a, const LBFGSOptions& b);
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  TENON_API void inherit(const OptimizerOptions& defaults) override;
};
extern template class OptimizerCloneableOptions<LBFGSOptions>;

/// One for all parameters, kept under the first.
struct TENON_EXPORT LBFGSParamState : public OptimizerCloneableParamState<LBFGSParamState> {
  TENON_ARG(std::int64_t, func_evals) = 0;  ///< how often the loss was computed
  TENON_ARG(std::int64_t, n_iter) = 0;      ///< how many iterations were made
  TENON_ARG(double, t) = 0;                 ///< the last step's length
  TENON_ARG(double, prev_loss) = 0;         ///< the loss before the last step
  TENON_ARG(Tensor, d) = {};                ///< the last direction
  TENON_ARG(Tensor, H_diag) = {};           ///< the scale of the first guess of the inverse Hessian
  TENON_ARG(Tensor, prev_flat_grad) = {};   ///< the gradient before the last step
  TENON_ARG(std::deque<Tensor>, old_dirs);  ///< differences of gradients
  TENON_ARG(std::deque<Tensor>, old_stps);  ///< steps taken
  TENON_ARG(std::deque<Tensor>, ro);        ///< 1 / (difference . step)
  /// Factors of the last recursion, one for each remembered step.
  TENON_ARG(std::optional<std::vector<Tensor>>, al) = std::nullopt;

 public:
  TENON_API void serialize(InputArchive& archive) override;
  TENON_API void serialize(OutputArchive& archive) const override;
  TENON_API friend bool operator==(const LBFGSParamState& a, const LBFGSParamState& b);
};
extern template class OptimizerCloneableParamState<LBFGSParamState>;

/// One parameter group only: throws Error for more.
class TENON_EXPORT LBFGS : public Optimizer {
 public:
  /// `defaults` are for a group without options of its own. Throws Error for more groups than one, for a negative
  /// learning rate in `defaults`, and as add_param_group().
  TENON_API explicit LBFGS(const std::vector<OptimizerParamGroup>& groups, LBFGSOptions defaults = {});
  explicit LBFGS(std::vector<Tensor> parameters, LBFGSOptions defaults = {})
      : LBFGS({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  /// The closure zeroes the gradients, computes the loss and calls backward(); it runs several times. Returns the first
  /// loss.
  TENON_API Tensor step(LossClosure closure) override;

 protected:
  TENON_API std::unique_ptr<OptimizerParamState> make_state() const override;

 private:
  /// All gradients in one row; zeros where there is none.
  Tensor flat_gradient() const;
  /// Moves the parameters along a flat direction.
  void move(double step, const Tensor& direction) const;
};

}  // namespace tenon::optim
