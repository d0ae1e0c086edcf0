// What the cpu's kernels refuse, and what they take that is left out.
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/attention.h>
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/kernel/attributes/paged_attention.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../harness.h"

namespace tenon::conformance {
namespace {

Tensor counted(Dtype dtype, const Sizes& sizes) {
  return Tensor(dtype, sizes).fill([](i64 i) { return static_cast<double>(i % 7 - 3); });
}

TEST(Refusals, NameTheKernelAndTheDtypeThatItIsNotFor) {
  for_each_bench([](Bench& bench) {
    if (!bench.is_whole()) return;
    const auto expect_refusal = [&](const char* kernel, Dtype dtype, int inputs, const Sizes& sizes, const void* a,
                                    const char* named = nullptr) {
      Tensor y = counted(dtype, sizes);
      const std::vector<Tensor> operands(static_cast<std::size_t>(inputs), counted(dtype, sizes));
      std::string said;
      try {
        bench.run(kernel, {y, counted(dtype, sizes), counted(dtype, sizes)}, operands, a);
      } catch (const Error& error) {
        said = error.what();
      }
      const std::string wanted = std::string("cpu: kernel '") + (named != nullptr ? named : kernel) +
                                 "' is not defined for " + std::string(name_of(dtype));
      EXPECT_TRUE(said.starts_with(wanted)) << said << " is not " << wanted;
    };
    for (const Dtype dtype : kFloats) {
      expect_refusal("bitwise_not", dtype, 1, {5}, nullptr);
      expect_refusal("bitwise_and", dtype, 2, {5}, nullptr);
    }
    const ConvAttributes window{.spatial = 1};
    const AttentionAttributes attention;
    const PagedAttentionAttributes paged{.length = 1};
    const DimAttributes dim;
    const PoolAttributes pool{.spatial = 1};
    for (const Dtype dtype : {Dtype::kInt32, Dtype::kInt64, Dtype::kUInt8}) {
      expect_refusal("addcdiv", dtype, 3, {5}, nullptr);
      expect_refusal("lerp", dtype, 3, {5}, nullptr);
      expect_refusal("exp", dtype, 1, {5}, nullptr);
      expect_refusal("tanh_backward", dtype, 2, {5}, nullptr, "tanh");
      expect_refusal("conv", dtype, 3, {1, 1, 1}, &window);
      expect_refusal("attention", dtype, 4, {1, 1, 1, 1}, &attention);
      expect_refusal("attention_backward", dtype, 7, {1, 1, 1, 1}, &attention);
      expect_refusal("paged_attention", dtype, 2, {1, 1, 1, 1}, &paged);
      expect_refusal("conv_backward_input", dtype, 2, {1, 1, 1}, &window, "conv");
      expect_refusal("conv_backward_weight", dtype, 2, {1, 1, 1}, &window, "conv");
      expect_refusal("norm", dtype, 1, {5}, nullptr);
      expect_refusal("mean", dtype, 1, {5}, nullptr);
      expect_refusal("var", dtype, 1, {5}, nullptr);
      expect_refusal("std", dtype, 1, {5}, nullptr, "var");
      expect_refusal("var_mean", dtype, 1, {5}, nullptr, "var");
      expect_refusal("softmax", dtype, 1, {5}, &dim);
      expect_refusal("log_softmax_backward", dtype, 2, {5}, &dim, "softmax");
      expect_refusal("logcumsumexp", dtype, 1, {5}, &dim);
      expect_refusal("avg_pool", dtype, 1, {1, 1, 4}, &pool);
      expect_refusal("adaptive_avg_pool_backward", dtype, 1, {1, 1, 4}, &pool, "avg_pool");
      expect_refusal("lstm_cell", dtype, 2, {2, 3}, nullptr, "recurrent cell");
    }
  });
}

TEST(NllLoss, OfOneExampleIsThatOfItsClass) {
  for_each_bench([](Bench& bench) {
    const NllLossAttributes attributes;
    for (const i64 classes : {1, 3, 6}) {
      const Tensor x = counted(Dtype::kFloat32, {classes});
      for (i64 target = 0; target <= classes; ++target) {
        Tensor of(Dtype::kInt64, {}), loss(Dtype::kFloat32, {}), total(Dtype::kFloat32, {}),
            dx(Dtype::kFloat32, {classes});
        of.set_integer(0, target);
        if (target == classes) {
          EXPECT_THROW(bench.run("nll_loss", {loss, total}, {x, of, Tensor()}, &attributes), Error);
          continue;
        }
        bench.run("nll_loss", {loss, total}, {x, of, Tensor()}, &attributes);
        EXPECT_EQ(loss.real(0), -x.real(target));
        EXPECT_EQ(total.real(0), 1);
        bench.run("nll_loss_backward", {dx}, {counted(Dtype::kFloat32, {}), of, Tensor(), total}, &attributes);
        for (i64 i = 0; i < classes; ++i) EXPECT_EQ(dx.real(i), i == target ? 3 : 0);
      }
    }
  });
}

TEST(Indexing, WithoutAttributesItSelectsAndAssigns) {
  for_each_bench([](Bench& bench) {
    const Tensor x = counted(Dtype::kFloat32, {5, 3});
    Tensor rows(Dtype::kInt64, {2}), y(Dtype::kFloat32, {2, 3}), to = counted(Dtype::kFloat32, {5, 3});
    rows.fill([](i64 i) { return static_cast<double>(4 - 3 * i); });
    bench.run("index", {y}, {x, rows});
    for (i64 i = 0; i < 6; ++i) EXPECT_EQ(y.real(i), x.real((i < 3 ? 12 : 3) + i % 3));
    Tensor values(Dtype::kFloat32, {2, 3});
    values.fill([](i64 i) { return static_cast<double>(10 + i); });
    bench.run("index_put", {to}, {values, rows});
    for (i64 i = 0; i < 15; ++i) EXPECT_EQ(to.real(i), i >= 12 ? 10 + i - 12 : i / 3 == 1 ? 13 + i - 3 : x.real(i));
  });
}

}  // namespace
}  // namespace tenon::conformance
