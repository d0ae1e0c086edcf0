// How much scratch the cpu's kernels take, for how many threads: for each thread what it needs at a time, as each
// kernel's own loops have it. Less is overrun, which the kit sees; more is memory that a step has not.
#include <tenon/kernel/attributes/attention.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/paged_attention.h>
#include <tenon/kernel/attributes/quantization.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "cpu_case.h"

namespace tenon::conformance {
namespace {

using Workspace = CpuCase;

constexpr i64 kBlockOfQueries = 64;

void for_threads(const test::FunctionRef<void(Bench&, i64)>& test) {
  Bench& bench = *benches().front();
  bench.enter();
  for (const int threads : {1, 2, 3, 7}) {
    SCOPED_TRACE(::testing::Message() << threads << " threads");
    bench.driver().set_threads(threads);
    test(bench, threads);
  }
}

Tensor filled(Dtype dtype, const Sizes& sizes) {
  return Tensor(dtype, sizes).fill([](i64 i) { return static_cast<double>(i % 5 - 2) / 4; });
}
i64 pieces(i64 whole, i64 size) { return (whole + size - 1) / size; }

// The scores of 64 queries at most, and what is converted of 16 bits: a head's keys and values, and those queries.
TEST_F(Workspace, OfAttentionIsThatOfABlockOfQueriesForEachThread) {
  struct Case {
    i64 batch, heads, length, keys, width, value_width;
  };
  for_threads([](Bench& bench, i64 threads) {
    for (const Case& c : {Case{1, 1, 1, 1, 1, 1}, Case{1, 2, 63, 5, 4, 3}, Case{1, 1, 64, 65, 8, 2},
                          Case{2, 1, 65, 70, 3, 8}, Case{1, 1, 130, 9, 5, 5}, Case{3, 2, 7, 33, 4, 6}}) {
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
        SCOPED_TRACE(::testing::Message() << c.length << " on " << c.keys << " " << name_of(dtype));
        const Dtype computed = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
        const auto of = [&](i64 rows, i64 columns) { return filled(dtype, {c.batch, c.heads, rows, columns}); };
        const Tensor q = of(c.length, c.width), k = of(c.keys, c.width), v = of(c.keys, c.value_width),
                     dy = of(c.length, c.value_width);
        Tensor y(dtype, dy.sizes()), lse(computed, {c.batch, c.heads, c.length}), dq(dtype, q.sizes()),
            dk(dtype, k.sizes()), dv(dtype, v.sizes());
        const AttentionAttributes a{.scale = 0.5};
        const i64 element = dtype == Dtype::kFloat64 ? 8 : 4, most = std::min(kBlockOfQueries, c.length);
        const i64 widths = c.width + c.value_width, is_converted = dtype == Dtype::kFloat16 ? 1 : 0;
        EXPECT_EQ(bench.workspace_of("attention", {y, lse}, {q, k, v, Tensor()}, &a),
                  std::min(threads, c.batch * c.heads * pieces(c.length, kBlockOfQueries)) *
                      (most * c.keys + is_converted * (most + c.keys) * widths) * element);
        EXPECT_EQ(
            bench.workspace_of("attention_backward", {dq, dk, dv}, {dy, q, k, v, y, lse, Tensor()}, &a),
            std::min(threads, c.batch * c.heads) *
                (2 * most * c.keys + is_converted * (most * (2 * c.width + c.value_width) + 2 * c.keys * widths)) *
                element);
      }
    }
  });
}

// Scores, results and what is widened. Heads that share few keys take them together, for the symbol that comes next.
TEST_F(Workspace, OfPagedAttentionIsThatOfARowOfScoresForEachThread) {
  struct Case {
    i64 count, length, heads, shared, depth, page;
  };
  for_threads([](Bench& bench, i64 threads) {
    for (const Case& c :
         {Case{1, 1, 1, 1, 1, 4}, Case{1, 13, 8, 2, 8, 4}, Case{1, 30, 10, 5, 3, 8}, Case{1, 9, 8, 1, 4, 16},
          Case{1, 9, 9, 1, 4, 16}, Case{1, 9, 18, 2, 4, 16}, Case{1, 9, 140, 2, 2, 3}, Case{2, 9, 4, 2, 8, 4},
          Case{64, 70, 1, 1, 4, 8}, Case{65, 70, 1, 1, 4, 8}}) {
      for (const Dtype dtype : kFloats) {
        SCOPED_TRACE(::testing::Message() << c.count << " of " << c.length << ", " << c.heads << " heads on "
                                          << c.shared << " " << name_of(dtype));
        std::vector<Tensor> inputs{filled(dtype, {c.count, c.heads, c.depth})};
        for (i64 begin = 0; begin < c.length; begin += c.page)
          inputs.push_back(filled(dtype, {2, c.page, c.shared, c.depth}));
        Tensor y(dtype, inputs[0].sizes());
        const PagedAttentionAttributes a{.scale = 0.5, .length = c.length};
        const i64 group = c.heads / c.shared, of = c.count == 1 ? group : c.count;
        const bool is_few = c.count == 1 && group <= 8;
        const i64 units = is_few ? c.shared : pieces(of, 64) * (c.count == 1 ? c.shared : c.heads);
        const i64 parts = std::min(threads, units);
        const i64 rows = is_few ? pieces(c.shared, parts) * group : std::min<i64>(64, of);
        const i64 element = dtype == Dtype::kFloat64 ? 8 : 4;
        EXPECT_EQ(bench.workspace_of("paged_attention", {y}, inputs, &a),
                  parts * (rows * (c.length + 2 * c.depth) + c.page * c.depth) * element);
      }
    }
  });
}

// Rows of the weights that are 256 KiB as floats, one at least.
TEST_F(Workspace, OfWeightsAloneIsThatOfABlockOfTheirRowsForEachThread) {
  for_threads([](Bench& bench, i64 threads) {
    for (const auto& [columns, features] : std::vector<std::pair<i64, i64>>{{0, 3},
                                                                            {1, 1},
                                                                            {64, 10},
                                                                            {1024, 63},
                                                                            {1024, 64},
                                                                            {1024, 65},
                                                                            {1024, 300},
                                                                            {32768, 5},
                                                                            {65536, 3},
                                                                            {65540, 3}}) {
      for (const int bits : {8, 4}) {
        SCOPED_TRACE(::testing::Message() << columns << " to " << features << " of " << bits << " bits");
        const Tensor x = filled(Dtype::kFloat32, {2, columns});
        Tensor w(bits == 8 ? Dtype::kInt8 : Dtype::kUInt8, {features, bits == 8 ? columns : (columns + 1) / 2});
        for (char& byte : w.memory()) byte = static_cast<char>((&byte - w.memory().data()) % 101);
        const Tensor scales = filled(Dtype::kFloat32, {features, 1}), bias = filled(Dtype::kFloat32, {features});
        Tensor y(Dtype::kFloat32, {2, features}), plain(Dtype::kFloat32, {2, features});
        const WeightOnlyAttributes a{.bits = bits};
        const i64 row = std::max<i64>(1, columns) * 4, block = std::min(features, std::max<i64>(1, (256 << 10) / row));
        EXPECT_EQ(bench.workspace_of("weight_only_linear", {y}, {x, w, scales, bias}, &a),
                  std::min(threads, pieces(features, block)) * block * row);
        bench.run("weight_only_linear", {plain}, {x, w, scales, Tensor()}, &a);
        for (i64 i = 0; i < y.count(); ++i) {
          double sum = 0;
          const i64 feature = i % features, bytes = w.size(1);
          for (i64 k = 0; k < columns; ++k) {
            const auto byte = static_cast<unsigned char>(
                w.memory()[static_cast<std::size_t>(feature * bytes + (bits == 8 ? k : k / 2))]);
            const int weight = bits == 8 ? static_cast<signed char>(byte) : (k % 2 == 0 ? byte & 15 : byte >> 4) - 8;
            sum += static_cast<const float*>(x.view().data)[i / features * columns + k] * weight;
          }
          sum *= scales.real(feature);
          ASSERT_NEAR(plain.real(i), sum, 1e-3) << i;
          ASSERT_NEAR(y.real(i), sum + bias.real(feature), 1e-3) << i;
        }
      }
    }
  });
}

// Up to 64 rows of unsigned integers that become numbers are multiplied by weights where they lie. All others are
// oneDNN's, which needs the scales of its channels.
TEST_F(Workspace, OfFewRowsOfIntegersIsNone) {
  if (!benches().front()->has("quantized_conv_planar")) GTEST_SKIP() << "the processor has no products of such rows";
  struct Case {
    const char* what;
    Sizes x;
    i64 stride, groups;
    Dtype from, to;
    bool is_none;
  };
  const Dtype u8 = Dtype::kUInt8, s8 = Dtype::kInt8, f32 = Dtype::kFloat32;
  for_threads([&](Bench& bench, i64) {
    for (const Case& c :
         {Case{"one row", {1, 6, 1, 1}, 1, 1, u8, f32, true}, Case{"64 rows", {1, 6, 1, 64}, 1, 1, u8, f32, true},
          Case{"64 places of pictures", {4, 6, 2, 8}, 1, 1, u8, f32, true},
          Case{"65 rows", {1, 6, 1, 65}, 1, 1, u8, f32, false},
          Case{"signed ones", {1, 6, 1, 64}, 1, 1, s8, f32, false},
          Case{"of which integers are wanted", {1, 6, 1, 64}, 1, 1, u8, u8, false},
          Case{"every other row", {1, 6, 3, 9}, 2, 1, u8, f32, false},
          Case{"groups", {1, 6, 1, 8}, 1, 2, u8, f32, false}}) {
      SCOPED_TRACE(c.what);
      const Sizes y_sizes{c.x[0], 4, (c.x[2] - 1) / c.stride + 1, (c.x[3] - 1) / c.stride + 1};
      const Tensor x = Tensor(c.from, c.x, Layout::kChannelsLast).fill([](i64 i) {
        return static_cast<double>(i % 7);
      }),
                   w = Tensor(s8, {4, 6 / c.groups, 1, 1}).fill([](i64 i) { return static_cast<double>(i % 5 - 2); }),
                   scales = Tensor(f32, {4}).fill([](i64) { return 1; });
      const Tensor y(c.to, y_sizes, Layout::kChannelsLast);
      QuantizedConvAttributes a{.x_scale = 1, .y_scale = 1};
      a.window.groups = c.groups;
      a.window.stride[0] = a.window.stride[1] = c.stride;
      const i64 bytes = bench.workspace_of("quantized_conv", {y}, {x, w, scales, Tensor()}, &a);
      EXPECT_EQ(bytes == 0, c.is_none) << bytes;
    }
  });
}

// The weights in oneDNN's order, a part of each thread's, and no second copy of them.
TEST_F(Workspace, OfIntegersIsThatOfTheirWeightsOnce) {
  for_threads([](Bench& bench, i64 threads) {
    constexpr i64 kIn = 512, kOut = 1024, kRows = 24;  // of windows at a time, where products are made in 16 bits
    const Tensor x = Tensor(Dtype::kInt8, {1, kIn, 1, 100}, Layout::kChannelsLast).fill([](i64) { return 1; }),
                 w = Tensor(Dtype::kInt8, {kOut, kIn, 1, 1}).fill([](i64) { return 1; }),
                 scales = Tensor(Dtype::kFloat32, {kOut}).fill([](i64) { return 1; });
    const Tensor y(Dtype::kFloat32, {1, kOut, 1, 100}, Layout::kChannelsLast);
    const QuantizedConvAttributes a{.x_scale = 1};
    __builtin_cpu_init();
    const bool has_bytes = __builtin_cpu_supports("avx512vnni") && bench.level() != "sse2";
    const i64 rooms = has_bytes ? 0 : std::min<i64>(threads, (100 + kRows - 1) / kRows) * kRows * (2 * kIn + 4 * kOut);
    EXPECT_LT(bench.workspace_of("quantized_conv", {y}, {x, w, scales, Tensor()}, &a),
              (has_bytes ? 1 : 2) * kIn * kOut + kIn * kOut / 2 + rooms);
  });
}

// Elsewhere all three matrices are there as float32, too.
TEST_F(Workspace, OfProductsOfBfloat16IsNoneWhereTheProcessorMultipliesThem) {
  __builtin_cpu_init();
  if (!__builtin_cpu_is("amd")) GTEST_SKIP() << "whether this processor has tiles is not asked here";
  const bool multiplies = __builtin_cpu_supports("avx512bf16") != 0;
  for_threads([&](Bench& bench, i64) {
    const Tensor m = filled(Dtype::kBFloat16, {128, 128}), y(Dtype::kBFloat16, {128, 128});
    const i64 bytes = bench.workspace_of("matmul", {y}, {m, m, Tensor()});
    EXPECT_EQ(bytes < 2 * 128 * 128 * 4, multiplies) << bytes;
  });
}

// Windows unfolded to columns, for each thread's pictures one at a time; a gradient of the weights for each.
TEST_F(Workspace, OfPlainConvolutionsIsThatOfAPictureInColumnsForEachThread) {
  for_threads([](Bench& bench, i64 threads) {
    for (const i64 batch : {1, 2, 5}) {
      for (const i64 groups : {1, 2}) {
        const Tensor x = filled(Dtype::kFloat64, {batch, 4, 5, 6}), w = filled(Dtype::kFloat64, {6, 4 / groups, 3, 2}),
                     dy = filled(Dtype::kFloat64, {batch, 6, 3, 5});
        Tensor y(Dtype::kFloat64, dy.sizes()), dx(Dtype::kFloat64, x.sizes()), dw(Dtype::kFloat64, w.sizes());
        const ConvAttributes a{.groups = groups};
        const i64 rows = 4 / groups * 6, parts = std::min(threads, batch), columns = pieces(rows * 15 * 8, 64) * 64;
        EXPECT_EQ(bench.workspace_of("conv", {y}, {x, w, Tensor()}, &a), parts * columns);
        EXPECT_EQ(bench.workspace_of("conv_backward_input", {dx}, {dy, w}, &a), parts * columns);
        EXPECT_EQ(bench.workspace_of("conv_backward_weight", {dw}, {dy, x}, &a), parts * (columns + 6 * rows * 8));
      }
    }
  });
}

// A partial result for every 65536 elements of an output, and for fewer where neighbouring outputs share their reads.
TEST_F(Workspace, OfReductionsIsAPartialResultForEachPieceOfWhatIsReduced) {
  for_threads([](Bench& bench, i64) {
    constexpr i64 kPiece = 65536, kColumns = 256;
    const auto taken = [&](const Tensor& x, const Sizes& sizes) {
      return bench.workspace_of("sum", {Tensor(Dtype::kFloat32, sizes)}, {x});
    };
    const i64 one = taken(filled(Dtype::kFloat32, {2 * kPiece}), {1}) / 2;
    EXPECT_GT(one, 0);
    for (const i64 count : {kPiece - 1, kPiece, kPiece + 1, 3 * kPiece, 3 * kPiece + 1}) {
      for (const i64 others : {1, 2, 5}) {
        SCOPED_TRACE(::testing::Message() << count << " for each of " << others);
        const i64 parts = count > kPiece ? pieces(count, kPiece) : 0;
        EXPECT_EQ(taken(filled(Dtype::kFloat32, {others, count}), {others, 1}), others * parts * one);
        const i64 width = std::min(others, kColumns), columns = pieces(count, kPiece / width);
        if (others == 1) continue;  // that is a row
        EXPECT_EQ(taken(filled(Dtype::kFloat32, {count, others}), {1, others}), others * columns * one);
      }
    }
  });
}

// Without an element in the result there is nothing to compute it in, whatever the operands are.
TEST_F(Workspace, OfAnEmptyResultIsNothing) {
  for_threads([](Bench& bench, i64) {
    for (const Dtype dtype : kFloats) {
      const Tensor no_picture(dtype, {0, 4, 5, 6}), no_output(dtype, {0, 6, 3, 5}),
          picture = filled(dtype, {2, 4, 5, 6}), no_channels(dtype, {2, 0, 5, 6}), output = filled(dtype, {2, 6, 3, 5}),
          weight = filled(dtype, {6, 4, 3, 2}), no_window(dtype, {6, 0, 3, 2});
      const ConvAttributes a;
      EXPECT_EQ(bench.workspace_of("conv", {no_output}, {no_picture, weight, Tensor()}, &a), 0);
      EXPECT_EQ(bench.workspace_of("conv_backward_input", {no_picture}, {no_output, weight}, &a), 0);
      EXPECT_EQ(bench.workspace_of("conv_backward_input", {no_channels}, {output, no_window}, &a), 0);
      EXPECT_EQ(bench.workspace_of("conv_backward_weight", {no_window}, {output, no_channels}, &a), 0);
      for (const Sizes& none : {Sizes{0, 2, 3, 4}, Sizes{2, 0, 3, 4}, Sizes{0, 2, 0, 4}, Sizes{1, 2, 0, 4}}) {
        const Dtype sums = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
        const AttentionAttributes attention;
        const Tensor q(dtype, none), y(dtype, none), lse(sums, {none[0], none[1], none[2]});
        EXPECT_EQ(bench.workspace_of("attention", {y, lse}, {q, q, q, Tensor()}, &attention), 0);
        EXPECT_EQ(bench.workspace_of("attention_backward", {q, q, q}, {y, q, q, q, y, lse, Tensor()}, &attention), 0);
      }
      const Tensor a_matrix = filled(dtype, {3, 4}).transposed(0, 1), no_rows(dtype, {0, 3}), no_product(dtype, {0, 4});
      EXPECT_EQ(bench.workspace_of("matmul", {no_product}, {no_rows, a_matrix.transposed(0, 1), Tensor()}), 0);
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
