// Binary and bitwise rows of kernel/pointwise.h, each with tensor or scalar on either side.
#include "kernels/errors.cuh"
#include "kernels/kernels.h"
#include "kernels/pointwise/engine.cuh"
#include "kernels/pointwise/row_name.h"
#include "kernels/pointwise/scalar_as.h"

#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/pointwise.h>

namespace tenon::cuda {
namespace {

using pointwise::Integers;

const BinaryAttributes& given_or_plain(const void* attributes) {
  static const BinaryAttributes kPlain;
  return attributes != nullptr ? *static_cast<const BinaryAttributes*>(attributes) : kPlain;
}

template <class Row>
inline constexpr bool kScales = std::is_same_v<Row, pointwise::Add> || std::is_same_v<Row, pointwise::Sub>;

template <class Row, class C>
struct Value {
  C alpha;  ///< what b is multiplied by in add and sub

  __device__ C operator()(C a, C b) const {
    if constexpr (kScales<Row>) b *= alpha;
    return Row::template value<C>(a, b);
  }
};

/// Integers: what wraps is computed without a sign, and shifts know no width.
template <class Row>
struct Value<Row, i64> {
  i64 alpha;

  __device__ i64 operator()(i64 a, i64 b) const {
    if constexpr (std::is_same_v<Row, pointwise::ShiftLeft>) {
      return static_cast<u64>(b) > 63 ? 0 : static_cast<i64>(static_cast<u64>(a) << b);
    } else if constexpr (std::is_same_v<Row, pointwise::ShiftRight>) {
      return a >> (static_cast<u64>(b) > 63 ? 63 : b);
    } else if constexpr (Row::kIntegers == Integers::kWrapped) {
      if constexpr (kScales<Row>) b = static_cast<i64>(static_cast<u64>(b) * static_cast<u64>(alpha));
      return static_cast<i64>(Row::template value<u64>(static_cast<u64>(a), static_cast<u64>(b)));
    } else {
      return Row::template value<i64>(a, b);
    }
  }
};

template <class Row>
constexpr JoinedName kZeroDivision = joined("ZeroDivisionError: '", Row::name, "' of integers with a zero divisor");
template <class Row>
constexpr ErrorText kZeroDivisor{ErrorText::Kind::kError, Row::name, kZeroDivision<Row>.text};

template <class Row>
struct Quotient {
  ErrorReport report;

  __device__ i64 operator()(i64 a, i64 b) const {
    if (b == 0) {
      report.raise();
      return 0;
    }
    if (b == -1 && a == INT64_MIN) a = -INT64_MAX;  // the quotient does not exist
    return Row::template value<i64>(a, b);
  }
};

template <class L, class F>
void run(KernelContext& context, const F& f, Views outputs, Views inputs, const BinaryAttributes& given) {
  const auto number = PointwiseInput::number(scalar_as<typename L::Value>(given.scalar));
  const PointwiseInput a = given.scalar_side == ScalarSide::kLeft ? number : PointwiseInput(inputs[0]);
  const PointwiseInput b = given.scalar_side == ScalarSide::kRight ? number : PointwiseInput(inputs[1]);
  run_pointwise<L, L, L>(context, f, outputs[0], a, b);
}

template <class Row>
void integers(KernelContext& context, Views outputs, Views inputs, const BinaryAttributes& given) {
  if constexpr (Row::kIntegers == Integers::kDivided) {
    run<IntegerLane>(context, Quotient<Row>{errors(context, kZeroDivisor<Row>)}, outputs, inputs, given);
  } else if constexpr (pointwise::computes(Row::kIntegers)) {
    run<IntegerLane>(context, Value<Row, i64>{scalar_as<i64>(given.alpha)}, outputs, inputs, given);
  } else {
    refuse_dtype(Row::name, outputs[0].dtype);
  }
}

template <class Row>
void binary(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const BinaryAttributes& given = given_or_plain(attributes);
  const Dtype dtype = outputs[0].dtype;
  if (dtype == Dtype::kFloat64) {
    run<DoubleLane>(context, Value<Row, double>{scalar_as<double>(given.alpha)}, outputs, inputs, given);
  } else if (is_floating_point(dtype)) {
    run<FloatLane>(context, Value<Row, float>{scalar_as<float>(given.alpha)}, outputs, inputs, given);
  } else {
    integers<Row>(context, outputs, inputs, given);
  }
}

template <class Row>
void bitwise(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (is_floating_point(outputs[0].dtype)) refuse_dtype(Row::name, outputs[0].dtype);
  integers<Row>(context, outputs, inputs, given_or_plain(attributes));
}

template <class... Rows>
void add_rows(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &binary<Rows>), ...);
}
template <class... Rows>
void add_bitwise(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &bitwise<Rows>), ...);
}

}  // namespace

void add_binary(const KernelSink& sink) {
  add_rows(sink, pointwise::Binary{});
  add_bitwise(sink, pointwise::Bitwise{});
}

}  // namespace tenon::cuda
