// Promotion as PyTorch's: tensors with dims weigh more than those without, and these more than numbers.
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/ops/support/kernel_call.h>
#include <tenon/ops/support/promotion.h>
#include <tenon/ops/support/scalar_operand.h>

#include <optional>
#include <string>

namespace tenon::ops {

Dtype floating_default(std::string_view op) {
  const Dtype dtype = default_dtype();
  if (!is_floating_point(dtype)) {
    throw Error("\"" + std::string(op) + "\" not implemented for '" + toString(dtype) +
                "', which set_default_dtype() made the dtype that integers are computed in; set a floating one");
  }
  return dtype;
}

void check_same_dtype(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* tensor : tensors) {
    if (!tensor->defined()) continue;
    if (!first) {
      first = tensor;
    } else if (tensor->scalar_type() != first->scalar_type()) {
      throw Error(std::string("expected scalar type ") + toString(first->scalar_type()) + " but found " +
                  toString(tensor->scalar_type()) + " (in operator " + op + ")");
    }
  }
}

void check_floating(const char* op, const Tensor& tensor) {
  if (!tensor.is_floating_point()) {
    throw Error(std::string("\"") + op + "\" not implemented for '" + toString(tensor.scalar_type()) +
                "': it needs a floating point dtype");
  }
}

Tensor wrapped_scalar(const Scalar& value, DeviceState& state) {
  Tensor result = allocate_tensor(state, Dims{}, value.type());
  const FillAttributes attributes{value.value()};
  run(TENON_OP("fill"), state, {view_of(result)}, {}, &attributes);
  result.impl().set_wrapped_number(true);
  return result;
}

Tensor scalar_tensor_like(const Scalar& value, const Tensor& like) {
  Tensor result = allocate_tensor(state_of(like), Dims{}, like.scalar_type());
  const FillAttributes attributes{element_of(value, like.scalar_type())};
  run(TENON_OP("fill"), state_of(like), {view_of(result)}, {}, &attributes);
  return result;
}

}  // namespace tenon::ops

namespace tenon {
namespace {

struct Weights {
  std::optional<Dtype> dimensioned, zero_dim, number;
};

std::optional<Dtype> promote(std::optional<Dtype> a, std::optional<Dtype> b) {
  if (!a) return b;
  if (!b) return a;
  return promote_types(*a, *b);
}

std::optional<Dtype> combine(std::optional<Dtype> higher, std::optional<Dtype> lower) {
  if (higher && is_floating_point(*higher)) return higher;
  if (higher == Dtype::kBool || (lower && is_floating_point(*lower))) return promote(higher, lower);
  return higher ? higher : lower;
}

void weigh(Weights& weights, const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  Dtype dtype = impl.dtype();
  if (impl.is_wrapped_number()) {
    if (is_floating_point(dtype)) dtype = default_dtype();
    weights.number = promote(weights.number, dtype);
  } else if (impl.rank() > 0) {
    weights.dimensioned = promote(weights.dimensioned, dtype);
  } else {
    weights.zero_dim = promote(weights.zero_dim, dtype);
  }
}

Dtype verdict(const Weights& weights) {
  return *combine(weights.dimensioned, combine(weights.zero_dim, weights.number));
}

}  // namespace

Dtype result_type(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() == b.scalar_type() && !a.impl().is_wrapped_number() && !b.impl().is_wrapped_number()) {
    return a.scalar_type();
  }
  Weights weights;
  weigh(weights, a);
  weigh(weights, b);
  return verdict(weights);
}

Dtype result_type(const Tensor& a, const Tensor& b, const Tensor& c) {
  Weights weights;
  for (const Tensor* tensor : {&a, &b, &c}) weigh(weights, *tensor);
  return verdict(weights);
}

Dtype result_type(const Tensor& a, const Scalar& b) {
  const Dtype dtype = a.scalar_type();
  if (is_floating_point(dtype) && !a.impl().is_wrapped_number()) return dtype;
  Weights weights;
  weigh(weights, a);
  const Dtype number = b.isFloatingPoint() ? default_dtype() : b.type();
  weights.number = promote(weights.number, number);
  return verdict(weights);
}

bool can_cast(Dtype from, Dtype to) {
  if (is_floating_point(from) && !is_floating_point(to)) return false;
  if (from != Dtype::kBool && to == Dtype::kBool) return false;
  return true;
}

}  // namespace tenon
