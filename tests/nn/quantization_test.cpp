// Models on integers of 8 and 4 bits: fused, calibrated, converted, saved and loaded.
#include "../support/message_of.h"
#include "../support/scratch_folder.h"

#include <tenon/device/device_state.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/quantized/products.h>
#include <tenon/tensor/generator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

namespace q = nn::quantization;
using ::testing::HasSubstr;

nn::Sequential network() {
  manual_seed(5);
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1).bias(false)), nn::BatchNorm2d(16), nn::ReLU(),
                       nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(16, 32, 3)), nn::ReLU(), nn::Flatten(),
                       nn::Linear(32 * 4 * 4, 64), nn::ReLU(), nn::Linear(64, 10));
  NoGradGuard no_grad;
  for (int i = 0; i < 3; ++i) model->forward(tenon::randn({32, 1, 12, 12}).mul(1.5).add(0.3));  // running statistics
  model->eval();
  return model;
}

Tensor examples() {
  manual_seed(11);
  return tenon::randn({64, 1, 12, 12});
}

/// The largest difference, in parts of the largest value.
double difference(const Tensor& got, const Tensor& want) {
  return got.sub(want).abs().max().item<double>() / want.abs().max().item<double>();
}

void calibrate(nn::Sequential& model, const char* backend = "onednn") {
  q::prepare(*model, q::get_default_qconfig(backend));
  NoGradGuard no_grad;
  model->forward(examples());
}

TEST(Quantization, FusingKeepsTheOutputAndGivesTheNormBack) {
  NoGradGuard no_grad;
  nn::Sequential model = network();
  const Tensor x = examples(), want = model->forward(x);
  const auto groups = q::groups_of_sequentials(*model);
  EXPECT_THAT(groups, testing::ElementsAre(q::Group{"0", "1", "2"}, q::Group{"4", "5"}, q::Group{"7", "8"}));
  q::fuse_modules(*model, groups);
  EXPECT_LT(difference(model->forward(x), want), 1e-5);
  EXPECT_TRUE(model->named_modules({}, false)["1"]->parameters().empty());
}

TEST(Quantization, FusingRefusesWhatDoesNotFollow) {
  nn::Sequential model = network();
  EXPECT_THAT(message_of([&] { q::fuse_modules(*model, {{"0", "2", "1"}}); }), HasSubstr("a layer is followed by"));
  EXPECT_THAT(message_of([&] { q::fuse_modules(*model, {{"0", "12"}}); }), HasSubstr("there is no module '12'"));
  EXPECT_THAT(message_of([&] { q::fuse_modules(*model, {{"2", "4"}}); }), HasSubstr("begins with a convolution"));
  model->train();
  EXPECT_THAT(message_of([&] { q::fuse_modules(*model, {{"0", "1"}}); }), HasSubstr("call eval() first"));
}

TEST(Quantization, AReluThatIsSharedIsFusedEverywhereOrNowhere) {
  NoGradGuard no_grad;
  const nn::ReLU relu;
  nn::Sequential model(nn::Linear(4, 4), relu, nn::Linear(4, 4), relu);
  model->eval();
  EXPECT_THAT(message_of([&] { q::fuse_modules(*model, {{"0", "1"}}); }), HasSubstr("in several places"));
  const Tensor x = tenon::randn({3, 4}), want = model->forward(x);
  q::fuse_modules(*model, {{"0", "1"}, {"2", "3"}});
  EXPECT_TRUE(model->forward(x).allclose(want));
}

TEST(Quantization, AConvertedModelIsAQuarterAndNearlyTheSame) {
  NoGradGuard no_grad;
  for (const char* backend : {"onednn", "x86", "qnnpack"}) {
    SCOPED_TRACE(backend);
    nn::Sequential model = network();
    const Tensor x = examples(), want = model->forward(x);
    const std::size_t before = q::bytes_of(*model);
    q::fuse_modules(*model, q::groups_of_sequentials(*model));
    calibrate(model, backend);
    EXPECT_LT(difference(model->forward(x), want), 1e-5) << "a prepared model still computes with floats";
    q::convert(*model);
    EXPECT_EQ(q::quantized_layers(*model), 4);
    EXPECT_LT(static_cast<double>(q::bytes_of(*model)), 0.28 * static_cast<double>(before));
    const double error = difference(model->forward(x), want);
    EXPECT_LT(error, 0.06);
    EXPECT_GT(error, 1e-5) << "nothing was rounded";
    EXPECT_LE(model->forward(x).argmax(1).ne(want.argmax(1)).sum().item<std::int64_t>(), 4);
  }
}

TEST(Quantization, ALinearModelMayBeQuantizedDynamicallyOrByWeightsAlone) {
  NoGradGuard no_grad;
  const auto check = [](const char* what, double bound, double share, const auto& quantize) {
    SCOPED_TRACE(what);
    manual_seed(3);
    nn::Sequential model(nn::Linear(128, 256), nn::ReLU(), nn::Linear(256, 16));
    model->eval();
    const Tensor x = tenon::randn({20, 128}), want = model->forward(x);
    const auto before = static_cast<double>(q::bytes_of(*model));
    quantize(*model);
    EXPECT_EQ(q::quantized_layers(*model), 2);
    EXPECT_LT(static_cast<double>(q::bytes_of(*model)), share * before);
    const double error = difference(model->forward(x), want);
    EXPECT_LT(error, bound);
    EXPECT_GT(error, 1e-5);
  };
  check("dynamic", 0.03, 0.28, [](nn::Module& model) { q::quantize_dynamic(model); });
  check("8 bits", 0.02, 0.28, [](nn::Module& model) { q::quantize_weights(model, 8); });
  check("4 bits", 0.25, 0.16, [](nn::Module& model) { q::quantize_weights(model, 4, 64); });
}

TEST(Quantization, AnArchiveOfAQuantizedModelComesBackToTheBit) {
  NoGradGuard no_grad;
  const Tensor x = examples();
  const auto check = [&](const char* what, const auto& quantize) {
    SCOPED_TRACE(what);
    nn::Sequential model = network();
    quantize(model);
    const Tensor want = model->forward(x);
    const std::string file = scratch_folder() + "quantized.safetensors";
    tenon::save(model, file);
    nn::Sequential other = network();
    q::load(*other, file);
    EXPECT_EQ(q::quantized_layers(*other), q::quantized_layers(*model));
    EXPECT_EQ(q::bytes_of(*other), q::bytes_of(*model));
    EXPECT_TRUE(other->forward(x).equal(want));
  };
  check("static", [](nn::Sequential& model) {
    q::fuse_modules(*model, q::groups_of_sequentials(*model));
    calibrate(model);
    q::convert(*model);
  });
  check("dynamic", [](nn::Sequential& model) { q::quantize_dynamic(*model); });
  check("8 bits", [](nn::Sequential& model) { q::quantize_weights(*model, 8); });
  check("4 bits", [](nn::Sequential& model) { q::quantize_weights(*model, 4); });
  check("fused alone", [](nn::Sequential& model) { q::fuse_modules(*model, q::groups_of_sequentials(*model)); });
}

TEST(Quantization, ACloneOfAQuantizedModelIsOneOfItsOwn) {
  NoGradGuard no_grad;
  const Tensor x = examples();
  const auto check = [&](const char* what, const auto& quantize) {
    SCOPED_TRACE(what);
    nn::Sequential model = network();
    quantize(model);
    const Tensor want = model->forward(x);
    const auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(model->clone());
    ASSERT_TRUE(copy);
    EXPECT_EQ(q::quantized_layers(*copy), q::quantized_layers(*model));
    EXPECT_EQ(q::bytes_of(*copy), q::bytes_of(*model));
    EXPECT_TRUE(copy->forward(x).equal(want));
    for (Tensor& parameter : model->parameters()) parameter.zero_();
    for (Tensor& buffer : model->buffers())
      if (buffer.is_floating_point()) buffer.fill_(7);
    EXPECT_TRUE(copy->forward(x).equal(want)) << "nothing of it is the model's";
  };
  check("static", [](nn::Sequential& model) {
    q::fuse_modules(*model, q::groups_of_sequentials(*model));
    calibrate(model);
    q::convert(*model);
  });
  check("dynamic", [](nn::Sequential& model) { q::quantize_dynamic(*model); });
  check("4 bits", [](nn::Sequential& model) { q::quantize_weights(*model, 4); });
  check("fused alone", [](nn::Sequential& model) { q::fuse_modules(*model, q::groups_of_sequentials(*model)); });
  nn::Sequential prepared = network();
  calibrate(prepared);
  EXPECT_THAT(message_of([&] { prepared->clone(); }), HasSubstr("clone it before prepare()"));
}

// Sums of so few products are exact in floats.
TEST(Quantization, AConvolutionOfFewChannelsGivesWhatIntegersGive) {
  NoGradGuard no_grad;
  manual_seed(7);
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).stride(2)), nn::ReLU());
  model->eval();
  const Tensor x = tenon::randn({4, 3, 9, 9});
  q::fuse_modules(*model, q::groups_of_sequentials(*model));
  q::prepare(*model, q::get_default_qconfig("onednn"));
  model->forward(x);
  q::convert(*model);
  const auto layer = model->named_modules({}, false)["0"];
  const auto buffers = layer->named_buffers();
  const auto parameters = layer->named_parameters();
  const double scale = buffers["input_scale"].item<double>();
  const auto zero_point = buffers["input_zero_point"].item<std::int64_t>();
  const Tensor integers = quantized::quantize_per_tensor(x, scale, zero_point, kUInt8, MemoryFormat::ChannelsLast);
  const Tensor want = quantized::conv2d({integers, scale, zero_point}, {parameters["weight"], buffers["weight_scale"]},
                                        parameters["bias"], {.stride = {2, 2}, .padding = {1, 1}}, true);
  EXPECT_LT(difference(model->forward(x), want), 1e-6);
}

// Rows of 7 and of 5: a byte of each is half empty.
TEST(Quantization, WeightsOfFourBitsMayHaveOddRows) {
  NoGradGuard no_grad;
  manual_seed(11);
  nn::Sequential model(nn::Linear(7, 5), nn::ReLU(), nn::Linear(5, 4));
  model->eval();
  const Tensor x = tenon::randn({6, 7}), want = model->forward(x);
  q::quantize_weights(*model, 4);
  EXPECT_EQ(q::quantized_layers(*model), 2);
  EXPECT_EQ(model->named_parameters()["0.weight"].sizes(), (std::vector<std::int64_t>{5, 4}));
  EXPECT_EQ(model->named_parameters()["2.weight"].sizes(), (std::vector<std::int64_t>{4, 3}));
  const Tensor y = model->forward(x);
  EXPECT_LT(difference(y, want), 0.5 * want.abs().max().item<double>()) << "16 values a weight, few of which add up";
  const Kernel kernel = find_kernel(kCPU, intern_operator("weight_only_linear"));
  register_kernel(kCPU, "weight_only_linear", nullptr);
  EXPECT_TRUE(model->forward(x).allclose(y, 1e-5, 1e-6)) << "out of other operators";
  register_kernel(kCPU, "weight_only_linear", kernel);
  const Tensor rows = tenon::randn({5, 7});
  const quantized::PackedWeight packed = quantized::pack_weight(rows, 4);
  EXPECT_LE(difference(quantized::unpack_weight(packed), rows), 0.51 * packed.scales.max().item<double>());
}

TEST(Quantization, GradientsPassThroughWeightsOfIntegers) {
  for (const int bits : {8, 4}) {
    const Tensor weight = tenon::randn({5, 8}), bias = tenon::randn({5}).requires_grad_();
    const quantized::PackedWeight packed = quantized::pack_weight(weight, bits);
    const Tensor x = tenon::randn({2, 3, 8}).requires_grad_(), same = x.detach().clone().requires_grad_(),
                 same_bias = bias.detach().clone().requires_grad_(), slope = tenon::randn({2, 3, 5});
    quantized::weight_only_linear(x, packed, bias).backward(slope);
    tenon::linear(same, quantized::unpack_weight(packed), same_bias).backward(slope);
    EXPECT_TRUE(x.grad().allclose(same.grad(), 1e-5, 1e-6)) << bits;
    EXPECT_TRUE(bias.grad().allclose(same_bias.grad(), 1e-5, 1e-6)) << bits;
    const Tensor half = x.detach().to(kBFloat16).requires_grad_();
    const Tensor y = quantized::weight_only_linear(half, packed);
    EXPECT_EQ(y.scalar_type(), kBFloat16);
    y.sum().backward();
    EXPECT_EQ(half.grad().scalar_type(), kBFloat16);
  }
}

TEST(Quantization, WhatIsOutOfOrderIsRefused) {
  nn::Sequential model = network();
  EXPECT_THAT(message_of([&] { q::convert(*model); }), HasSubstr("no layer is prepared"));
  q::prepare(*model);
  EXPECT_THAT(message_of([&] { q::convert(*model); }), HasSubstr("has seen nothing"));
  EXPECT_THAT(message_of([&] { q::prepare(*model); }), HasSubstr("prepared or quantized already"));
  EXPECT_THAT(message_of([&] { q::get_default_qconfig("tpu"); }), HasSubstr("x86, fbgemm, onednn, qnnpack"));
  nn::Sequential training = network();
  training->train();
  EXPECT_THAT(message_of([&] { q::quantize_dynamic(*training); }), HasSubstr("call eval() first"));
  nn::Sequential none{nn::ReLU(nn::ReLUOptions()), nn::Flatten(nn::FlattenOptions())};
  none->eval();
  EXPECT_THAT(message_of([&] { q::prepare(*none); }), HasSubstr("no layer that can be quantized"));
}

TEST(Quantization, ALayerMayBeLeftOut) {
  nn::Sequential model = network();
  q::quantize_dynamic(*model, [](const std::string& path, const nn::Module&) { return path != "9"; });
  EXPECT_EQ(q::quantized_layers(*model), 1);
}

TEST(Quantization, ADynamicLayerTakesABatchOfNothing) {
  NoGradGuard no_grad;
  nn::Sequential model(nn::Linear(8, 4));
  model->eval();
  q::quantize_dynamic(*model);
  EXPECT_EQ(model->forward(tenon::zeros({0, 8})).sizes(), IntArrayRef({0, 4}));
}

TEST(Quantization, AttentionKeepsTheProjectionWhoseWeightItReads) {
  NoGradGuard no_grad;
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(16, 2).dropout(0).dim_feedforward(32));
  layer->eval();
  const Tensor x = tenon::randn({5, 3, 16}), want = layer->forward(x);
  q::quantize_dynamic(*layer);
  EXPECT_EQ(q::quantized_layers(*layer), 2);
  EXPECT_LT(difference(layer->forward(x), want), 0.05);
}

TEST(Quantization, IntegersAndScalesAreParametersToTheAllocator) {
  NoGradGuard no_grad;
  const auto held = [] {
    const MemoryStats stats = device_state(Device(kCPU, 0)).allocator().stats();
    return stats.requested_by_purpose[static_cast<std::size_t>(Purpose::kParameter)].current;
  };
  const std::int64_t nothing = held();
  nn::Sequential model(nn::Linear(256, 512), nn::ReLU(), nn::Linear(512, 256));
  model->eval();
  EXPECT_EQ(held() - nothing, static_cast<std::int64_t>(q::bytes_of(*model)));
  q::quantize_dynamic(*model);
  EXPECT_EQ(held() - nothing, static_cast<std::int64_t>(q::bytes_of(*model)));
}

TEST(Quantization, AGroupHasAWeightAtLeast) {
  nn::Sequential model = network();
  for (const std::int64_t group : {0, -4})
    EXPECT_THAT(message_of([&] { q::quantize_weights(*model, 4, group); }), HasSubstr("a group is 1 or more")) << group;
  EXPECT_EQ(q::quantized_layers(*model), 0);
}

TEST(Quantization, AFileOfIntegersIsNotForAModelOfFloats) {
  const std::string file = scratch_folder() + "model.safetensors";
  nn::Sequential model = network();
  q::quantize_weights(*model, 8);
  tenon::save(model, file);
  nn::Sequential floats = network();
  EXPECT_THAT(
      message_of([&] { tenon::load(floats, file); }),
      testing::AllOf(HasSubstr("'7.weight_scale', of a layer on integers"), HasSubstr("nn::quantization::load()")));
  EXPECT_EQ(floats->named_parameters()["7.weight"].scalar_type(), kFloat32);
  nn::Sequential fused = network();
  q::fuse_modules(*fused, q::groups_of_sequentials(*fused));
  tenon::save(fused, file);
  nn::Sequential unfused = network();
  EXPECT_THAT(message_of([&] { tenon::load(unfused, file); }), HasSubstr("that was fused for quantization"));
  q::load(*unfused, file);
  EXPECT_LT(difference(unfused->forward(examples()), fused->forward(examples())), 1e-6);
}

TEST(Quantization, AModelOnIntegersStaysInFloat32) {
  for (const int bits : {8, 4}) {
    nn::Sequential model = network();
    q::quantize_weights(*model, bits);
    EXPECT_THAT(message_of([&] { model->to(kFloat64); }),
                testing::AllOf(HasSubstr("'7' computes on integers"), HasSubstr("before it is quantized")));
    EXPECT_NO_THROW(model->to(kFloat32));
    EXPECT_EQ(model->forward(examples()).scalar_type(), kFloat32);
  }
}

TEST(Quantization, CountsTheNumbersThatAModelIsAndNotItsBytes) {
  nn::Sequential floats = network(), bytes = network(), halves = network();
  const std::int64_t count = q::parameters_of(*floats);
  q::quantize_weights(*bytes, 8);
  q::quantize_weights(*halves, 4);
  EXPECT_EQ(q::parameters_of(*bytes), count);
  EXPECT_EQ(q::parameters_of(*halves), count);
  nn::Sequential odd(nn::Linear(7, 5));
  odd->eval();
  q::quantize_weights(*odd, 4);
  nn::add_lora(*odd, nn::LoraOptions(2));
  EXPECT_EQ(q::parameters_of(*odd), 7 * 5 + 5 + 2 * (7 + 5));
}

// Planes go through a kernel of their own where the machine has one, and come out as they came in.
TEST(Quantization, APictureOfFewChannelsKeepsItsOrder) {
  manual_seed(7);
  const Tensor x = tenon::randn({3, 12, 9, 9}), weight = tenon::randn({8, 12, 3, 3});
  const quantized::QuantizedWeight w = quantized::quantize_weight(weight);
  const quantized::Window window{.padding = {1, 1}};
  const auto of = [&](MemoryFormat format) {
    return quantized::conv2d({quantized::quantize_per_tensor(x, 0.03, 120, kUInt8, format), 0.03, 120}, w, {}, window,
                             true);
  };
  const Tensor planes = of(MemoryFormat::Preserve), last = of(MemoryFormat::ChannelsLast);
  EXPECT_LT(difference(planes, last), 1e-6);
  EXPECT_EQ(planes.is_contiguous(), quantized::is_planar(kCPU, w.values, window, 9));
  EXPECT_FALSE(quantized::is_planar(kCPU, w.values, {.stride = {1, 2}}, 9));
  EXPECT_FALSE(quantized::is_planar(kCPU, w.values, {.groups = 2}, 9));
}

/// Every channel has its own scale and bias, also where a group has fewer or more channels than a vector.
TEST(Quantization, GroupsTakeTheScalesOfTheirOwnChannels) {
  manual_seed(11);
  for (const auto& [groups, in, out] : {std::tuple(2, 1, 17), std::tuple(3, 18, 7), std::tuple(2, 4, 23),
                                        std::tuple(4, 5, 48), std::tuple(2, 32, 32), std::tuple(9, 1, 1)}) {
    for (const std::int64_t kernel : {1, 3}) {
      const Tensor x = randint(0, 256, {2, groups * in, 6, 6}).to(kUInt8);
      const Tensor w = randint(-128, 128, {groups * out, in, kernel, kernel}).to(kInt8);
      const Tensor scales = rand({groups * out}) * 0.01 + 0.001, bias = randn({groups * out});
      quantized::Window window;
      window.groups = groups;
      const Tensor y = quantized::conv2d({x, 0.037, 3}, {w, scales}, bias, window, false).to(kFloat64);
      const Tensor weight = w.to(kFloat64) * scales.to(kFloat64).reshape({-1, 1, 1, 1});
      const Tensor expected = conv2d((x.to(kFloat64) - 3) * 0.037, weight, bias.to(kFloat64), 1, 0, 1, groups);
      EXPECT_LT((y - expected).abs().max().item<double>(), 1e-3) << groups << " groups of " << in << " to " << out;
    }
  }
}

TEST(Quantization, GroupsWorkInTheSameScratchOneAfterTheOther) {
  const auto workspace_of = [](std::int64_t groups) {
    manual_seed(11);
    const Tensor x = randint(0, 256, {1, groups * 18, 12, 12}).to(kUInt8);
    const Tensor w = randint(-128, 128, {groups * 20, 18, 3, 3}).to(kInt8), scales = rand({groups * 20}) * 0.01 + 0.001;
    quantized::Window window;
    window.groups = groups;
    AllocatorStack& allocator = device_state(kCPU).allocator();
    allocator.reset_peak_stats();
    quantized::conv2d({x, 0.037, 3}, {w, scales}, {}, window, false);
    return allocator.stats().requested_by_purpose[static_cast<std::size_t>(Purpose::kWorkspace)].peak;
  };
  const std::int64_t multipliers = 6 * 20 * 2 * 4;  // and addends, of six channels' groups
  // Without VNNI the weights of all groups are widened at once: rows of 18 * 3 * 3 terms, a multiple of 32, in 16 bits.
  __builtin_cpu_init();
  const std::int64_t widened_weights = __builtin_cpu_supports("avx512vnni") ? 0 : 6 * 20 * 192 * 2;
  EXPECT_LE(workspace_of(8), workspace_of(2) + multipliers + widened_weights);
}

}  // namespace
}  // namespace tenon::test
