// A module of a call: its parameters filled by a rule, run forward; the result, the gradients of the parameters and the
// names and sizes of parameters and buffers are what comes out.
#pragma once

#include "table.h"

#include <sstream>

namespace differential {

/// Its parameters in the dtype of x, as a user's model has them, and filled by the rule.
template <class M>
void fill(M& module, const Tensor& x) {
  if (torch::isFloatingType(x.scalar_type())) module->to(x.scalar_type());
  const torch::NoGradGuard guard;
  std::uint64_t seed = 100;
  for (auto& parameter : module->parameters()) parameter.copy_(weights(parameter, ++seed));
}

/// The names of parameters and buffers with their sizes, and the module as it prints itself.
template <class M>
std::string described(M& module) {
  std::string text;
  const auto list = [&](const auto& named) {
    for (const auto& item : named) {
      text += item.key();
      for (const auto size : item.value().sizes()) text += "," + std::to_string(size);
      text += ";";
    }
  };
  list(module->named_parameters());
  list(module->named_buffers());
  std::ostringstream printed;
  printed << *module;
  text += printed.str();
  for (auto& c : text) {
    if (c == ' ' || c == '\n') c = '_';
  }
  return text;
}

/// What the module makes of its inputs, in training, and the gradients of its parameters.
template <class M, class... Inputs>
std::tuple<std::string, Tensors> run(M module, bool train, Inputs... inputs) {
  fill(module, std::get<0>(std::tie(inputs...)));
  module->train(train);
  auto y = module->forward(inputs...);
  Tensors all{y};
  if (y.requires_grad()) {
    auto parameters = module->parameters();
    if (!parameters.empty()) {
      auto sum = (y * weights(y, 5)).sum();
      for (auto& gradient : torch::autograd::grad({sum}, parameters, {}, true, false, true)) {
        // How it lies and whether it is a view follow from the formula.
        all.push_back(gradient.defined() ? gradient.detach().contiguous() : gradient);
      }
    }
  }
  for (const auto& buffer : module->named_buffers()) {
    // The number of batches stays an integer when a module becomes one of another dtype, as in PyTorch's Python;
    // libtorch's front end casts it.
    const bool counts = buffer.key().find("num_batches_tracked") != std::string::npos;
    all.push_back(counts ? buffer.value().to(torch::kInt64) : buffer.value());
  }
  return {described(module), all};
}

}  // namespace differential
