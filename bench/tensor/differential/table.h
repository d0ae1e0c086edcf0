// The functions that can be called: each row has a name, what its arguments are like (which the generator reads), and
// how the words of a call become arguments. The types of a row's parameters say how a word is read.
#pragma once

#include "wire.h"

#if __has_include(<tenon/tenon.h>)
#define LINALG(name) torch::linalg::name
#else
#define LINALG(name) torch::linalg_##name
#endif

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace differential {

struct Row {
  std::string name;
  std::string arguments;  // as kinds.py and shapes.py have them
  std::function<Values(Arguments&)> call;
};

/// Every row, in the order of the files under rows/.
std::vector<Row>& table();

using OptionalTensor = std::optional<Tensor>;
using Ints = std::vector<std::int64_t>;
/// No dimensions named, or a list of them, as reductions take them.
struct OptionalInts {
  std::optional<Ints> value;
  operator torch::OptionalIntArrayRef() const {
    return value ? torch::OptionalIntArrayRef(torch::IntArrayRef(*value)) : torch::OptionalIntArrayRef();
  }
};
using Tensors = std::vector<Tensor>;
using OptionalTensors = std::vector<std::optional<Tensor>>;
using Scalar = torch::Scalar;
using OptionalScalar = std::optional<Scalar>;
using Dtype = torch::ScalarType;
using OptionalDtype = std::optional<Dtype>;

namespace detail {

template <class T>
struct Read;
template <class T>
struct Read<std::optional<T>> {
  static std::optional<T> from(Arguments& a, std::size_t at) {
    if (a.none(at)) return std::nullopt;
    return Read<T>::from(a, at);
  }
};
#define DIFFERENTIAL_READ(T, method)                                     \
  template <>                                                            \
  struct Read<T> {                                                       \
    static T from(Arguments& a, std::size_t at) { return a.method(at); } \
  };
DIFFERENTIAL_READ(Tensor, tensor)
DIFFERENTIAL_READ(Tensors, tensors)
DIFFERENTIAL_READ(Scalar, scalar)
DIFFERENTIAL_READ(std::int64_t, integer)
DIFFERENTIAL_READ(double, real)
DIFFERENTIAL_READ(bool, truth)
DIFFERENTIAL_READ(std::string, text)
DIFFERENTIAL_READ(Dtype, dtype)
DIFFERENTIAL_READ(Ints, integers)
#undef DIFFERENTIAL_READ
template <>
struct Read<OptionalInts> {
  static OptionalInts from(Arguments& a, std::size_t at) { return {Read<std::optional<Ints>>::from(a, at)}; }
};
template <>
struct Read<OptionalTensors> {
  static OptionalTensors from(Arguments& a, std::size_t at) {
    OptionalTensors result;
    for (auto& tensor : a.tensors(at)) {
      result.push_back(tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt);
    }
    return result;
  }
};

inline void append(Values& values, const Tensor& tensor) { values.push_back({tensor, ""}); }
inline void append(Values& values, bool truth) { values.push_back({{}, truth ? "true" : "false"}); }
inline void append(Values& values, std::int64_t number) { values.push_back({{}, "int " + std::to_string(number)}); }
inline void append(Values& values, double number) { append(values, torch::tensor(number, torch::kFloat64)); }
inline void append(Values& values, const std::string& text) { values.push_back({{}, "text " + text}); }
inline void append(Values& values, torch::ScalarType dtype) { append(values, std::string(torch::toString(dtype))); }
template <class T>
void append(Values& values, const std::vector<T>& list) {
  append(values, static_cast<std::int64_t>(list.size()));
  for (const auto& each : list) append(values, each);
}
template <class... T>
void append(Values& values, const std::tuple<T...>& tuple) {
  std::apply([&](const auto&... each) { (append(values, each), ...); }, tuple);
}

template <class F, class R, class... A, std::size_t... I>
Values call(const F& function, Arguments& arguments, R (F::*)(A...) const, std::index_sequence<I...>) {
  if (arguments.size() != sizeof...(A)) throw BadCall("wrong number of arguments");
  // Braces: the words are read from left to right, and later ones may name earlier ones.
  std::tuple<std::decay_t<A>...> read{Read<std::decay_t<A>>::from(arguments, I)...};
  Values values;
  if constexpr (std::is_void_v<R>) {
    std::apply(function, read);
  } else {
    append(values, std::apply(function, read));
  }
  return values;
}
template <class F, class R, class... A>
Values call(const F& function, Arguments& arguments, R (F::*member)(A...) const) {
  return call(function, arguments, member, std::index_sequence_for<A...>{});
}

}  // namespace detail

template <class F>
void add(std::string name, std::string arguments, F function) {
  table().push_back({std::move(name), std::move(arguments),
                     [function](Arguments& a) { return detail::call(function, a, &F::operator()); }});
}

void add_pointwise();
void add_reductions();
void add_shapes();
void add_linalg();
void add_indexing();
void add_nn();
void add_modules();
void add_creation();
void add_functional();
void add_more_modules();
void add_optimizers();
void add_facts();

}  // namespace differential
