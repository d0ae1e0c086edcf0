// What models over ranks share: they call a module's own forward, and see the tensors that it gives.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/tensor/tensor.h>

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::nn::parallel::detail {

TENON_API void collect_tensors(const Tensor& tensor, std::vector<Tensor>& into);
template <class T>
void collect_tensors(const std::vector<T>& values, std::vector<Tensor>& into) {
  for (const T& value : values) collect_tensors(value, into);
}
template <class... T>
void collect_tensors(const std::tuple<T...>& values, std::vector<Tensor>& into) {
  std::apply([&](const auto&... value) { (collect_tensors(value, into), ...); }, values);
}
template <class T>
requires(!std::is_convertible_v<const T&, const Tensor&>) void collect_tensors(const T&, std::vector<Tensor>&) {}

/// A module of ModuleType's forward between Base's before_forward() and after_forward(tensors of its output).
template <class ModuleType, class Base, class Options>
class ForwardedModule : public Base {
 public:
  ForwardedModule(std::shared_ptr<ModuleType> module, std::shared_ptr<Communicator> ranks, const Options& options = {})
      : Base(module, std::move(ranks), options), module_(std::move(module)) {}
  ForwardedModule(const ModuleHolder<ModuleType>& module, std::shared_ptr<Communicator> ranks,
                  const Options& options = {})
      : ForwardedModule(module.ptr(), std::move(ranks), options) {}

  /// The module's own forward. Every rank calls it.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    this->before_forward();
    auto output = module_->forward(std::forward<Arguments>(arguments)...);
    std::vector<Tensor> tensors;
    collect_tensors(output, tensors);
    this->after_forward(tensors);
    return output;
  }
  /// The module itself.
  const std::shared_ptr<ModuleType>& module() const { return module_; }

 private:
  std::shared_ptr<ModuleType> module_;
};

}  // namespace tenon::nn::parallel::detail
