// Data parallelism: replicas of a module on several devices, each with its part of the batch.
//
//   auto y = nn::parallel::data_parallel(model, x, std::vector<Device>{Device("simulated:0"), Device("simulated:1")});
//
// Note [Replicas give their gradients back]: replicate() clones the module to every device, and each parameter of a
// clone gets a history: a node that sums the gradients of all clones on the original's device and hands the sum to the
// original. So backward() through the replicas' outputs accumulates in the module that was replicated, as libtorch's
// does.
#pragma once

#include <tenon/autograd/node.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/module.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace tenon {

namespace autograd {

/// Cuts a tensor along `dim` into one part per device, in equal parts as chunk() makes them or of the sizes given.
/// There are fewer parts than devices where the tensor is too short. Differentiable.
class TENON_API Scatter {
 public:
  explicit Scatter(std::vector<Device> devices, std::optional<std::vector<std::int64_t>> sizes = std::nullopt,
                   std::int64_t dim = 0);
  /// Takes one tensor. Throws Error for another number.
  variable_list apply(const variable_list& inputs) const;

 private:
  std::vector<Device> devices_;
  std::optional<std::vector<std::int64_t>> sizes_;
  std::int64_t dim_;
};

/// Joins tensors of any devices along `dim` on one device; numbers become a row. Differentiable.
class TENON_API Gather {
 public:
  explicit Gather(Device destination, std::int64_t dim = 0) : destination_(destination), dim_(dim) {}
  /// Gives one tensor. Throws Error for no tensor.
  variable_list apply(const variable_list& inputs) const;

 private:
  Device destination_;
  std::int64_t dim_;
};

}  // namespace autograd

namespace nn::parallel {

namespace detail {
/// Note [Replicas give their gradients back], for the module and its descendants.
TENON_API void share_gradients(const Module& module, const std::vector<std::shared_ptr<Module>>& replicas);
/// compute(i) for every i, each in a thread of its own with the caller's grad mode. Rethrows the first exception.
TENON_API std::vector<Tensor> apply_all(std::size_t count, const std::function<Tensor(std::size_t)>& compute);
/// The devices given, or every CUDA device. Throws Error where that is none.
TENON_API std::vector<Device> devices_or_all(const std::optional<std::vector<Device>>& devices);
/// Drops the devices behind the first `count`.
TENON_API void keep_first(std::vector<Device>& devices, std::size_t count);
}  // namespace detail

/// One clone of the module on each device. Throws Error for a module without clone().
template <class ModuleType>
std::vector<std::shared_ptr<ModuleType>> replicate(const std::shared_ptr<ModuleType>& module,
                                                   const std::vector<Device>& devices) {
  std::vector<std::shared_ptr<ModuleType>> replicas;
  std::vector<std::shared_ptr<Module>> plain;
  for (const Device& device : devices) {
    plain.push_back(module->clone(device));
    replicas.push_back(std::dynamic_pointer_cast<ModuleType>(plain.back()));
  }
  detail::share_gradients(*module, plain);
  return replicas;
}
template <class ModuleType>
std::vector<ModuleHolder<ModuleType>> replicate(const ModuleHolder<ModuleType>& module,
                                                const std::vector<Device>& devices) {
  const auto replicas = replicate(module.ptr(), devices);
  return {replicas.begin(), replicas.end()};
}

/// modules[i]->forward(inputs[i]) at the same time; the i-th output is moved to devices[i], or to its input's device.
template <class ModuleType>
std::vector<Tensor> parallel_apply(std::vector<ModuleType>& modules, const std::vector<Tensor>& inputs,
                                   const std::optional<std::vector<Device>>& devices = std::nullopt) {
  if (modules.size() != inputs.size()) throw Error("Must have as many inputs as modules");
  if (devices && devices->size() != modules.size()) throw Error("Must have as many devices as modules");
  return detail::apply_all(modules.size(), [&](std::size_t i) {
    const ModuleScope scope(*modules[i]);
    const Tensor output = modules[i]->forward(inputs[i]);
    return output.to(devices ? (*devices)[i] : inputs[i].device(), output.scalar_type());
  });
}

/// The module's output for one or several inputs, std::tuple(x, y), of which every device (all CUDA devices, unless
/// named) computes its part along `dim`. The result lies on output_device, or on the first of the devices, which is why
/// that one needs the most memory: a module that takes the targets too and gives its losses keeps the outputs where
/// they are. On one device the module itself moves there.
template <class ModuleType, class... Inputs>
Tensor data_parallel(ModuleType module, const std::tuple<Inputs...>& inputs,
                     std::optional<std::vector<Device>> devices = std::nullopt,
                     std::optional<Device> output_device = std::nullopt, std::int64_t dim = 0) {
  std::vector<Device> places = detail::devices_or_all(devices);
  const Device destination = output_device.value_or(places.front());
  if (places.size() == 1) {
    module->to(places.front());
    const ModuleScope scope(*module);
    const Tensor output =
        std::apply([&](const auto&... x) { return module->forward(x.to(places.front(), x.scalar_type())...); }, inputs);
    return output.to(destination, output.scalar_type());
  }
  const autograd::Scatter scatter(places, std::nullopt, dim);
  const auto parts =
      std::apply([&](const auto&... x) { return std::array{scatter.apply({x})...}; }, inputs);  // of each input
  detail::keep_first(places, parts.front().size());
  auto replicas = replicate(module, places);
  const auto outputs = detail::apply_all(replicas.size(), [&](std::size_t i) {
    const ModuleScope scope(*replicas[i]);
    const Tensor output = std::apply([&](const auto&... part) { return replicas[i]->forward(part.at(i)...); }, parts);
    return output.to(places[i], output.scalar_type());
  });
  return autograd::Gather(destination, dim).apply(outputs).front();
}

/// So, of one input.
template <class ModuleType>
Tensor data_parallel(ModuleType module, Tensor input, std::optional<std::vector<Device>> devices = std::nullopt,
                     std::optional<Device> output_device = std::nullopt, std::int64_t dim = 0) {
  return data_parallel(std::move(module), std::tuple<Tensor>(std::move(input)), std::move(devices), output_device, dim);
}

}  // namespace nn::parallel
}  // namespace tenon
