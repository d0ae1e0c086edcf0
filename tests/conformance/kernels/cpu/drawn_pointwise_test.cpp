// Copies and pointwise kernels on drawn operands beside loops.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/attributes/random.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using DrawnPointwise = CpuCase;

Sizes any_sizes(Draw& draw) { return draw.sizes(static_cast<int>(draw.number(0, 5)), draw.one_in(12) ? 70000 : 2500); }

TEST_F(DrawnPointwise, CopiesOfEveryDtypeFromAndToEveryLayout) {
  for_draws(250, [](Bench& bench, Draw& draw) {
    const Sizes sizes = any_sizes(draw);
    const Dtype from = draw.any_of(kAllTypes), to = draw.one_in(2) ? from : draw.any_of(kAllTypes);
    const Tensor x = draw.spread(from, sizes), y = draw.room(to, sizes);
    bench.run("copy", {y}, {x});
    Wanted wanted(to, sizes);
    for (i64 i = 0; i < x.count(); ++i) wanted.set(i, to == Dtype::kBool ? x.real(i) != 0 : x.real(i));
    wanted.expect(y, std::string(name_of(from)));
  });
}

TEST_F(DrawnPointwise, OverlongDrawsOfTwoDimensionsAreCopiedInTiles) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    constexpr i64 kEdges[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100};
    const Sizes sizes{draw.any_of(kEdges), draw.any_of(kEdges), draw.number(1, 3)};
    const Dtype dtype = draw.any_of(kAllTypes);
    for (const auto& [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
      Sizes turned = sizes;
      std::swap(turned[static_cast<std::size_t>(a)], turned[static_cast<std::size_t>(b)]);
      const Tensor x = draw.plain(dtype, turned).transposed(a, b);
      Tensor y(dtype, sizes), back(dtype, turned);
      bench.run("copy", {y}, {x});
      bench.run("copy", {back.transposed(a, b)}, {y});
      Wanted wanted(dtype, sizes);
      for (i64 i = 0; i < x.count(); ++i) wanted.set(i, x.real(i));
      wanted.expect(y, "copy");
      wanted.expect(back.transposed(a, b), "back");
    }
  });
}

TEST_F(DrawnPointwise, FillsReachEveryElementOfEveryLayout) {
  for_draws(80, [](Bench& bench, Draw& draw) {
    const Sizes sizes = any_sizes(draw);
    const Dtype dtype = draw.any_of(kAllTypes);
    const i64 value = dtype == Dtype::kBool ? 1 : draw.number(1, 100);
    const FillAttributes a{.value = {static_cast<double>(value), value}};
    const Tensor y = draw.room(dtype, sizes);
    bench.run("fill", {y}, {}, &a);
    Wanted wanted(dtype, sizes);
    for (i64 i = 0; i < y.count(); ++i) wanted.set(i, static_cast<double>(value));
    wanted.expect(y, "fill");
  });
}

struct Row {
  const char* name;
  int inputs;
  bool takes_truth, gives_truth, has_condition;  // the condition is the first input
  double (*value)(double, double, double);
};
constexpr Row kRows[] = {
    {"neg", 1, false, false, false, [](double a, double, double) { return -a; }},
    {"mul", 2, false, false, false, [](double a, double b, double) { return a * b; }},
    {"sub", 2, false, false, false, [](double a, double b, double) { return a - b; }},
    {"eq", 2, true, true, false, [](double a, double b, double) -> double { return a == b; }},
    {"lt", 2, true, true, false, [](double a, double b, double) -> double { return a < b; }},
    {"where", 3, true, false, true, [](double c, double a, double b) { return c != 0 ? a : b; }},
    {"addcmul", 3, false, false, false, [](double x, double a, double b) { return x + a * b; }},
    {"clamp_tensor", 3, false, false, false, [](double x, double a, double b) { return std::min(std::max(x, a), b); }},
};

TEST_F(DrawnPointwise, RowsReadOperandsOfEveryLayoutAndBroadcast) {
  for_draws(400, [](Bench& bench, Draw& draw) {
    const Row row = draw.any_of(kRows);
    Dtype dtype = draw.any_of(kAllTypes);
    while (!row.takes_truth && dtype == Dtype::kBool) dtype = draw.any_of(kAllTypes);
    const Sizes sizes = any_sizes(draw);
    const Dtype to = row.gives_truth ? Dtype::kBool : dtype;
    std::vector<Tensor> inputs;
    for (int k = 0; k < row.inputs; ++k)
      inputs.push_back(draw.spread(k == 0 && row.has_condition ? Dtype::kBool : dtype, sizes));
    Wanted wanted(to, sizes);
    const auto value = [&](std::size_t k, i64 i) { return k < inputs.size() ? inputs[k].real(i) : 0; };
    for (i64 i = 0; i < inputs[0].count(); ++i) wanted.set(i, row.value(value(0, i), value(1, i), value(2, i)));
    Tensor y = draw.room(to, sizes);
    if (draw.one_in(4) && to == inputs[0].dtype()) {  // in place
      bench.run("copy", {y}, {inputs[0]});
      inputs[0] = y;
    }
    bench.run(row.name, {y}, inputs);
    wanted.expect(y, row.name);
  });
}

TEST_F(DrawnPointwise, ANumberStandsForAnOperandOnItsSide) {
  struct Case {
    const char* name;
    bool gives_truth;
    double (*value)(double, double);
  };
  constexpr Case kCases[] = {{"sub", false, [](double a, double b) { return a - 2 * b; }},
                             {"add", false, [](double a, double b) { return a + 2 * b; }},
                             {"lt", true, [](double a, double b) -> double { return a < b; }},
                             {"ge", true, [](double a, double b) -> double { return a >= b; }}};
  for_draws(120, [&](Bench& bench, Draw& draw) {
    const Case c = draw.any_of(kCases);
    Dtype dtype = draw.any_of(kAllTypes);
    if (dtype == Dtype::kBool) dtype = Dtype::kInt8;
    const Sizes sizes = any_sizes(draw);
    const bool is_left = draw.one_in(2);
    const i64 number = draw.number(0, 3);
    BinaryAttributes a{.alpha = {2, 2}, .scalar = {static_cast<double>(number), number}};
    if (c.gives_truth) a.alpha = {1, 1};
    a.scalar_side = is_left ? ScalarSide::kLeft : ScalarSide::kRight;
    const Tensor x = draw.spread(dtype, sizes), y = draw.room(c.gives_truth ? Dtype::kBool : dtype, sizes);
    bench.run(c.name, {y}, is_left ? std::vector{Tensor(), x} : std::vector{x, Tensor()}, &a);
    Wanted wanted(y.dtype(), sizes);
    for (i64 i = 0; i < x.count(); ++i) {
      const auto s = static_cast<double>(number);
      wanted.set(i, is_left ? c.value(s, x.real(i)) : c.value(x.real(i), s));
    }
    wanted.expect(y, c.name);
  });
}

TEST_F(DrawnPointwise, MaskedPlacesAreFilledAndTheOthersKept) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const Dtype dtype = draw.any_of(kAllTypes);
    const Sizes sizes = any_sizes(draw);
    const FillAttributes a{.value = {1, 1}};
    const Tensor x = draw.spread(dtype, sizes), mask = draw.spread(Dtype::kBool, sizes, 0, 1),
                 y = draw.room(dtype, sizes);
    bench.run("masked_fill", {y}, {x, mask}, &a);
    Wanted wanted(dtype, sizes);
    for (i64 i = 0; i < x.count(); ++i) wanted.set(i, mask.integer(i) != 0 ? 1 : x.real(i));
    wanted.expect(y, "masked_fill");
  });
}

TEST_F(DrawnPointwise, SequencesAndTrianglesReachEveryElement) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const i64 count = draw.one_in(6) ? draw.number(16000, 25000) : draw.number(0, 40);
    const i64 start = draw.number(-3, 3), step = draw.number(-2, 2);
    constexpr Dtype kWide[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64};
    const Dtype dtype = draw.any_of(kWide);
    const auto number = [](i64 value) { return ScalarValue{static_cast<double>(value), value}; };
    SequenceAttributes a{.start = number(start), .step = number(step), .end = number(start + (count - 1) * step)};
    const Tensor range = draw.room(dtype, {count}), line = draw.room(dtype, {count});
    bench.run("arange", {range}, {}, &a);
    bench.run("linspace", {line}, {}, &a);
    Wanted wanted(dtype, {count});
    for (i64 i = 0; i < count; ++i) wanted.set(i, static_cast<double>(start + i * step));
    wanted.expect(range, "arange");
    wanted.expect(line, "linspace");

    const Dtype any = draw.any_of(kAllTypes);
    const Sizes matrix{draw.number(0, 20), draw.number(0, 20)};
    const Tensor unit = draw.room(any, matrix);
    bench.run("eye", {unit}, {});
    Wanted ones(any, matrix);
    for (i64 i = 0; i < unit.count(); ++i) ones.set(i, i / matrix[1] == i % matrix[1] ? 1 : 0);
    ones.expect(unit, "eye");

    Sizes sizes = draw.sizes(static_cast<int>(draw.number(2, 4)), draw.one_in(8) ? 40000 : 2500);
    const TriangleAttributes triangle{.diagonal = draw.number(-4, 4)};
    const bool is_lower = draw.one_in(2);
    const Tensor x = draw.spread(any, sizes), y = draw.room(any, sizes);
    bench.run(is_lower ? "tril" : "triu", {y}, {x}, &triangle);
    Wanted kept(any, sizes);
    for (i64 i = 0; i < y.count(); ++i) {
      const i64 columns = sizes.back(), rows = sizes[sizes.size() - 2], right = i % columns - i / columns % rows;
      kept.set(i, (is_lower ? right <= triangle.diagonal : right >= triangle.diagonal) ? x.real(i) : 0);
    }
    kept.expect(y, is_lower ? "tril" : "triu");
  });
}

}  // namespace
}  // namespace tenon::conformance
