// A call that a helper of the tests makes, of any type: a reference to it. The helper is compiled once, where a
// template, or a std::function for each of a thousand lambdas, takes minutes.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tenon::test {

template <class Signature>
class FunctionRef;

/// Lives no longer than what it was made of: a parameter. What is returned where void is asked for is dropped.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Call>
  requires(!std::is_same_v<std::remove_cvref_t<Call>, FunctionRef>)
      FunctionRef(Call&& call)  // NOLINT: stands for the call
      : call_(const_cast<void*>(static_cast<const void*>(std::addressof(call)))),
        run_([](void* self, Arguments... arguments) -> Result {
          return static_cast<Result>(
              (*static_cast<std::remove_reference_t<Call>*>(self))(std::forward<Arguments>(arguments)...));
        }) {}
  Result operator()(Arguments... arguments) const { return run_(call_, std::forward<Arguments>(arguments)...); }

 private:
  void* call_;
  Result (*run_)(void*, Arguments...);
};

using CallRef = FunctionRef<void()>;

}  // namespace tenon::test
