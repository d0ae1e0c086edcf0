// One value of a few kinds: what it is, and what it holds.
#include <tenon/autograd/ivalue.h>
#include <tenon/core/error.h>

#include <utility>

namespace tenon {

IValue::IValue() = default;
IValue::IValue(Tensor value) : kind_(Kind::kTensor), tensor_(std::move(value)) {}
IValue::IValue(bool value) : kind_(Kind::kBool), integer_(value ? 1 : 0) {}
IValue::IValue(std::int64_t value) : kind_(Kind::kInt), integer_(value) {}
IValue::IValue(std::int32_t value) : IValue(std::int64_t{value}) {}
IValue::IValue(double value) : kind_(Kind::kDouble), real_(value) {}
IValue::IValue(std::string value) : kind_(Kind::kString), text_(std::move(value)) {}
IValue::IValue(const char* value) : IValue(std::string(value)) {}
IValue::IValue(std::vector<Tensor> value) : kind_(Kind::kTensorList), tensors_(std::move(value)) {}
IValue::IValue(std::vector<std::int64_t> value) : kind_(Kind::kIntList), integers_(std::move(value)) {}
IValue::IValue(const IValue& other) = default;
IValue::IValue(IValue&& other) noexcept = default;
IValue& IValue::operator=(const IValue& other) = default;
IValue& IValue::operator=(IValue&& other) noexcept = default;
IValue::~IValue() = default;

bool IValue::isNone() const { return kind_ == Kind::kNone; }
bool IValue::isTensor() const { return kind_ == Kind::kTensor; }
bool IValue::isBool() const { return kind_ == Kind::kBool; }
bool IValue::isInt() const { return kind_ == Kind::kInt; }
bool IValue::isDouble() const { return kind_ == Kind::kDouble; }
bool IValue::isString() const { return kind_ == Kind::kString; }
bool IValue::isTensorList() const { return kind_ == Kind::kTensorList; }
bool IValue::isIntList() const { return kind_ == Kind::kIntList; }

void IValue::expect(Kind kind) const {
  if (kind_ == kind) return;
  constexpr const char* kKinds[] = {"None", "Tensor", "Bool", "Int", "Double", "String", "TensorList", "IntList"};
  throw Error(std::string("Expected ") + kKinds[static_cast<std::size_t>(kind)] + " but got " +
              kKinds[static_cast<std::size_t>(kind_)]);
}

Tensor IValue::toTensor() const {
  expect(Kind::kTensor);
  return tensor_;
}
bool IValue::toBool() const {
  expect(Kind::kBool);
  return integer_ != 0;
}
std::int64_t IValue::toInt() const {
  expect(Kind::kInt);
  return integer_;
}
double IValue::toDouble() const {
  expect(Kind::kDouble);
  return real_;
}
const std::string& IValue::toStringRef() const {
  expect(Kind::kString);
  return text_;
}
std::vector<Tensor> IValue::toTensorVector() const {
  expect(Kind::kTensorList);
  return tensors_;
}
std::vector<std::int64_t> IValue::toIntVector() const {
  expect(Kind::kIntList);
  return integers_;
}

}  // namespace tenon
