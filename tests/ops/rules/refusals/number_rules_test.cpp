// Numbers beside tensors at the ends of what each dtype holds: the last one that fits is taken, the next is refused.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/refusal.h"

namespace tenon {
namespace {

struct Whole {
  Dtype dtype;
  const char* type;
  std::int64_t low, high;
};
const std::vector<Whole> kWhole = {{kUInt8, "uint8_t", 0, 255},
                                   {kInt8, "int8_t", -128, 127},
                                   {kInt16, "int16_t", -32768, 32767},
                                   {kInt32, "int", -(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1}};

TEST(NumberRules, AnElementIsTheLastNumberThatItsDtypeHoldsAndNoneBeyond) {
  for (const Whole& w : kWhole) {
    for (const std::int64_t number : {w.low, w.high}) {
      EXPECT_EQ(full({2}, number, w.dtype)[1].item<std::int64_t>(), number) << w.type;
      EXPECT_EQ(zeros({2}, w.dtype).fill_(number)[1].item<std::int64_t>(), number);
      EXPECT_EQ(zeros({2}, w.dtype).masked_fill(ones({2}, kBool), number)[1].item<std::int64_t>(), number);
      EXPECT_EQ(full({2}, static_cast<double>(number), w.dtype)[0].item<std::int64_t>(), number);
    }
    // Of unsigned ones the negatives of what they hold are taken, too.
    const std::int64_t below = w.low == 0 ? -w.high - 1 : w.low - 1;
    for (const std::int64_t number : {below, w.high + 1}) {
      EXPECT_EQ(refusal_of([&] { zeros({2}, w.dtype).fill_(number); }),
                std::string("value cannot be converted to type ") + w.type + " without overflow (the value is " +
                    std::to_string(number) + ")");
    }
  }
  struct Real {
    Dtype dtype;
    const char* type;
    double most;
  };
  for (const Real& r : {Real{kFloat16, "at::Half", 65504}, Real{kBFloat16, "at::BFloat16", 0x1.fep127},
                        Real{kFloat32, "float", std::numeric_limits<float>::max()}}) {
    for (const double sign : {1., -1.}) {
      EXPECT_EQ(zeros({1}, r.dtype).fill_(sign * r.most).item<double>(), sign * r.most) << r.type;
      EXPECT_TRUE(refusal_of([&] {
                    zeros({2}, r.dtype).fill_(sign * r.most * 1.01);
                  }).starts_with(std::string("value cannot be converted to type ") + r.type + " without overflow"));
      EXPECT_TRUE(std::isinf(zeros({1}, r.dtype).fill_(sign * std::numeric_limits<double>::infinity()).item<double>()));
    }
  }
  for (const Dtype dtype : {kFloat16, kBFloat16})
    EXPECT_TRUE(std::isinf(zeros({1}, dtype).fill_(1e300).item<double>())) << "a single one, as in PyTorch";
  EXPECT_NE(refusal_of([] { zeros({1}).fill_(1e300); }), "");
  EXPECT_EQ(zeros({1}, kFloat64).fill_(1e300).item<double>(), 1e300);
}

TEST(NumberRules, ABoundThatNoElementReachesIsNoneAndOneBeyondAllIsRefused) {
  for (const Whole& w : kWhole) {
    const Tensor x = full({1}, w.low + 3, w.dtype);
    for (const std::int64_t beyond : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}}) {
      EXPECT_EQ(x.clamp(w.low - beyond, w.high + beyond).item<std::int64_t>(), w.low + 3) << w.type;
      EXPECT_EQ(refusal_of([&] { x.clamp_min(w.high + beyond); }),
                beyond == 0 ? ""
                            : "Clamp min value " + std::to_string(w.high + beyond) +
                                  " is outside the representable range of " + toString(w.dtype));
      EXPECT_EQ(refusal_of([&] { x.clamp_max(w.low - beyond); }),
                beyond == 0 ? ""
                            : "Clamp max value " + std::to_string(w.low - beyond) +
                                  " is outside the representable range of " + toString(w.dtype));
    }
    EXPECT_EQ(x.clamp_min(w.high).item<std::int64_t>(), w.high);
    EXPECT_EQ(x.clamp_max(w.low).item<std::int64_t>(), w.low);
    EXPECT_EQ(x.clamp(w.low + 1, w.low + 2).item<std::int64_t>(), w.low + 2);
  }
}

TEST(NumberRules, FactorsAreOfTheKindOfTheResult) {
  const auto refusal = [](Dtype dtype, const Scalar& alpha) {
    return refusal_of([&] { ones({2}, dtype).add(ones({2}, dtype), alpha); });
  };
  const auto is_whole = [](const std::string& text) {
    return text.starts_with("For integral input tensors, argument alpha must not be a floating point number.");
  };
  const auto is_bool = [](const std::string& text) {
    return text.starts_with("Boolean alpha only supported for Boolean results.");
  };
  for (const Dtype dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    EXPECT_TRUE(is_whole(refusal(dtype, 1.5))) << toString(dtype);
    EXPECT_EQ(refusal(dtype, 1), "");
  }
  for (const Dtype dtype : {kUInt8, kInt64, kFloat32, kFloat64, kFloat16}) {
    EXPECT_TRUE(is_bool(refusal(dtype, true))) << toString(dtype);
    if (dtype == kFloat32 || dtype == kFloat64 || dtype == kFloat16) {
      EXPECT_EQ(refusal(dtype, 1.5), "");
    }
  }
  EXPECT_EQ(refusal(kBool, true), "");
}

TEST(NumberRules, ChancesOfALossLieBetweenZeroAndOneHoweverFewTheyAre) {
  for (const std::int64_t count : {1, 2, 5}) {
    const Tensor target = zeros({count});
    for (const double bad : {-0.01, 1.01, std::nan("")}) {
      const Tensor p = full({count}, 0.5);
      p[count - 1].fill_(bad);
      EXPECT_TRUE(refusal_of([&] {
                    binary_cross_entropy(p, target);
                  }).starts_with("binary_cross_entropy: all elements of input should be between 0 and 1"))
          << count << ", " << bad;
    }
    for (const double good : {0., 1.})
      EXPECT_EQ(refusal_of([&] { binary_cross_entropy(full({count}, good), target); }), "");
  }
  EXPECT_EQ(refusal_of([] { binary_cross_entropy(zeros({0}), zeros({0})); }), "");
}

TEST(NumberRules, StatesOfCellsAreTensorsOfTheirOwn) {
  const Tensor x = ones({2, 3}), h = zeros({2, 4}), c = zeros({2, 4});
  const Tensor w_ih = ones({16, 3}), w_hh = ones({16, 4}), b = zeros({16});
  for (const bool records : {false, true}) {
    const Tensor weight = records ? w_ih.clone().requires_grad_() : w_ih;
    const auto [next_h, next_c] = lstm_cell(x, std::vector<Tensor>{h, c}, weight, w_hh, b, b);
    for (const Tensor& state : {next_h, next_c}) {
      EXPECT_FALSE(state.is_view());
      EXPECT_EQ(state._version(), 0);
      EXPECT_EQ(refusal_of([&] { state.add_(1); }), "");
    }
    const Tensor gru =
        gru_cell(x, h, weight.narrow(0, 0, 12), w_hh.narrow(0, 0, 12), b.narrow(0, 0, 12), b.narrow(0, 0, 12));
    EXPECT_FALSE(gru.is_view());
  }
}

}  // namespace
}  // namespace tenon
