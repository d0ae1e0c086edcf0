// IValue: one value of a few kinds, for what a custom function or an archive keeps beside tensors.
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

class IValue {
 public:
  IValue() = default;
  IValue(Tensor value) : value_(std::move(value)) {}                     // NOLINT: implicit as in c10
  IValue(bool value) : value_(value) {}                                  // NOLINT
  IValue(std::int64_t value) : value_(value) {}                          // NOLINT
  IValue(std::int32_t value) : value_(std::int64_t{value}) {}            // NOLINT
  IValue(double value) : value_(value) {}                                // NOLINT
  IValue(std::string value) : value_(std::move(value)) {}                // NOLINT
  IValue(const char* value) : value_(std::string(value)) {}              // NOLINT
  IValue(std::vector<Tensor> value) : value_(std::move(value)) {}        // NOLINT
  IValue(std::vector<std::int64_t> value) : value_(std::move(value)) {}  // NOLINT

  bool isNone() const { return std::holds_alternative<std::monostate>(value_); }
  bool isTensor() const { return std::holds_alternative<Tensor>(value_); }
  bool isBool() const { return std::holds_alternative<bool>(value_); }
  bool isInt() const { return std::holds_alternative<std::int64_t>(value_); }
  bool isDouble() const { return std::holds_alternative<double>(value_); }
  bool isString() const { return std::holds_alternative<std::string>(value_); }
  bool isTensorList() const { return std::holds_alternative<std::vector<Tensor>>(value_); }
  bool isIntList() const { return std::holds_alternative<std::vector<std::int64_t>>(value_); }
  Tensor toTensor() const { return get<Tensor>("Tensor"); }
  bool toBool() const { return get<bool>("Bool"); }
  std::int64_t toInt() const { return get<std::int64_t>("Int"); }
  double toDouble() const { return get<double>("Double"); }
  const std::string& toStringRef() const { return get<std::string>("String"); }
  std::vector<Tensor> toTensorVector() const { return get<std::vector<Tensor>>("TensorList"); }
  std::vector<std::int64_t> toIntVector() const { return get<std::vector<std::int64_t>>("IntList"); }

 private:
  template <class T>
  const T& get(const char* wanted) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    constexpr const char* kKinds[] = {"None", "Tensor", "Bool", "Int", "Double", "String", "TensorList", "IntList"};
    throw Error(std::string("Expected ") + wanted + " but got " + kKinds[value_.index()]);
  }
  std::variant<std::monostate, Tensor, bool, std::int64_t, double, std::string, std::vector<Tensor>,
               std::vector<std::int64_t>>
      value_;
};

}  // namespace tenon
