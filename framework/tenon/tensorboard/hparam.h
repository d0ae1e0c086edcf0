// HParam: the value of a hyperparameter.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {

/// A flag, a number or a text: {{"lr", 0.1}, {"batch_size", 32}, {"nesterov", true}, {"optimizer", "sgd"}}.
struct HParam {
  std::variant<bool, double, std::string> value;

  HParam(bool flag) : value(flag) {}  // NOLINT: written as a plain value
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) HParam(T number)  // NOLINT: as above
      : value(static_cast<double>(number)) {}
  HParam(std::string text) : value(std::move(text)) {}         // NOLINT: as above
  HParam(std::string_view text) : value(std::string(text)) {}  // NOLINT: as above
  HParam(const char* text) : value(std::string(text)) {}       // NOLINT: as above
};

/// In the order in which they are shown.
using HParams = std::vector<std::pair<std::string, HParam>>;

}  // namespace tenon
