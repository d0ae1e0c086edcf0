// One value of a few kinds: what it is, and what it holds.
#include <tenon/autograd/ivalue.h>
#include <tenon/core/error.h>

#include <utility>

namespace tenon {

IValue::IValue() = default;
IValue::IValue(Tensor value) : value_(std::move(value)) {}
IValue::IValue(bool value) : value_(value) {}
IValue::IValue(std::int64_t value) : value_(value) {}
IValue::IValue(std::int32_t value) : value_(std::int64_t{value}) {}
IValue::IValue(double value) : value_(value) {}
IValue::IValue(std::string value) : value_(std::move(value)) {}
IValue::IValue(const char* value) : value_(std::string(value)) {}
IValue::IValue(std::vector<Tensor> value) : value_(std::move(value)) {}
IValue::IValue(std::vector<std::int64_t> value) : value_(std::move(value)) {}
IValue::IValue(const IValue& other) = default;
IValue::IValue(IValue&& other) noexcept = default;
IValue& IValue::operator=(const IValue& other) = default;
IValue& IValue::operator=(IValue&& other) noexcept = default;
IValue::~IValue() = default;

bool IValue::isNone() const { return std::holds_alternative<std::monostate>(value_); }
bool IValue::isTensor() const { return std::holds_alternative<Tensor>(value_); }
bool IValue::isBool() const { return std::holds_alternative<bool>(value_); }
bool IValue::isInt() const { return std::holds_alternative<std::int64_t>(value_); }
bool IValue::isDouble() const { return std::holds_alternative<double>(value_); }
bool IValue::isString() const { return std::holds_alternative<std::string>(value_); }
bool IValue::isTensorList() const { return std::holds_alternative<std::vector<Tensor>>(value_); }
bool IValue::isIntList() const { return std::holds_alternative<std::vector<std::int64_t>>(value_); }

template <class T>
const T& IValue::get(const char* wanted) const {
  if (const T* value = std::get_if<T>(&value_)) return *value;
  constexpr const char* kKinds[] = {"None", "Tensor", "Bool", "Int", "Double", "String", "TensorList", "IntList"};
  throw Error(std::string("Expected ") + wanted + " but got " + kKinds[value_.index()]);
}

Tensor IValue::toTensor() const { return get<Tensor>("Tensor"); }
bool IValue::toBool() const { return get<bool>("Bool"); }
std::int64_t IValue::toInt() const { return get<std::int64_t>("Int"); }
double IValue::toDouble() const { return get<double>("Double"); }
const std::string& IValue::toStringRef() const { return get<std::string>("String"); }
std::vector<Tensor> IValue::toTensorVector() const { return get<std::vector<Tensor>>("TensorList"); }
std::vector<std::int64_t> IValue::toIntVector() const { return get<std::vector<std::int64_t>>("IntList"); }

}  // namespace tenon
