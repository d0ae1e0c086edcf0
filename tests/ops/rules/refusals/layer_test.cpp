// What layers, statistics and windows refuse, word for word, and that they take what lies just inside.
#include <tenon/ops/all_ops.h>
#include <tenon/ops/nn/paged_attention.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "support/refusal.h"

namespace tenon {
namespace {

TEST(AttentionRefusals, AMaskOrCausalAndAProbability) {
  const Tensor q = ones({1, 2, 3, 4});
  const auto refusal = [&](const std::optional<Tensor>& mask, double p, bool causal) {
    return refusal_of([&] { scaled_dot_product_attention(q, q, q, mask, p, causal); });
  };
  EXPECT_EQ(refusal(ones({3, 3}), 0, true),
            "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  EXPECT_EQ(refusal(ones({3, 3}), 0, false), "");
  EXPECT_EQ(refusal({}, 0, true), "");
  EXPECT_EQ(refusal(Tensor(), 0, true), "");
  EXPECT_EQ(refusal({}, 1.5, false), "dropout probability has to be between 0 and 1, but got 1.5");
  EXPECT_EQ(refusal({}, -0.5, false), "dropout probability has to be between 0 and 1, but got -0.5");
  EXPECT_EQ(refusal({}, 1, false), "");
}

TEST(PagedAttentionRefusals, AreOfTheQueryThePagesAndTheirRoom) {
  const Tensor query = ones({2, 4, 8}), page = ones({2, 3, 2, 8});
  const auto refusal = [](const Tensor& query, const std::vector<Tensor>& pages, std::int64_t length) {
    const std::string text = refusal_of([&] { paged_attention(query, pages, length); });
    const std::string name = "paged_attention: ";
    return text.starts_with(name) ? text.substr(name.size()) : text;
  };
  const auto does_not_fit = [](const char* sizes) {
    return "a page of " + std::string(sizes) +
           " does not fit query [2, 4, 8]: it is (2, positions, heads, depth), and its heads divide the query's";
  };
  EXPECT_EQ(refusal(ones({4, 8}), {page}, 3), "query [4, 8] is not (positions, heads, depth)");
  EXPECT_EQ(refusal(query, {page}, 1), "2 queries are at the end of 1 positions");
  EXPECT_EQ(refusal(query, {page}, 2), "");
  EXPECT_EQ(refusal(query, {page}, 3), "");
  EXPECT_EQ(refusal(query, {page}, 4), "1 pages have room for 3 positions, not 4");
  EXPECT_EQ(refusal(query, {page, page}, 6), "");
  EXPECT_EQ(refusal(query, {page, page}, 7), "2 pages have room for 6 positions, not 7");
  EXPECT_EQ(refusal(query, {ones({2, 3, 8})}, 2), does_not_fit("[2, 3, 8]"));
  EXPECT_EQ(refusal(query, {ones({1, 3, 2, 8})}, 2), does_not_fit("[1, 3, 2, 8]"));
  EXPECT_EQ(refusal(query, {ones({2, 3, 3, 8})}, 2), does_not_fit("[2, 3, 3, 8]"));
  EXPECT_EQ(refusal(query, {ones({2, 3, 2, 4})}, 2), does_not_fit("[2, 3, 2, 4]"));
  EXPECT_EQ(refusal(query, {ones({2, 3, 0, 8})}, 2), does_not_fit("[2, 3, 0, 8]"));
  EXPECT_EQ(refusal(query, {page, ones({2, 4, 2, 8})}, 2),
            "pages of [2, 4, 2, 8] and [2, 3, 2, 8], but all have one size");
  EXPECT_EQ(refusal(query, {page.to(kFloat64)}, 2), "query is float32 on cpu, a page float64 on cpu");
}

TEST(CtcRefusals, LogProbabilitiesHaveThreeDimsAndLengthsAreWhole) {
  const Tensor lengths = tensor({2}), labels = tensor({{1, 2}});
  for (const auto& sizes : {std::vector<std::int64_t>{3}, {3, 1, 4, 1}, {0, 1, 4}}) {
    EXPECT_EQ(refusal_of([&] { ctc_loss(ones(sizes), labels, lengths, lengths); }),
              "ctc_loss: log_probs must be (T, N, C) or (T, C) and not empty, got " + to_string(IntArrayRef(sizes)));
  }
  const Tensor log_probs = zeros({3, 1, 4}).log_softmax(2);
  for (const Dtype dtype : {kFloat32, kBool}) {
    EXPECT_EQ(refusal_of([&] { ctc_loss(log_probs, labels, lengths.to(dtype), lengths); }),
              "input_lengths must be integral");
    EXPECT_EQ(refusal_of([&] { ctc_loss(log_probs, labels, lengths, lengths.to(dtype)); }),
              "target_lengths must be integral");
  }
  EXPECT_EQ(refusal_of([&] { ctc_loss(log_probs, labels, lengths.to(kInt32), lengths); }), "");
  const Tensor x = log_probs.clone().requires_grad_();
  const Tensor gradient =
      autograd::grad({ctc_loss(x, labels, tensor({3}), lengths)}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_TRUE(gradient.requires_grad());
  EXPECT_EQ(refusal_of([&] { gradient.sum().backward(); }),
            "the derivative for '_ctc_loss_backward' is not implemented");
}

TEST(PoolingRefusals, PlacesLengthsSamplesAndStrides) {
  const Tensor x = ones({1, 2, 4}), places = zeros({1, 2, 4}, kInt64);
  EXPECT_EQ(refusal_of([&] {
              max_unpool1d(x, places, {8, 8});
            }),
            "max_unpool1d: there should be exactly 1 elements in output_size, but got 2");
  EXPECT_EQ(refusal_of([&] { max_unpool1d(x, places.narrow(2, 0, 3), {8}); }),
            "max_unpool1d: the shape of indices must be the same as input size, but got [1, 2, 3] and [1, 2, 4]");
  EXPECT_EQ(refusal_of([&] { max_unpool1d(x[0][0], places[0][0], {8}); }),
            "max_unpool1d: Expected 2D or 3D input, but got input of size [4]");
  EXPECT_EQ(refusal_of([&] { max_unpool1d(x.unsqueeze(0), places.unsqueeze(0), {8}); }),
            "max_unpool1d: Expected 2D or 3D input, but got input of size [1, 1, 2, 4]");
  EXPECT_EQ(refusal_of([&] { max_unpool1d(x[0], places[0], {8}); }), "");
  const Tensor cube = ones({1, 2, 2, 2, 2}), in_cube = zeros({1, 2, 2, 2, 2}, kInt64);
  EXPECT_EQ(refusal_of([&] {
              max_unpool3d(cube, in_cube, {4, 4, 4}, {1, 0, 1});
            }),
            "max_unpool3d: strides should be greater than zero, but got [1, 0, 1]");
  EXPECT_EQ(refusal_of([&] {
              max_unpool3d(cube, in_cube, {4, 4, 4}, {1, 1});
            }),
            "max_unpool3d: there should be exactly 3 elements in stride, but got 2");
  EXPECT_EQ(refusal_of([&] {
              max_unpool3d(cube, in_cube, {4, 4, 4}, {1, 1, 1}, {0, 0});
            }),
            "max_unpool3d: there should be exactly 3 elements in padding, but got 2");
  EXPECT_EQ(refusal_of([&] { max_unpool3d(cube, in_cube, {4, 4, 4}); }), "");
  const Tensor plane = ones({1, 2, 6, 6});
  const auto fraction = [&](IntArrayRef kernel, IntArrayRef out, const Tensor& samples) {
    return refusal_of([&] { fractional_max_pool2d(plane, kernel, out, samples); });
  };
  const Tensor samples = full({1, 2, 2}, 0.5);
  EXPECT_EQ(fraction({3, 3}, {4, 4}, samples), "");
  EXPECT_EQ(fraction({3, 3}, {4, 5}, samples),
            "fractional_max_pool2d: kernel size 3 with output size 5 is too large for an input of 6");
  EXPECT_EQ(fraction({3, 0}, {4, 4}, samples),
            "fractional_max_pool2d: kernel size 0 with output size 4 is too large for an input of 6");
  EXPECT_EQ(fraction({3, 3}, {0, 4}, samples),
            "fractional_max_pool2d: kernel size 3 with output size 0 is too large for an input of 6");
  EXPECT_EQ(fraction({3}, {4, 4}, samples),
            "fractional_max_pool2d: there should be exactly 2 elements in kernel_size, but got 1");
  EXPECT_EQ(fraction({3, 3}, {4}, samples),
            "fractional_max_pool2d: there should be exactly 2 elements in output_size, but got 1");
  for (const auto& sizes : {std::vector<std::int64_t>{0, 2, 2}, {1, 1, 2}, {1, 2, 3}, {1, 2}}) {
    EXPECT_EQ(fraction({2, 2}, {3, 3}, full(sizes, 0.5)),
              "fractional_max_pool2d: Expect _random_samples of size [1, 2, 2], got " + to_string(IntArrayRef(sizes)));
  }
  EXPECT_EQ(fraction({2, 2}, {3, 3}, full({3, 2, 2}, 0.5)), "") << "those of more samples may be given";
}

TEST(GridRefusals, SizesBatchesAndModes) {
  EXPECT_EQ(refusal_of([] {
              affine_grid_generator(ones({1, 2, 3}), {1, 1, 3}, false);
            }),
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size [1, 1, "
            "3]");
  EXPECT_EQ(refusal_of([] {
              affine_grid_generator(ones({1, 2, 3}), {1, 1, 3, 3, 3, 3}, false);
            }),
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size [1, 1, "
            "3, 3, 3, 3]");
  EXPECT_EQ(refusal_of([] {
              affine_grid_generator(ones({1, 2, 3}, kInt64), {1, 1, 3, 3}, false);
            }),
            "\"affine_grid\" not implemented for 'Long': it needs a floating point dtype");
  const auto refusal = [](IntArrayRef input, IntArrayRef grid, int mode = 0) {
    const std::string text = refusal_of([&] { grid_sampler(ones(input), zeros(grid), mode, 0, false); });
    const std::string name = "grid_sampler(): ";
    return text.starts_with(name) ? text.substr(name.size()) : text;
  };
  EXPECT_EQ(refusal({1, 1, 3}, {1, 2, 2}),
            "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes [1, 1, 3] and "
            "grid with sizes [1, 2, 2]");
  EXPECT_EQ(refusal({1, 1, 3, 3}, {1, 2, 2, 2, 2}),
            "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes [1, 1, 3, 3] "
            "and grid with sizes [1, 2, 2, 2, 2]");
  EXPECT_EQ(refusal({1, 1, 3, 3, 3, 3}, {1, 2, 2, 2, 2, 4}),
            "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes [1, 1, 3, 3, 3, "
            "3] and grid with sizes [1, 2, 2, 2, 2, 4]");
  EXPECT_EQ(refusal({2, 1, 3, 3}, {1, 2, 2, 2}),
            "expected grid and input to have same batch size, but got input with sizes [2, 1, 3, 3] and grid with "
            "sizes [1, 2, 2, 2]");
  EXPECT_EQ(refusal({1, 1, 3, 3}, {1, 2, 2, 3}),
            "expected grid to have size 2 in last dimension, but got grid with sizes [1, 2, 2, 3]");
  EXPECT_EQ(refusal({1, 1, 3, 0}, {1, 2, 2, 2}),
            "expected input to have non-empty spatial dimensions, but input has sizes [1, 1, 3, 0] with dimension 3 "
            "being empty");
  EXPECT_EQ(refusal({1, 1, 0, 3}, {1, 2, 2, 2}),
            "expected input to have non-empty spatial dimensions, but input has sizes [1, 1, 0, 3] with dimension 2 "
            "being empty");
  EXPECT_EQ(refusal({1, 1, 2, 2, 2}, {1, 2, 2, 2, 3}, 2), "bicubic interpolation only supports 4D input");
  EXPECT_EQ(refusal({1, 1, 2, 2, 2}, {1, 2, 2, 2, 3}, 1), "");
  EXPECT_EQ(refusal({1, 1, 1, 1}, {1, 2, 2, 2}, 2), "");
}

TEST(PackingRefusals, LengthsFallAndFit) {
  const Tensor x = ones({3, 2, 1});
  const auto refusal = [&](std::initializer_list<std::int64_t> lengths) {
    return refusal_of([&] { _pack_padded_sequence(x, tensor(std::vector<std::int64_t>(lengths)), false); });
  };
  EXPECT_EQ(refusal({3, 2}), "");
  EXPECT_EQ(refusal({2, 2}), "");
  EXPECT_EQ(refusal({1, 1}), "");
  EXPECT_EQ(refusal({2, 3}),
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability.");
  EXPECT_EQ(refusal({3, 0}),
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  EXPECT_EQ(refusal({4, 1}), "Expected lengths of at most 3, the steps of the input, but got 4");
  EXPECT_EQ(refusal({3}), "Expected `len(lengths)` to be equal to batch_size, but got 1 (batch_size=2)");
  EXPECT_EQ(refusal_of([] {
              _pack_padded_sequence(ones({0, 2}), tensor({1, 1}), false);
            }),
            "Cannot pack empty tensors.");
  EXPECT_EQ(refusal_of([] {
              _pad_packed_sequence(ones({1, 1}), zeros({0}, kInt64), false, 0., 0);
            }),
            "pad_packed_sequence: the packed sequence has no steps");
}

TEST(ShapeRefusals, DiagonalsLieBetweenTwoDims) {
  EXPECT_EQ(refusal_of([] { ones({2}).diag_embed(0, 1, 1); }), "diagonal dimensions cannot be identical 1, 1");
  EXPECT_EQ(refusal_of([] { ones({2}).diag_embed(0, -1, 1); }), "diagonal dimensions cannot be identical -1, 1");
  EXPECT_EQ(refusal_of([] { linalg::vecdot(ones({2}, kInt64), ones({2})); }),
            "\"linalg.vecdot\" not implemented for 'Long': it needs a floating point dtype");
  EXPECT_EQ(refusal_of([] { linalg::vecdot(ones({2}), ones({2}, kInt64)); }),
            "\"linalg.vecdot\" not implemented for 'Long': it needs a floating point dtype");
  EXPECT_EQ(refusal_of([] {
              linalg::multi_dot({ones({2, 2})});
            }),
            "multi_dot(): expected at least 2 tensors but got 1");
}

// --- counting and order ---------------------------------------------------------------------------------------------

TEST(CountRefusals, CountsAreOfWholeNumbersFromZeroOn) {
  const Tensor x = tensor({0, 2, 2});
  EXPECT_EQ(refusal_of([&] { x.bincount({}, -1); }), "minlength should be >= 0, got -1");
  EXPECT_EQ(refusal_of([] { ones({2}).bincount(); }),
            "\"bincount\" not implemented for 'Float': it needs an integral dtype");
  EXPECT_EQ(refusal_of([&] { x.view({3, 1}).bincount(); }), "bincount only supports 1-d non-negative integral inputs.");
  EXPECT_EQ(refusal_of([&] { x.sub(1).bincount(); }), "bincount only supports 1-d non-negative integral inputs.");
  EXPECT_EQ(refusal_of([&] { x.bincount(ones({2})); }),
            "weights should be 1-d and have the same length as input, got weights of sizes [2] for input of sizes [3]");
  EXPECT_EQ(refusal_of([&] {
              x.bincount(ones({3, 1}));
            }),
            "weights should be 1-d and have the same length as input, got weights of sizes [3, 1] for input of sizes "
            "[3]");
  EXPECT_TRUE(x.bincount().equal(tensor({1, 0, 2})));
  EXPECT_TRUE(x.bincount({}, 3).equal(tensor({1, 0, 2})));
  EXPECT_TRUE(x.bincount({}, 5).equal(tensor({1, 0, 2, 0, 0})));
  EXPECT_TRUE(x.bincount(tensor({0.5, 1., 2.})).equal(tensor({0.5, 0., 3.})));
  EXPECT_EQ(x.bincount(ones({3}, kInt64)).scalar_type(), kFloat64);
  EXPECT_TRUE(zeros({0}, kInt64).bincount({}, 2).equal(zeros({2}, kInt64)));
}

TEST(CountRefusals, AHistogramHasBinsAndAFiniteRange) {
  const Tensor x = tensor({0., 1., 2., 4.});
  EXPECT_EQ(refusal_of([&] { x.histc(0); }), "torch.histc: bins must be > 0, but got 0");
  EXPECT_EQ(refusal_of([&] { x.histc(2, 3., 1.); }), "torch.histc: max must be larger than min, got [3, 1]");
  EXPECT_EQ(refusal_of([] {
              tensor({1., std::numeric_limits<double>::infinity()}).histc(2);
            }),
            "torch.histc: range of [1, inf] is not finite");
  EXPECT_EQ(refusal_of([] {
              tensor({1., -std::numeric_limits<double>::infinity()}).histc(2);
            }),
            "torch.histc: range of [-inf, 1] is not finite");
  EXPECT_EQ(refusal_of([&] { x.to(kInt64).histc(2); }),
            "\"histc\" not implemented for 'Long': it needs a floating point dtype");
  EXPECT_TRUE(x.histc(1).equal(tensor({4.})));
  EXPECT_TRUE(x.histc(4).equal(tensor({1., 1., 1., 1.}))) << "from the least to the largest";
  EXPECT_TRUE(x.histc(2, 1., 3.).equal(tensor({1., 1.}))) << "what lies outside is left out";
  EXPECT_TRUE(x.histc(2, 0., 4.).equal(tensor({2., 2.}))) << "the upper end is in";
  EXPECT_TRUE(full({3}, 5.).histc(2).equal(tensor({0., 3.}))) << "one value: a range of one around it";
}

TEST(OrderRefusals, QuantilesHaveSharesOfOneDtypeAndAKnownInterpolation) {
  const Tensor x = tensor({1., 2., 4.});
  for (const bool ignores_nan : {false, true}) {
    const auto refusal = [&](const Tensor& x, const Tensor& q, std::string_view interpolation = "linear") {
      return refusal_of(
          [&] { ignores_nan ? x.nanquantile(q, {}, false, interpolation) : x.quantile(q, {}, false, interpolation); });
    };
    const std::string name = ignores_nan ? "nanquantile() " : "quantile() ";
    EXPECT_EQ(refusal(zeros({0}), tensor({0.5})), name + "input tensor must be non-empty");
    EXPECT_EQ(refusal(x, ones({1, 1})), name + "q must be a scalar or 1D tensor");
    EXPECT_EQ(refusal(x.to(kInt64), tensor({0.5})), name + "input tensor must be either float or double dtype");
    EXPECT_EQ(refusal(x.to(kFloat16), tensor({0.5})), name + "input tensor must be either float or double dtype");
    EXPECT_EQ(refusal(x, tensor({0.5}, kFloat64)), name + "q tensor must be same dtype as the input tensor");
    EXPECT_EQ(refusal(x, tensor({0.5}), "cubic"),
              name + "interpolation must be one of linear, lower, higher, midpoint or nearest, but got cubic");
    for (const double bad : {-0.01, 1.01, std::nan("")})
      EXPECT_EQ(refusal(x, tensor({0.5, bad})), name + "q values must be in the range [0, 1]");
    EXPECT_EQ(refusal(x, tensor({0., 1.})), "");
    EXPECT_EQ(refusal_of([&] { ignores_nan ? x.nanquantile(1.5) : x.quantile(1.5); }),
              name + "q must be in the range [0, 1] but got 1.5");
    EXPECT_EQ(refusal_of([&] { ignores_nan ? x.nanquantile(-0.5) : x.quantile(-0.5); }),
              name + "q must be in the range [0, 1] but got -0.5");
  }
  for (const std::int64_t k : {0, 4}) {
    EXPECT_EQ(refusal_of([&] { x.kthvalue(k); }),
              "kthvalue(): selected number k out of range for dimension 0: k = " + std::to_string(k) + " of 3");
  }
  EXPECT_EQ(std::get<0>(x.kthvalue(1)).item<double>(), 1);
  EXPECT_EQ(std::get<0>(x.kthvalue(3)).item<double>(), 4);
  EXPECT_EQ(refusal_of([] { ones({2, 0}).median(1); }), "median(): Expected reduction dim 1 to have non-zero size.");
  EXPECT_EQ(refusal_of([] { ones({2}, kBool).median(0); }), "\"median\" not implemented for 'Bool'");
}

TEST(OrderRules, EveryInterpolationBesideALoop) {
  const Tensor x = tensor({5., 1., 4., 2., 9., 7.}, kFloat64);
  const double sorted[] = {1, 2, 4, 5, 7, 9};
  for (const double q : {0., 0.1, 0.3, 0.5, 0.77, 1.}) {
    const double rank = q * 5, low = sorted[static_cast<int>(std::floor(rank))],
                 high = sorted[static_cast<int>(std::ceil(rank))];
    const auto of = [&](const char* interpolation) { return x.quantile(q, {}, false, interpolation).item<double>(); };
    EXPECT_NEAR(of("linear"), low + (high - low) * (rank - std::floor(rank)), 1e-12) << q;
    EXPECT_EQ(of("lower"), low);
    EXPECT_EQ(of("higher"), high);
    EXPECT_NEAR(of("midpoint"), (low + high) / 2, 1e-12);
    EXPECT_EQ(of("nearest"), sorted[static_cast<int>(std::nearbyint(rank))]);
  }
  const Tensor rows = cat({x, x.neg()}).view({2, 6}), q = tensor({0.2, 0.5, 1.}, kFloat64);
  EXPECT_EQ(rows.quantile(q, 1).sizes(), IntArrayRef({3, 2}));
  EXPECT_EQ(rows.quantile(q, 1, true).sizes(), IntArrayRef({3, 2, 1}));
  EXPECT_EQ(rows.quantile(q, 0, true).sizes(), IntArrayRef({3, 1, 6}));
  EXPECT_EQ(rows.quantile(q, {}, true).sizes(), IntArrayRef({3, 1, 1}));
  EXPECT_EQ(rows.quantile(0.5, {}, true).sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(rows.quantile(0.5, -1).sizes(), IntArrayRef({2}));
  const Tensor with_nan = tensor({3., std::nan(""), 1.}, kFloat64);
  EXPECT_TRUE(std::isnan(with_nan.quantile(0.).item<double>()));
  EXPECT_EQ(with_nan.nanquantile(0.).item<double>(), 1);
  EXPECT_EQ(with_nan.nanquantile(1.).item<double>(), 3);
  EXPECT_TRUE(std::isnan(full({2}, std::nan(""), kFloat64).nanquantile(0.5).item<double>()));
}

TEST(SummaryRefusals, EmptyDimsIntegersAndNorms) {
  const std::string text =
      "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
      "argument. (input has shape [0, 2])";
  EXPECT_EQ(refusal_of([] { ones({0, 2}).amax(); }), "amax" + text);
  EXPECT_EQ(refusal_of([] { ones({0, 2}).amin(); }), "amin" + text);
  EXPECT_EQ(refusal_of([] { ones({0, 2}).amax(0); }), "amax(): Expected reduction dim 0 to have non-zero size.");
  EXPECT_EQ(refusal_of([] { EXPECT_EQ(ones({0, 2}).amax(1).numel(), 0); }), "");
  EXPECT_EQ(refusal_of([] { ones({2}, kInt64).nanmean(); }),
            "nanmean(): expected input to have floating point or complex dtype but got Long");
  EXPECT_EQ(refusal_of([] { ones({2}).trace(); }), "trace: expected a matrix, but got tensor with dim 1");
  EXPECT_EQ(refusal_of([] { ones({0}).aminmax(); }),
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  EXPECT_EQ(refusal_of([] { ones({2, 0}).aminmax(1); }), "aminmax: Expected reduction dim 1 to have non-zero size.");
  const Tensor x = ones({2, 2});
  EXPECT_EQ(refusal_of([&] { x.renorm(0, 0, 1); }), "renorm: non-positive-norm not supported, got p = 0");
  EXPECT_EQ(refusal_of([&] { x.renorm(2, 0, -1); }), "renorm: expected maxnorm to be >= 0 but got -1");
  EXPECT_EQ(refusal_of([] { ones({2}).renorm(2, 0, 1); }),
            "renorm: input needs at least 2 dimensions, got 1 dimensions");
  EXPECT_EQ(refusal_of([&] { EXPECT_TRUE(x.renorm(2, 0, 0).eq(0).all().item<bool>()); }), "");
  EXPECT_TRUE(allclose(tensor({{3., 4.}, {0.3, 0.4}}).renorm(2, 0, 1), tensor({{0.6, 0.8}, {0.3, 0.4}})));
  EXPECT_TRUE(allclose(tensor({{3., 0.3}, {4., 0.4}}).renorm(2, 1, 1), tensor({{0.6, 0.3}, {0.8, 0.4}})));
}

}  // namespace
}  // namespace tenon
