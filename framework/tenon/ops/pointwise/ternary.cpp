// Operators of three operands: where, masked_fill, clamp by tensors, addcmul, addcdiv, lerp. Declared in
// pointwise.h.
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/binary_operands.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>

namespace tenon {

using namespace ops;

namespace {

Dims common(const Tensor& a, const Tensor& b, const Tensor& c) {
  return broadcast_sizes(broadcast_sizes(a.impl().sizes(), b.impl().sizes()), c.impl().sizes());
}

Tensor zero_where_not(const Tensor& gradient, const Tensor& mask) {
  return gradient.masked_fill(mask.logical_not(), 0);
}

void check_mask(const char* name, const Tensor& mask) {
  if (mask.scalar_type() != kBool && mask.scalar_type() != kUInt8) {
    throw Error(std::string(name) + " only supports boolean masks, but got mask with dtype " +
                toString(mask.scalar_type()));
  }
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  TENON_SCOPE(where, condition, self, other)
  if (condition.scalar_type() != kBool && condition.scalar_type() != kUInt8) {
    throw Error(std::string("where expected condition to be a boolean tensor, but got a tensor with dtype ") +
                toString(condition.scalar_type()));
  }
  const Tensor chosen = condition.to(kBool);
  const Dtype dtype = result_type(self, other);
  const Tensor a = self.to(dtype);
  const Tensor b = other.to(dtype);
  check_same_device("where", {&chosen, &a, &b});
  const Dims sizes = common(chosen, a, b);
  Recording recording = record<1>("WhereBackward0", {&a, &b}, [](Backward& backward) {
    const Tensor chosen = backward.saved(0);
    if (backward.needs(0)) backward.set(0, zero_where_not(backward.grad(), chosen));
    if (backward.needs(1)) backward.set(1, backward.grad().masked_fill(chosen, 0));
  });
  if (recording) recording.save(0, chosen);
  Tensor result = allocate_after({&chosen, &a, &b}, sizes, dtype);
  Dims c_strides, a_strides, b_strides;
  run(TENON_OP("where"), ops::state_of(a), {view_of(result)},
      {view_as(chosen, sizes, c_strides), view_as(a, sizes, a_strides), view_as(b, sizes, b_strides)});
  recording.output(result);
  return result;
}
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return where(condition, wrapped_scalar(self, ops::state_of(condition)), other);
}
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return where(condition, self, wrapped_scalar(other, ops::state_of(condition)));
}
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return where(condition, wrapped_scalar(self, ops::state_of(condition)),
               wrapped_scalar(other, ops::state_of(condition)));
}
std::vector<Tensor> where(const Tensor& condition) {
  TENON_SCOPE(where, condition)
  const Tensor places = atleast_1d(condition).nonzero();
  std::vector<Tensor> columns;
  for (std::int64_t i = 0; i < places.size(1); ++i) columns.push_back(places.select(1, i));
  return columns;
}
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return tenon::where(condition, *this, other);
}

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  TENON_SCOPE(masked_fill, self, mask, value)
  check_mask("masked_fill", mask);
  check_same_device("masked_fill", {&self, &mask});
  const Tensor chosen = mask.to(kBool);
  const Dims sizes = broadcast_sizes(self.impl().sizes(), mask.impl().sizes());
  Recording recording =
      record<1>("MaskedFillBackward0", {&self}, [](Backward& b) { b.set(0, b.grad().masked_fill(b.saved(0), 0)); });
  if (recording) recording.save(0, chosen);
  Tensor result = allocate_like(self, sizes, self.scalar_type());  // contiguous, as PyTorch's
  const FillAttributes attributes{element_of(value, self.scalar_type())};
  Dims strides, mask_strides;
  run(TENON_OP("masked_fill"), ops::state_of(self), {view_of(result)},
      {view_as(self, sizes, strides), view_as(chosen, sizes, mask_strides)}, &attributes);
  recording.output(result);
  return result;
}
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  TENON_SCOPE(masked_fill, self, mask, value)
  if (value.dim() != 0) {
    throw Error("masked_fill only supports a 0-dimensional value tensor, but got tensor with " +
                std::to_string(value.dim()) + " dimension(s).");
  }
  return where(mask, value.to(self.scalar_type()), self).contiguous();
}
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const {
  return tenon::masked_fill(*this, mask, value);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  return tenon::masked_fill(*this, mask, value);
}
Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const {
  TENON_SCOPE(masked_fill_, *this, mask, value)
  check_mask("masked_fill_", mask);
  autograd::check_inplace(*this);
  check_written(*this);
  Tensor chosen = mask.to(kBool);
  if (reads_elsewhere_in(chosen, *this)) chosen = chosen.clone();
  if (!is_expandable_to(chosen.impl().sizes(), impl().sizes())) {
    throw Error("output with shape " + to_string(sizes()) + " doesn't match the broadcast shape " +
                to_string(broadcast_sizes(impl().sizes(), chosen.impl().sizes())));
  }
  Recording recording =
      record<1>("MaskedFillBackward0", {this}, [](Backward& b) { b.set(0, b.grad().masked_fill(b.saved(0), 0)); });
  if (recording) recording.save(0, chosen);
  const FillAttributes attributes{element_of(value, scalar_type())};
  Dims strides;
  run(TENON_OP("masked_fill"), ops::state_of(*this), {view_of(*this)},
      {view_of(*this), ops::view_as(chosen, impl().sizes(), strides)}, &attributes);
  finish_inplace(*this, recording);
  return const_cast<Tensor&>(*this);
}
Tensor& Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const {
  TENON_SCOPE(masked_fill_, *this, mask, value)
  return copy_(tenon::masked_fill(*this, mask, value));
}

namespace {

/// Clamped by two tensors. An element that lies on a bound shares the gradient with it, unless the bounds are equal:
/// then it has it alone. Of crossed bounds the high one has it.
Tensor clamp_between(const Tensor& self, const Tensor& low, const Tensor& high) {
  const Dtype dtype = result_type(self, low, high);
  const Tensor x = self.to(dtype), from = low.to(dtype), to = high.to(dtype);
  Recording recording = record<3>("ClampBackward1", {&x, &from, &to}, [](Backward& b) {
    const Tensor& gradient = b.grad();
    const Tensor x = b.saved(0), from = b.saved(1), to = b.saved(2);
    const Tensor apart = from.lt(to), crossed = from.gt(to), ordered = from.le(to);
    const Tensor below = x.lt(from), above = x.gt(to);
    const Tensor at_low = x.eq(from).logical_and(apart), at_high = x.eq(to).logical_and(apart);
    const auto shared = [&](const Tensor& whole, const Tensor& half) {
      return gradient.masked_fill(whole.logical_or(half).logical_not(), 0)
          .mul(half.to(gradient.scalar_type()).mul(-0.5).add(1));
    };
    if (b.needs(0)) b.set(0, shared(below.logical_or(above).logical_not(), at_low.logical_or(at_high)));
    if (b.needs(1)) b.set(1, shared(below.logical_and(ordered), at_low));
    if (b.needs(2)) b.set(2, shared(crossed.logical_or(above.logical_and(ordered)), at_high));
  });
  Tensor result;
  {
    NoGradGuard no_grad;
    result = minimum(maximum(x, from), to);
  }
  if (recording) {
    recording.save(0, x);
    recording.save(1, from);
    recording.save(2, to);
    recording.output(result);
  }
  return result;
}

}  // namespace

Tensor clamp(const Tensor& self, const std::optional<Tensor>& low, const std::optional<Tensor>& high) {
  TENON_SCOPE(clamp, self, low, high)
  if (!low && !high) throw Error("torch.clamp: At least one of 'min' or 'max' must not be None");
  if (low && high) return clamp_between(self, *low, *high);
  return low ? maximum(self, *low) : minimum(self, *high);
}
Tensor Tensor::clamp(const std::optional<Tensor>& low, const std::optional<Tensor>& high) const {
  return tenon::clamp(*this, low, high);
}

namespace {

/// The result becomes self's where the kernel did not write into self itself, and the node's.
void finish(const Tensor& self, const Tensor& result, bool inplace, Recording& recording) {
  if (!inplace) return recording.output(result);
  if (!result.is_same(self)) run(TENON_OP("copy"), ops::state_of(self), {view_of(self)}, {view_of(result)});
  finish_inplace(self, recording);
}

/// x + value * a * b, or x + value * a / b.
Tensor addc(OperatorId op, bool divide, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value,
            bool inplace) {
  if (value.isBoolean()) return addc(op, divide, self, a, b, value.toBool() ? 1 : 0, inplace);  // -true is refused
  const char* name = divide ? "AddcdivBackward0" : "AddcmulBackward0";
  check_same_device(divide ? "addcdiv" : "addcmul", {&self, &a, &b});
  if (divide && !a.is_floating_point() && !b.is_floating_point()) {
    throw Error(
        "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
        "division "
        "of tensor1 and tensor2: convert one of them to a floating dtype");
  }
  const Dtype dtype = result_type(self, a, b);
  if (inplace && !can_cast(dtype, self.scalar_type())) {
    throw Error(std::string("result type ") + toString(dtype) + " can't be cast to the desired output type " +
                toString(self.scalar_type()) + " (in operator " + (divide ? "addcdiv_" : "addcmul_") + ")");
  }
  computed_element_of(value, dtype);  // throws where it does not fit
  const Tensor x = self.to(dtype);
  const Tensor y = a.to(dtype);
  const Tensor z = b.to(dtype);
  if (inplace) autograd::check_inplace(self, autograd::any_requires_grad(a, b));
  Recording recording = record<2>(name, {&x, &y, &z}, [divide, value](Backward& backward) {
    const Tensor& gradient = backward.grad();
    if (backward.needs(1)) {
      const Tensor z = backward.saved(1);
      backward.set(1, (divide ? gradient.div(z) : gradient.mul(z)).mul(value));
    }
    if (backward.needs(2)) {
      const Tensor y = backward.saved(0);
      if (divide) {
        const Tensor z = backward.saved(1);
        backward.set(2, gradient.mul(y.div(z.mul(z))).mul(-value));
      } else {
        backward.set(2, gradient.mul(y).mul(value));
      }
    }
    if (backward.needs(0)) backward.set(0, gradient);
  });
  if (recording) {
    const bool wants_a = autograd::requires_grad(y), wants_b = autograd::requires_grad(z);
    if (wants_b) recording.save(0, saved_operand(y, self, inplace));
    if (wants_a || (wants_b && divide)) recording.save(1, saved_operand(z, self, inplace));
  }
  const Dims sizes = common(x, y, z);
  if (inplace) check_inplace_sizes(self, sizes);
  if (inplace) check_written(self);
  const bool direct =
      inplace && dtype == self.scalar_type() && !reads_elsewhere_in(y, self) && !reads_elsewhere_in(z, self);
  Tensor result = direct ? self : allocate_after({&x, &y, &z}, sizes, dtype);
  const TernaryAttributes attributes{value.value()};
  Dims x_strides, y_strides, z_strides;
  run(op, ops::state_of(x), {view_of(result)},
      {view_as(x, sizes, x_strides), view_as(y, sizes, y_strides), view_as(z, sizes, z_strides)}, &attributes);
  finish(self, result, inplace, recording);
  return result;
}

Tensor lerp_impl(const Tensor& self, const Tensor& end, const Tensor& weight, const Scalar& number, bool inplace);

/// By a number of another dtype, with which the operands are promoted: integers by one of float64 give float64.
Tensor lerp_promoted(const Tensor& self, const Tensor& end, const Tensor& weight, bool inplace) {
  const Dtype dtype = result_type(self, end, weight);
  if (dtype == self.scalar_type()) return lerp_impl(self, end, weight.to(dtype), 0, inplace);
  if (inplace && !can_cast(dtype, self.scalar_type())) {
    throw Error(std::string("result type ") + toString(dtype) + " can't be cast to the desired output type " +
                toString(self.scalar_type()) + " (in operator lerp_)");
  }
  const Tensor result = lerp_impl(self.to(dtype), end.to(dtype), weight.to(dtype), 0, false);
  return inplace ? self.copy_(result) : result;
}

Tensor lerp_impl(const Tensor& self, const Tensor& end, const Tensor& weight, const Scalar& number, bool inplace) {
  check_same_device("lerp", {&self, &end, &weight});
  const bool weight_is_number = weight.defined() && weight.dim() == 0;
  for (const Tensor* other : {&end, &weight}) {
    if (!other->defined() || other->scalar_type() == self.scalar_type()) continue;
    if (other == &weight && weight_is_number) continue;
    throw Error(std::string("expected dtype ") + self.dtype().name() + " for `" + (other == &end ? "end" : "weight") +
                "` but got dtype " + other->dtype().name() + " (in operator lerp)");
  }
  if (weight_is_number && weight.scalar_type() != self.scalar_type()) return lerp_promoted(self, end, weight, inplace);
  if (inplace) autograd::check_inplace(self, autograd::any_requires_grad(end, weight));
  const bool scalar = !weight.defined();
  Recording recording = record<3>("LerpBackward0", {&self, &end, &weight}, [scalar, number](Backward& b) {
    if (b.needs(0)) b.set(0, scalar ? b.grad().mul(1 - number.toDouble()) : b.grad().mul(Scalar(1) - b.saved(2)));
    if (b.needs(1)) b.set(1, scalar ? b.grad().mul(number) : b.grad().mul(b.saved(2)));
    if (b.needs(2)) b.set(2, b.grad().mul(b.saved(1) - b.saved(0)));
  });
  if (recording && !scalar) {
    if (autograd::requires_grad(weight)) {
      recording.save(0, saved_self(self, inplace));
      recording.save(1, saved_operand(end, self, inplace));
    }
    if (autograd::requires_grad(self) || autograd::requires_grad(end)) {
      recording.save(2, saved_operand(weight, self, inplace));
    }
  }
  Dims sizes = broadcast_sizes(self.impl().sizes(), end.impl().sizes());
  if (!scalar) sizes = broadcast_sizes(sizes, weight.impl().sizes());
  if (inplace) check_inplace_sizes(self, sizes);
  if (inplace) check_written(self);
  const bool direct = inplace && !reads_elsewhere_in(end, self) && (scalar || !reads_elsewhere_in(weight, self));
  Tensor result = direct ? self : allocate_after({&self, &end, &weight}, sizes, self.scalar_type());
  const TernaryAttributes attributes{number.value()};
  Dims a, b, c;
  run(TENON_OP("lerp"), ops::state_of(self), {view_of(result)},
      {view_as(self, sizes, a), view_as(end, sizes, b), scalar ? undefined_view() : view_as(weight, sizes, c)},
      &attributes);
  finish(self, result, inplace, recording);
  return result;
}

}  // namespace

Tensor addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  TENON_AUTOCAST(addcmul, self, a, b, value)
  return addc(TENON_OP("addcmul"), false, self, a, b, value, false);
}
Tensor addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  TENON_AUTOCAST(addcdiv, self, a, b, value)
  return addc(TENON_OP("addcdiv"), true, self, a, b, value, false);
}
Tensor Tensor::addcmul(const Tensor& a, const Tensor& b, const Scalar& value) const {
  return tenon::addcmul(*this, a, b, value);
}
Tensor Tensor::addcdiv(const Tensor& a, const Tensor& b, const Scalar& value) const {
  return tenon::addcdiv(*this, a, b, value);
}
Tensor& Tensor::addcmul_(const Tensor& a, const Tensor& b, const Scalar& value) const {
  TENON_SCOPE(addcmul_, *this, a, b, value)
  addc(TENON_OP("addcmul"), false, *this, a, b, value, true);
  return const_cast<Tensor&>(*this);
}
Tensor& Tensor::addcdiv_(const Tensor& a, const Tensor& b, const Scalar& value) const {
  TENON_SCOPE(addcdiv_, *this, a, b, value)
  addc(TENON_OP("addcdiv"), true, *this, a, b, value, true);
  return const_cast<Tensor&>(*this);
}
Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight) {
  TENON_SCOPE(lerp, self, end, weight)
  return lerp_impl(self, end, {}, weight, false);
}
Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  TENON_SCOPE(lerp, self, end, weight)
  return lerp_impl(self, end, weight, 0, false);
}
Tensor Tensor::lerp(const Tensor& end, const Scalar& weight) const { return tenon::lerp(*this, end, weight); }
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const { return tenon::lerp(*this, end, weight); }
Tensor& Tensor::lerp_(const Tensor& end, const Scalar& weight) const {
  TENON_SCOPE(lerp_, *this, end, weight)
  lerp_impl(*this, end, {}, weight, true);
  return const_cast<Tensor&>(*this);
}

Tensor& Tensor::lerp_(const Tensor& end, const Tensor& weight) const {
  TENON_SCOPE(lerp_, *this, end, weight)
  lerp_impl(*this, end, weight, 0, true);
  return const_cast<Tensor&>(*this);
}

}  // namespace tenon
