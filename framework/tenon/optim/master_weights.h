// Parameters of 16 bits whose optimiser works on copies of them in float32: updates that are smaller than what 16 bits
// resolve add up there, rather than being lost (Micikevicius et al., "Mixed precision training", 2018).
//
//   optim::MasterWeights masters(model->parameters());
//   optim::AdamW optimizer(masters.parameters(), options);
//   loss.backward();
//   masters.step(optimizer);     // or: take_gradients(), optimizer.step(), give_values()
//   model->zero_grad();
#pragma once

#include <tenon/core/export.h>
#include <tenon/optim/optimizer.h>
#include <tenon/tensor/tensor.h>

#include <cstddef>
#include <vector>

namespace tenon::optim {

class TENON_API MasterWeights {
 public:
  /// Copies the parameters of float16 and bfloat16 to float32, with the purpose "optimizer_state"; others are their own
  /// masters.
  explicit MasterWeights(std::vector<Tensor> parameters);

  /// What the optimiser is given: leaves that require a gradient, in the order of the parameters.
  const std::vector<Tensor>& parameters() const { return masters_; }
  /// The parameters' gradients, in float32, become those of the masters; those of 16 bits go as they are copied. A
  /// parameter without one leaves its master without one.
  void take_gradients();
  /// The parameters get the values of their masters, rounded.
  void give_values();

  /// One parameter after the other: its gradient in float32, the optimiser's step of its master, its new value. So only
  /// one gradient at a time takes four bytes an element; those of 16 bits stay. Throws what optimizer.step_parameter()
  /// throws.
  void step(Optimizer& optimizer) const;
  /// So, of one of the parameters, for an update in backward (OptimizerInBackward). Throws Error for another tensor.
  void step_parameter(Optimizer& optimizer, const Tensor& parameter) const;

  /// The masters of parameters in 16 bits, by number.
  void save(OutputArchive& archive) const;
  /// Reads what save() wrote. Throws Error where it is of other parameters.
  void load(InputArchive& archive);

 private:
  bool is_own(std::size_t i) const { return masters_[i].is_same(parameters_[i]); }
  void step_at(std::size_t i, Optimizer& optimizer) const;

  std::vector<Tensor> parameters_, masters_;
};

}  // namespace tenon::optim
