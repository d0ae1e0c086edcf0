// The columns of kernel/rows that are for tests, as data: Check<Row> says where a pointwise row is checked, with which
// parameters, and what PyTorch 2.15 gives.
#pragma once

#include <tenon/kernel/pointwise.h>

namespace tenon::test {

struct KnownUnary {
  double x, y;
};
struct KnownBinary {
  double a, b, y;
};

template <class Row>
struct Check;

#define TENON_CHECK(Row, Known, low, high, parameters, ...)                     \
  template <>                                                                   \
  struct Check<pointwise::Row> {                                                \
    static constexpr double kLow = low, kHigh = high;                           \
    static constexpr double kParameters[] = {parameters}; /* 0 where none is */ \
    static constexpr Known kKnown[] = {__VA_ARGS__};                            \
  };
#define TENON_LIST(...) __VA_ARGS__ __VA_OPT__(, ) 0, 0, 0
#define TENON_UNARY(Row, name, saves, integers, out, value, slope, low, high, ...) \
  TENON_CHECK(Row, KnownUnary, low, high, TENON_LIST(), __VA_ARGS__)
#define TENON_UNARY_KERNEL(Row, name, saves, integers, count, parameters, value, slope, low, high, ...) \
  TENON_CHECK(Row, KnownUnary, low, high, TENON_LIST(TENON_CHECKED_##count parameters), __VA_ARGS__)
#define TENON_UNARY_WITH(Row, name, saves, integers, out, ...) \
  TENON_UNARY_KERNEL(Row, name, saves, integers, __VA_ARGS__)
#include <tenon/kernel/rows/unary.inl>

#define TENON_BINARY_KERNEL(Row, name, reads, integers, value, slope_a, slope_b, low, high, ...) \
  TENON_CHECK(Row, KnownBinary, low, high, TENON_LIST(), __VA_ARGS__)
#define TENON_BINARY(...) TENON_BINARY_KERNEL(__VA_ARGS__)
#include <tenon/kernel/rows/binary.inl>
#undef TENON_CHECK
#undef TENON_LIST

template <class F, class... Rows>
void for_each_row(pointwise::List<Rows...>, const F& f) {
  (f(Rows{}), ...);
}

}  // namespace tenon::test
