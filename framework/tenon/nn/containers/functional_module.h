// Functional: a function as a module, with further arguments bound: Functional(tenon::elu, 1, 0, 1).
#pragma once

#include <tenon/nn/containers/cloneable.h>

#include <functional>
#include <memory>
#include <ostream>
#include <type_traits>
#include <utility>

namespace tenon::nn {

class FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;

  explicit FunctionalImpl(Function function) : function_(std::move(function)) {}
  template <class F, class... Arguments, class = std::enable_if_t<(sizeof...(Arguments) > 0)>>
  explicit FunctionalImpl(F function, Arguments&&... arguments)
      : function_([function, ... bound = std::decay_t<Arguments>(std::forward<Arguments>(arguments))](Tensor input) {
          return function(std::move(input), bound...);
        }) {}

  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "tenon::nn::Functional()"; }
  /// What the function returns for the input.
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return forward(std::move(input)); }
  /// A function cannot be written to a file.
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
TENON_MODULE(Functional);

}  // namespace tenon::nn
