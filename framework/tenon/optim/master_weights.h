// Parameters of 16 bits whose optimiser works on copies of them in float32: updates that are smaller than what 16 bits
// resolve add up there, rather than being lost (Micikevicius et al., "Mixed precision training", 2018).
//
//   optim::MasterWeights masters(model->parameters());
//   optim::AdamW optimizer(masters.parameters(), options);
//   loss.backward();
//   masters.take_gradients();
//   optimizer.step();
//   masters.give_values();
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

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

 private:
  std::vector<Tensor> parameters_, masters_;
};

}  // namespace tenon::optim
