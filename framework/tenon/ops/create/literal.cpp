// Tensors from literals. Declared in tensor/literal.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/tensor/literal.h>

#include <cstring>
#include <sstream>

namespace tenon {
namespace detail {

TensorDataContainer::TensorDataContainer() : sizes_{0}, dtype_(default_dtype()), kind_(Kind::kList) {}
TensorDataContainer::TensorDataContainer(Scalar value, Dtype dtype)
    : scalar_(value), dtype_(dtype), kind_(Kind::kScalar) {}
TensorDataContainer::TensorDataContainer(std::size_t values, Dtype dtype)
    : sizes_{static_cast<std::int64_t>(values)}, dtype_(dtype), kind_(Kind::kRun) {
  run_.reserve(values);
}
TensorDataContainer::TensorDataContainer(const TensorDataContainer& other) = default;
TensorDataContainer::TensorDataContainer(TensorDataContainer&& other) noexcept = default;
TensorDataContainer& TensorDataContainer::operator=(const TensorDataContainer& other) = default;
TensorDataContainer& TensorDataContainer::operator=(TensorDataContainer&& other) noexcept = default;
TensorDataContainer::~TensorDataContainer() = default;

TensorDataContainer::TensorDataContainer(std::initializer_list<TensorDataContainer> list)
    : dtype_(list.begin() == list.end() ? default_dtype() : list.begin()->scalar_type()),
      list_(list),
      kind_(Kind::kList) {
  sizes_ = {static_cast<std::int64_t>(list.size())};
  if (list.size() == 0) return;
  const TensorDataContainer& first = *list.begin();
  for (const TensorDataContainer& item : list) {
    if (item.sizes() != first.sizes()) {
      std::ostringstream text;
      text << "Expected all sub-lists to have sizes: "
           << to_string(first.sizes()).substr(1, to_string(first.sizes()).size() - 2) << " (e.g. " << first
           << "), but got sub-list " << item
           << " with sizes: " << to_string(item.sizes()).substr(1, to_string(item.sizes()).size() - 2);
      throw Error(text.str());
    }
    if (item.scalar_type() != first.scalar_type()) {
      throw Error(std::string("Expected all elements of the tensor to have the same scalar type: ") +
                  toString(first.scalar_type()) + ", but got element of scalar type: " + toString(item.scalar_type()));
    }
  }
  sizes_.insert(sizes_.end(), first.sizes().begin(), first.sizes().end());
}

void TensorDataContainer::add(Scalar value) { run_.push_back(value); }

void TensorDataContainer::append(std::vector<Scalar>& out) const {
  if (kind_ == Kind::kScalar) out.push_back(scalar_);
  for (const TensorDataContainer& item : list_) item.append(out);
  out.insert(out.end(), run_.begin(), run_.end());
}

Tensor TensorDataContainer::convert_to_tensor(TensorOptions options) const {
  // As torch::tensor: int and long give kInt64, float and double the default dtype; the rest stays what it is.
  const Dtype natural = dtype_ == kFloat32 || dtype_ == kFloat64 ? default_dtype() : dtype_ == kInt32 ? kInt64 : dtype_;
  const Dtype dtype = options.dtype_opt().value_or(natural);
  std::vector<Scalar> values;
  append(values);
  Tensor host = empty(sizes_, TensorOptions(dtype));
  auto* out = static_cast<unsigned char*>(host.data_ptr());
  for (const Scalar& value : values) {
    ops::element_of(value, dtype);  // throws where the dtype cannot hold it
    switch (dtype) {
#define TENON_STORE(type, constant)                                                                           \
  case Dtype::constant: {                                                                                     \
    const type converted = std::is_same_v<type, bool> ? static_cast<type>(value.toBool()) : value.to<type>(); \
    std::memcpy(out, &converted, sizeof converted);                                                           \
    break;                                                                                                    \
  }
      TENON_FOR_EACH_DTYPE(TENON_STORE)
#undef TENON_STORE
    }
    out += size_of(dtype);
  }
  return options.has_device() ? host.to(TensorOptions(options.device())) : host;
}

void TensorDataContainer::pretty_print_recursive(std::ostream& stream) const {
  if (kind_ == Kind::kScalar) {
    stream << scalar_;
    return;
  }
  stream << "{";
  for (std::size_t i = 0; i < list_.size(); ++i) {
    stream << (i ? ", " : "");
    list_[i].pretty_print_recursive(stream);
  }
  for (std::size_t i = 0; i < run_.size(); ++i) stream << (i ? ", " : "") << run_[i];
  stream << "}";
}

}  // namespace detail

Tensor tensor(detail::TensorDataContainer data, const TensorOptions& options) {
  Tensor result = data.convert_to_tensor(options);
  if (options.requires_grad()) result.set_requires_grad(true);
  return result;
}

}  // namespace tenon
