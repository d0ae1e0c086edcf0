// IValue: one value of a few kinds, for what a custom function or an archive keeps beside tensors.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

class TENON_API IValue {
 public:
  IValue();
  IValue(Tensor value);                     // NOLINT: implicit as in c10
  IValue(bool value);                       // NOLINT
  IValue(std::int64_t value);               // NOLINT
  IValue(std::int32_t value);               // NOLINT
  IValue(double value);                     // NOLINT
  IValue(std::string value);                // NOLINT
  IValue(const char* value);                // NOLINT
  IValue(std::vector<Tensor> value);        // NOLINT
  IValue(std::vector<std::int64_t> value);  // NOLINT
  IValue(const IValue& other);
  IValue(IValue&& other) noexcept;
  IValue& operator=(const IValue& other);
  IValue& operator=(IValue&& other) noexcept;
  ~IValue();

  bool isNone() const;
  bool isTensor() const;
  bool isBool() const;
  bool isInt() const;
  bool isDouble() const;
  bool isString() const;
  bool isTensorList() const;
  bool isIntList() const;
  /// Each throws Error, which names both kinds, where the value is of another one.
  Tensor toTensor() const;
  bool toBool() const;
  std::int64_t toInt() const;
  double toDouble() const;
  const std::string& toStringRef() const;
  std::vector<Tensor> toTensorVector() const;
  std::vector<std::int64_t> toIntVector() const;

 private:
  enum class Kind : std::uint8_t { kNone, kTensor, kBool, kInt, kDouble, kString, kTensorList, kIntList };
  /// Throws Error unless it is of this kind.
  void expect(Kind kind) const;

  // One of these has a value, as the kind says. A std::variant of them costs whoever includes this 2 MB more.
  Kind kind_ = Kind::kNone;
  std::int64_t integer_ = 0;  ///< a bool too
  double real_ = 0;
  Tensor tensor_;
  std::string text_;
  std::vector<Tensor> tensors_;
  std::vector<std::int64_t> integers_;
};

}  // namespace tenon
