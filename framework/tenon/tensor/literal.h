// tensor({{1, 2}, {3, 4}}): a tensor from numbers, lists nested to any depth, or a vector.
#pragma once

#include <tenon/tensor/tensor.h>

#include <initializer_list>
#include <ostream>
#include <vector>

namespace tenon {
namespace detail {

/// A number, a list of these, or a flat run of numbers, with its sizes and dtype. Valid for the full expression.
class TENON_API TensorDataContainer {
 public:
  TensorDataContainer();
  TensorDataContainer(const TensorDataContainer& other);
  TensorDataContainer(TensorDataContainer&& other) noexcept;
  TensorDataContainer& operator=(const TensorDataContainer& other);
  TensorDataContainer& operator=(TensorDataContainer&& other) noexcept;
  ~TensorDataContainer();
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      TensorDataContainer(T value)  // NOLINT
      : TensorDataContainer(Scalar(value), literal_dtype<T>()) {}
  TensorDataContainer(std::initializer_list<TensorDataContainer> list);  // NOLINT
  template <class T>
  requires std::is_arithmetic_v<T> TensorDataContainer(ArrayRef<T> values)  // NOLINT
      : TensorDataContainer(values.size(), literal_dtype<T>()) {
    for (const T& value : values) add(Scalar(value));
  }
  template <class T>
  requires std::is_arithmetic_v<T> TensorDataContainer(const std::vector<T>& values)  // NOLINT
      : TensorDataContainer(values.size(), literal_dtype<T>()) {
    for (const auto value : values) add(Scalar(static_cast<T>(value)));
  }

  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_init_list() const { return kind_ == Kind::kList; }
  bool is_tensor() const { return kind_ == Kind::kRun; }
  const std::vector<TensorDataContainer>& init_list() const {
    require(is_init_list(), "init_list()", "is_init_list()");
    return list_;
  }
  /// A flat run of numbers as a tensor.
  Tensor tensor() const {
    require(is_tensor(), "tensor()", "is_tensor()");
    return convert_to_tensor({});
  }
  const Scalar& scalar() const {
    require(is_scalar(), "scalar()", "is_scalar()");
    return scalar_;
  }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  Dtype scalar_type() const { return dtype_; }
  Tensor convert_to_tensor(TensorOptions options) const;
  void pretty_print_recursive(std::ostream& stream) const;

 private:
  enum class Kind { kScalar, kList, kRun };
  TensorDataContainer(Scalar value, Dtype dtype);        ///< a number
  TensorDataContainer(std::size_t values, Dtype dtype);  ///< a run of so many, to be added
  static void require(bool holds, const char* call, const char* condition) {
    if (!holds) {
      throw Error(std::string("Can only call `") + call + "` on a TensorDataContainer that has `" + condition +
                  " == true`");
    }
  }
  /// The dtype of the C++ type; what the tensor gets is decided in convert_to_tensor.
  template <class T>
  static constexpr Dtype literal_dtype() {
    if constexpr (std::is_same_v<T, bool>)
      return kBool;
    else if constexpr (std::is_same_v<T, unsigned char>)
      return kUInt8;
    else if constexpr (std::is_integral_v<T>)
      return sizeof(T) == 1 ? kInt8 : sizeof(T) == 2 ? kInt16 : sizeof(T) == 4 ? kInt32 : kInt64;
    else
      return dtype_of<T>;
  }
  void add(Scalar value);
  void append(std::vector<Scalar>& out) const;

  std::vector<std::int64_t> sizes_;
  Scalar scalar_;
  Dtype dtype_;
  std::vector<TensorDataContainer> list_;
  std::vector<Scalar> run_;
  Kind kind_;
};
inline std::ostream& operator<<(std::ostream& stream, const TensorDataContainer& container) {
  container.pretty_print_recursive(stream);
  return stream;
}

}  // namespace detail

/// Ragged or mixed lists throw Error. Without a dtype: int gives kInt64, floats the default dtype, others stay what
/// they are.
TENON_API Tensor tensor(detail::TensorDataContainer data, const TensorOptions& options = {});

}  // namespace tenon
