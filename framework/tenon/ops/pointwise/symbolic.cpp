// Symbolic arithmetic in terms of operators on tensors.
#include <tenon/kernel/pointwise.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/symbolic.h>

namespace tenon::ops {
namespace {

Symbolic mask(const Tensor& condition, const Symbolic& a, const Symbolic& b) {
  return condition.to((a.is_number() ? b : a).tensor.scalar_type());
}

}  // namespace

#define TENON_SYMBOLIC(symbol)                                           \
  Symbolic operator symbol(const Symbolic& a, const Symbolic& b) {       \
    if (a.is_number() && b.is_number()) return a.number symbol b.number; \
    if (a.is_number()) return Scalar(a.number) symbol b.tensor;          \
    if (b.is_number()) return a.tensor symbol Scalar(b.number);          \
    return a.tensor symbol b.tensor;                                     \
  }
TENON_SYMBOLIC(+)
TENON_SYMBOLIC(-)
TENON_SYMBOLIC(*)
TENON_SYMBOLIC(/)
#undef TENON_SYMBOLIC

#define TENON_SYMBOLIC(symbol)                                                   \
  Symbolic operator symbol(const Symbolic& a, const Symbolic& b) {               \
    if (a.is_number() && b.is_number()) return double(a.number symbol b.number); \
    if (a.is_number()) return mask(Scalar(a.number) symbol b.tensor, a, b);      \
    if (b.is_number()) return mask(a.tensor symbol Scalar(b.number), a, b);      \
    return mask(a.tensor symbol b.tensor, a, b);                                 \
  }
TENON_SYMBOLIC(<)
TENON_SYMBOLIC(<=)
TENON_SYMBOLIC(>)
TENON_SYMBOLIC(>=)
TENON_SYMBOLIC(==)
#undef TENON_SYMBOLIC

Symbolic operator-(const Symbolic& a) { return a.is_number() ? Symbolic(-a.number) : Symbolic(a.tensor.neg()); }

Symbolic select(const Symbolic& condition, const Symbolic& yes, const Symbolic& no) {
  if (condition.is_number()) return condition.number != 0 ? yes : no;
  const Tensor chosen = condition.tensor.ne(Scalar(0.0));
  const auto as_tensor = [&](const Symbolic& value) {
    return value.is_number() ? condition.tensor.new_full({}, Scalar(value.number)) : value.tensor;
  };
  return where(chosen, as_tensor(yes), as_tensor(no));
}

Symbolic power(const Symbolic& a, const Symbolic& b) {
  if (a.is_number()) return pow(Scalar(a.number), b.tensor);
  if (b.is_number()) return pow(a.tensor, Scalar(b.number));
  return pow(a.tensor, b.tensor);
}

#define TENON_UNARY(Row, name, ...)                                                                     \
  Symbolic name(const Symbolic& x) {                                                                    \
    return x.is_number() ? Symbolic(pointwise::Row::value(x.number)) : Symbolic(tenon::name(x.tensor)); \
  }
#include <tenon/kernel/rows/unary.inl>

Symbolic divide_floor(const Symbolic& a, const Symbolic& b) {
  if (b.is_number()) return floor_divide(a.tensor, Scalar(b.number));
  return floor_divide(a.is_number() ? full_like(b.tensor, a.number) : a.tensor, b.tensor);
}
Symbolic softplus1(const Symbolic& x) { return softplus(x.tensor); }
Symbolic polygamma(const Symbolic& n, const Symbolic& x) {
  return tenon::polygamma(static_cast<std::int64_t>(n.number), x.tensor);
}

}  // namespace tenon::ops
