// A table of how far each pointwise kernel is off, in units in the last place of its result: what a backend rounds
// otherwise than the definition does, and what its approximations cost. Beside the largest error the part of the
// elements that are rounded to the nearest.
//
// The definition is computed in double, so that for float64 the table shows by how much the backend and the host's
// library differ. TENON_CONFORMANCE_PLUGIN says which backend; --samples how many elements of each row.
#include "../../support/row_checks.h"

#include <tenon/core/half.h>
#include <tenon/kernel/attributes/pointwise.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "harness.h"

namespace tenon::conformance {
namespace {

using tenon::test::Check;
using tenon::test::for_each_row;

constexpr Dtype kColumns[] = {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64};

struct Format {
  int digits;  ///< bits of the significand
  int least;   ///< exponent of the smallest normal number
  double largest;
};
Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return {11, -14, 65504};
    case Dtype::kBFloat16:
      return {8, -126, 0x1.fep127};
    case Dtype::kFloat32:
      return {24, -126, 0x1.fffffep127};
    default:
      return {53, -1022, std::numeric_limits<double>::max()};
  }
}

/// The distance of the numbers around `value`.
double unit_at(double value, const Format& format) {
  const int exponent = value == 0 ? format.least : std::max(std::ilogb(value), format.least);
  return std::ldexp(1.0, exponent - (format.digits - 1));
}

/// What a row's elements have come to.
struct Errors {
  double largest = 0;
  i64 nearest = 0, counted = 0, nonsense = 0;

  void add(double got, double want, const Format& format) {
    if (std::isnan(want) && std::isnan(got)) return;
    // Rounded, it may be infinite.
    if (std::isinf(got) && std::fabs(want) > format.largest && std::signbit(got) == std::signbit(want)) return;
    if (!std::isfinite(got) || !std::isfinite(want)) {
      nonsense += got != want;
      return;
    }
    const double error = std::fabs(got - want) / unit_at(want, format);
    largest = std::max(largest, error);
    nearest += error <= 0.5;
    ++counted;
  }
  std::string text() const {
    if (nonsense != 0) return std::to_string(nonsense) + " not finite where they should be, or the reverse";
    char cell[64];
    std::snprintf(cell, sizeof cell, "%.3g (%.1f %%)", largest,
                  counted == 0 ? 100.0 : 100.0 * static_cast<double>(nearest) / static_cast<double>(counted));
    return cell;
  }
};

template <class Row>
PointwiseAttributes attributes_of() {
  PointwiseAttributes attributes;
  for (int i = 0; i < 3; ++i) attributes.parameters[i].real = Check<Row>::kParameters[i];
  return attributes;
}

class Table {
 public:
  Table(Bench& bench, i64 samples) : bench_(bench), samples_(samples) {
    std::printf("| kernel | float16 | bfloat16 | float32 | float64 |\n|---|---|---|---|---|\n");
  }

  /// run(dtype, random, errors) puts a column's elements into `errors`.
  template <class Run>
  void row(const char* name, const Run& run) {
    if (!bench_.has(name)) return;
    std::string line = "| `" + std::string(name) + "` |";
    for (const Dtype dtype : kColumns) {
      Random random(23);
      Errors errors;
      run(dtype, random, errors);
      is_right_ = is_right_ && errors.nonsense == 0;
      line += " " + errors.text() + " |";
    }
    std::puts(line.c_str());
    ++rows_;
  }
  template <class Row>
  void unary() {
    const PointwiseAttributes attributes = attributes_of<Row>();
    row(Row::name, [&](Dtype dtype, Random& random, Errors& errors) {
      const Tensor x =
          random_tensor(dtype, {samples_}, Layout::kContiguous, random, Check<Row>::kLow, Check<Row>::kHigh);
      const Tensor y(dtype, {samples_});
      bench_.run(Row::name, {y}, {x}, &attributes);
      for (i64 i = 0; i < samples_; ++i)
        errors.add(y.real(i), Row::template value<double>(x.real(i), Check<Row>::kParameters), format_of(dtype));
    });
  }
  template <class Row>
  void binary() {
    row(Row::name, [&](Dtype dtype, Random& random, Errors& errors) {
      const auto draw = [&] {
        return random_tensor(dtype, {samples_}, Layout::kContiguous, random, Check<Row>::kLow, Check<Row>::kHigh);
      };
      const Tensor a = draw(), b = draw(), y(dtype, {samples_});
      bench_.run(Row::name, {y}, {a, b});
      for (i64 i = 0; i < samples_; ++i)
        errors.add(y.real(i), Row::template value<double>(a.real(i), b.real(i)), format_of(dtype));
    });
  }
  /// Whether there are rows, and none whose results are infinite or not a number where they should not be.
  bool is_right() const { return rows_ != 0 && is_right_; }

 private:
  Bench& bench_;
  const i64 samples_;
  int rows_ = 0;
  bool is_right_ = true;
};

}  // namespace
}  // namespace tenon::conformance

int main(int count, char** words) {
  using namespace tenon::conformance;
  long samples = 20000;
  if (count == 3 && std::strcmp(words[1], "--samples") == 0) samples = std::atol(words[2]);
  if ((count != 1 && count != 3) || samples < 1) {
    std::fprintf(stderr, "usage: %s [--samples N]\n", words[0]);
    return 2;
  }
  Bench& bench = *benches().front();
  bench.enter();
  Table table(bench, samples);
  tenon::test::for_each_row(tenon::pointwise::Unary{}, [&]<class Row>(Row) { table.unary<Row>(); });
  tenon::test::for_each_row(tenon::pointwise::Binary{}, [&]<class Row>(Row) { table.binary<Row>(); });
  return table.is_right() ? 0 : 1;
}
