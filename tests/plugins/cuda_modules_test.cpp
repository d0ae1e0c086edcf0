// Tensors, modules and data parallelism on two emulated CUDA devices: where things lie after to() and clone(), that
// copies are copies, and that layers give what the cpu's give.
#include "support/expect_error.h"

#include <tenon/runtime/plugins/plugins.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

namespace parallel = nn::parallel;

const Device kFirst("cuda:0"), kSecond("cuda:1");

Tensor at_home(const Tensor& tensor) { return tensor.detach().to(kCPU); }
void expect_close(const Tensor& here, const Tensor& there, double tolerance = 1e-5) {
  ASSERT_EQ(here.sizes(), there.sizes());
  EXPECT_TRUE(at_home(there).allclose(here.detach(), tolerance, tolerance));
}

/// Two layers, one of them in a container, and a buffer.
struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(6, 4));
    rest = register_module("rest", nn::Sequential(nn::ReLU(), nn::BatchNorm1d(4), nn::Linear(4, 3)));
    scale = register_buffer("scale", full({1}, 3));
  }
  Tensor forward(const Tensor& x) { return rest->forward(first(x)) * scale; }
  nn::Linear first{nullptr};
  nn::Sequential rest{nullptr};
  Tensor scale;
};
TENON_MODULE(Net);

void expect_on(const nn::Module& module, const Device& device) {
  for (const Tensor& one : module.parameters()) EXPECT_EQ(one.device(), device);
  for (const Tensor& one : module.buffers()) EXPECT_EQ(one.device(), device);
}

// ---- tensors
// ---------------------------------------------------------------------------------------------------------

TEST(CudaTensors, GoToWhateverTheOptionsName) {
  Tensor t = arange(12, kFloat32).reshape({3, 4});
  const auto is = [&t](const Device& device, Dtype dtype) {
    EXPECT_EQ(t.device(), device);
    EXPECT_EQ(t.scalar_type(), dtype);
    EXPECT_EQ(at_home(t).to(kFloat64).sum().item<double>(), 66);
  };
  t = t.to(kSecond);
  is(kSecond, kFloat32);
  t = t.to(kFirst);  // from device to device
  is(kFirst, kFloat32);
  t = t.to(kSecond, kInt32);
  is(kSecond, kInt32);
  t = t.to(TensorOptions(kFirst).dtype(kInt64));
  is(kFirst, kInt64);
  t = t.to(TensorOptions(kDouble));  // where it lies
  is(kFirst, kFloat64);
  t = t.to(TensorOptions(kSecond));  // as it is
  is(kSecond, kFloat64);
  t = t.to(kCUDA);  // the device in use
  is(kFirst, kFloat64);
  t = t.to(kCPU, kInt32);
  is(kCPU, kInt32);
}

TEST(CudaTensors, StayWhereTheyAreWhenNothingChanges) {
  const Tensor t = empty({3, 4}, TensorOptions(kFloat).device(Device("cuda")));
  for (const Tensor& same : {t.to(t.options()), t.to(kFloat), t.to("cuda"), t.to(TensorOptions("cuda")), t.to(kFirst)})
    EXPECT_EQ(same.data_ptr<float>(), t.data_ptr<float>());
}

TEST(CudaTensors, GiveTheirOneElementToTheHost) {
  EXPECT_FLOAT_EQ(tensor(3.14, kCUDA).item().to<float>(), 3.14F);
  EXPECT_EQ(tensor(123, kCUDA).item().to<int>(), 123);
}

template <class T>
void expect_classified(Dtype dtype) {
  using Limits = std::numeric_limits<T>;
  SCOPED_TRACE(std::string(name_of(dtype)));
  const TensorOptions options = TensorOptions().dtype(dtype).device(kFirst);
  const std::vector<double> finite{static_cast<double>(Limits::lowest()), 0, 1, static_cast<double>(Limits::min()),
                                   static_cast<double>(Limits::max())};
  for (const double value : finite) {
    const Tensor all = full({3, 3}, value, options);
    EXPECT_TRUE(isfinite(all).all().item<bool>()) << value;
    EXPECT_FALSE(isinf(all).any().item<bool>()) << value;
  }
  if (!is_floating_point(dtype)) return;
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor some = tensor({-infinity, 1.0, std::nan(""), infinity}, kFloat64).to(dtype).to(kFirst);
  EXPECT_TRUE(equal(at_home(isfinite(some)), tensor({0, 1, 0, 0}).to(kBool)));
  EXPECT_TRUE(equal(at_home(isinf(some)), tensor({1, 0, 0, 1}).to(kBool)));
}

TEST(CudaTensors, AreFiniteOrInfiniteInEveryType) {
  expect_classified<std::uint8_t>(kUInt8);
  expect_classified<std::int8_t>(kInt8);
  expect_classified<std::int16_t>(kInt16);
  expect_classified<std::int32_t>(kInt32);
  expect_classified<std::int32_t>(kInt64);  // its own limits are no doubles
  expect_classified<float>(kFloat32);
  expect_classified<double>(kFloat64);
}

TEST(CudaTensors, AreIndexedByNothingToo) {
  const Tensor x = randn({2, 3, 4, 5}, kFirst);
  const auto none = [](IntArrayRef sizes, Dtype dtype) { return empty(sizes, TensorOptions(dtype).device(kFirst)); };
  EXPECT_EQ(randn({5}, kFirst).index({none({0, 2}, kInt64)}).sizes(), IntArrayRef({0, 2}));
  EXPECT_EQ(x.index({indexing::Slice(), none({0, 6}, kInt64)}).sizes(), IntArrayRef({2, 0, 6, 4, 5}));
  EXPECT_THROW(randn({5}, kFirst).index({none({0, 2}, kUInt8)}), Error) << "a mask of more dimensions";
  const Tensor column = x.index({indexing::Slice(), indexing::Slice(), indexing::Slice(), 1});
  const Tensor empty_slice = column.index({indexing::Slice(), indexing::Slice(1, 1), indexing::Slice()});
  EXPECT_EQ(empty_slice.sizes(), IntArrayRef({2, 0, 4}));
  EXPECT_EQ(empty_slice.strides(), IntArrayRef({60, 20, 5}));
  EXPECT_TRUE(empty_slice.is_contiguous());
}

// ---- modules
// ---------------------------------------------------------------------------------------------------------

TEST(CudaModules, MoveWithTheirBuffersAndKeepTheirNumbers) {
  Net net;
  net->eval();
  const Tensor x = randn({5, 6}), here = net(x);
  for (const Device& device : {kFirst, kSecond}) {
    net->to(device);
    expect_on(*net, device);
    expect_close(here, net(x.to(device)));
  }
  net->to(kCPU);
  expect_on(*net, kCPU);
  net->to(kFloat64);
  for (const Tensor& one : net->parameters()) EXPECT_EQ(one.scalar_type(), kFloat64);
}

TEST(CudaModules, ComeBackAndLearn) {
  nn::Linear layer(5, 2);
  layer->to(kCUDA);
  layer->to(kCPU);
  layer(randn({10, 5}, requires_grad())).sum().backward();
  EXPECT_EQ(layer->weight.grad().numel(), 10);
}

/// Whether `copy` has memory of its own: it stays what it is when the other one changes.
void expect_distinct(nn::Module& module, nn::Module& copy) {
  const NoGradGuard no_grad;
  const auto both = [](nn::Module& of) {
    std::vector<Tensor> all = of.parameters();
    for (const Tensor& buffer : of.buffers()) all.push_back(buffer);
    return all;
  };
  const std::vector<Tensor> ours = both(module), theirs = both(copy);
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NE(ours[i].data_ptr(), theirs[i].data_ptr()) << i;
    const Tensor before = at_home(theirs[i]);
    EXPECT_TRUE(equal(at_home(ours[i]), before)) << i;
    Tensor(ours[i]).add_(2);
    EXPECT_TRUE(equal(at_home(theirs[i]), before)) << i;
  }
}

TEST(CudaModules, CloneToWhereTheyAre) {
  Net net;
  net->to(kFirst);
  const auto copy = net->clone();
  expect_on(*copy, kFirst);
  expect_distinct(*net, *copy);
}

TEST(CudaModules, CloneToTheDeviceThatIsNamed) {
  Net net;
  expect_on(*net->clone(kSecond), kSecond);  // from the host
  expect_on(*net, kCPU);
  net->to(kFirst);
  const auto copy = net->clone(kSecond);  // from another device
  expect_on(*net, kFirst);
  expect_on(*copy, kSecond);
  expect_distinct(*net, *copy);
}

TEST(CudaModules, ContainersCloneWhatIsInThem) {
  nn::Sequential row(nn::Linear(3, 4), nn::Functional(relu), nn::BatchNorm1d(4));
  const auto row_copy = row->clone(kFirst);
  expect_on(*row_copy, kFirst);
  OrderedDict<std::string, std::shared_ptr<nn::Module>> named = {
      {"linear", nn::Linear(2, 3).ptr()}, {"relu", nn::Functional(relu).ptr()}, {"norm", nn::BatchNorm1d(3).ptr()}};
  nn::ModuleDict dict(named);
  dict->to(kFirst);
  nn::ModuleDict copy(std::dynamic_pointer_cast<nn::ModuleDictImpl>(dict->clone(kFirst)));
  ASSERT_EQ(copy->size(), 3U);
  for (auto one = dict->begin(), other = copy->begin(); one != dict->end(); ++one, ++other) {
    EXPECT_EQ(one->key(), other->key());
    EXPECT_EQ(one->value()->name(), other->value()->name());
    EXPECT_NE(one->value(), other->value());
  }
  expect_on(*copy, kFirst);
  expect_distinct(*dict, *copy);
}

// ---- data parallelism
// ------------------------------------------------------------------------------------------------

struct WhereImpl : nn::Cloneable<WhereImpl> {
  void reset() override {}
  Tensor forward(const Tensor& x) { return tensor({static_cast<int>(x.device().index())}); }
};
TENON_MODULE(Where);

struct Throws : nn::Cloneable<Throws> {
  void reset() override {}
  Tensor forward(const Tensor&) { throw std::runtime_error("Badness!"); }
};

TEST(CudaParallel, UsesAllDevicesUnlessSomeAreNamed) {
  const Tensor y = parallel::data_parallel(Where(), ones({10, 3}));
  EXPECT_EQ(cuda::device_count(), 2U);
  EXPECT_TRUE(equal(at_home(y), tensor({0, 1})));
  EXPECT_EQ(parallel::data_parallel(Where(), ones({10, 3}), std::nullopt, kSecond).device(), kSecond);
  EXPECT_EQ(parallel::data_parallel(Where(), ones({10, 3}), std::vector<Device>{kFirst}, kSecond).device(), kSecond);
}

TEST(CudaParallel, GivesTheGradientsOfTheHost) {
  nn::Linear there(3, 2);
  nn::Linear here(std::dynamic_pointer_cast<nn::LinearImpl>(there->clone()));
  const Tensor x = randn({7, 3});
  here(x).square().sum().backward();
  there->to(kFirst);
  parallel::data_parallel(there, x.to(kFirst)).square().sum().backward();
  expect_close(here->weight.grad(), there->weight.grad());
  expect_close(here->bias.grad(), there->bias.grad());
}

TEST(CudaParallel, PutsEachOutputWhereItWasAskedFor) {
  std::vector<Where> modules(3);
  const std::vector<Tensor> inputs(3, empty({}));
  const auto outputs = parallel::parallel_apply(modules, inputs, std::vector<Device>{kSecond, kFirst, kCPU});
  EXPECT_EQ(outputs[0].device(), kSecond);
  EXPECT_EQ(outputs[1].device(), kFirst);
  EXPECT_EQ(outputs[2].device(), kCPU);
}

TEST(CudaParallel, RethrowsWhatAReplicaThrew) {
  expect_error<std::runtime_error>(
      [] {
        parallel::data_parallel(std::make_shared<Throws>(), ones({10, 3}));
      },
      "Badness!");
}

// ---- layers
// ----------------------------------------------------------------------------------------------------------

TEST(CudaLayers, AProjectedLstmHasItsSizesAndGoesOn) {
  nn::LSTM lstm(nn::LSTMOptions(12, 8).num_layers(3).dropout(0.2).proj_size(4));
  lstm->to(kFirst);
  const Tensor x = randn({5, 6, 12}, kFirst).set_requires_grad(true);
  const auto [y, state] = lstm->forward(x);
  const auto& [h, c] = state;
  EXPECT_EQ(y.sizes(), IntArrayRef({5, 6, 4}));
  EXPECT_EQ(h.sizes(), IntArrayRef({3, 6, 4}));
  EXPECT_EQ(c.sizes(), IntArrayRef({3, 6, 8}));
  y.mean().backward();
  EXPECT_TRUE(x.grad().abs().sum().item<float>() > 0);
  const auto next = std::get<1>(lstm->forward(x, state));
  EXPECT_GT((std::get<0>(next) - h).abs().sum().item<float>(), 1e-3);
  EXPECT_GT((std::get<1>(next) - c).abs().sum().item<float>(), 1e-3);
}

/// `steps` steps of learning to add up a row of zeros and ones; the last loss. The same numbers on every device.
template <class Recurrent, class Make>
double learned(const Make& make, const Device& device, int steps) {
  manual_seed(3);
  Recurrent recurrent = make();
  nn::Linear widen(1, 8), last(recurrent->options_base.proj_size() > 0 ? recurrent->options_base.proj_size() : 8, 1);
  const Tensor bits = rand({5, 16, 1}).round();
  std::vector<Tensor> parameters;
  for (nn::Module* module : std::initializer_list<nn::Module*>{widen.get(), recurrent.get(), last.get()}) {
    module->to(device);
    for (const Tensor& one : module->parameters()) parameters.push_back(one);
  }
  optim::SGD sgd(parameters, optim::SGDOptions(0.02));
  const Tensor x = bits.to(device), sums = x.sum(0);
  double loss = 0;
  for (int step = 0; step < steps; ++step) {
    sgd.zero_grad();
    const Tensor y = std::get<0>(recurrent->forward(tenon::tanh(widen(x))));
    const Tensor error = nn::functional::mse_loss(last(y[4]), sums);
    error.backward();
    sgd.step();
    loss = error.item<double>();
  }
  return loss;
}
template <class Recurrent, class Make>
void expect_to_learn_alike(const char* what, const Make& make) {
  const double first = learned<Recurrent>(make, kCPU, 1);
  const double here = learned<Recurrent>(make, kCPU, 12), there = learned<Recurrent>(make, kFirst, 12);
  EXPECT_LT(here, 0.9 * first) << what;
  EXPECT_NEAR(there, here, 1e-4 * here) << what;
}

TEST(CudaLayers, RecurrentOnesLearnAsOnTheHost) {
  expect_to_learn_alike<nn::LSTM>("lstm", [] { return nn::LSTM(nn::LSTMOptions(8, 8).num_layers(2).proj_size(4)); });
  expect_to_learn_alike<nn::GRU>("gru", [] { return nn::GRU(nn::GRUOptions(8, 8).num_layers(2)); });
  expect_to_learn_alike<nn::RNN>("rnn, relu",
                                 [] { return nn::RNN(nn::RNNOptions(8, 8).nonlinearity(kReLU).num_layers(2)); });
  expect_to_learn_alike<nn::RNN>("rnn, tanh",
                                 [] { return nn::RNN(nn::RNNOptions(8, 8).nonlinearity(kTanh).num_layers(2)); });
}

TEST(CudaLayers, TheSecondDirectionOfAnLstmIsOneThatReadsBackwards) {
  nn::LSTM both(nn::LSTMOptions(1, 1).bidirectional(true)), one(nn::LSTMOptions(1, 1));
  both->to(kFirst);
  one->to(kFirst);
  {
    const NoGradGuard no_grad;
    auto from = both->named_parameters(), to = one->named_parameters();
    for (const char* name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"})
      to[name].copy_(from[std::string(name) + "_reverse"]);
  }
  const Tensor x = arange(1, 6, kFloat32).reshape({5, 1, 1}).to(kFirst);
  const Tensor y = at_home(std::get<0>(both->forward(x)));
  const Tensor backwards = at_home(std::get<0>(one->forward(x.flip({0}))));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(y[i][0][1].item<float>(), backwards[4 - i][0][0].item<float>());
}

TEST(CudaLayers, ADeepLstmOfBothDirectionsEqualsTheHosts) {
  nn::LSTM here(nn::LSTMOptions(2, 4).num_layers(3).bidirectional(true));
  nn::LSTM there(std::dynamic_pointer_cast<nn::LSTMImpl>(here->clone()));
  there->to(kFirst);
  const Tensor x = arange(1, 7, kFloat32).reshape({3, 1, 2});
  expect_close(std::get<0>(here->forward(x)), std::get<0>(there->forward(x.to(kFirst))));
}

/// The same numbers for every parameter, whatever its device.
void set_numbers(nn::Module& module) {
  const NoGradGuard no_grad;
  for (Tensor& one : module.parameters()) one.copy_(tenon::cos(arange(0, one.numel(), kFloat32)).view(one.sizes()));
}

TEST(CudaLayers, TransformersEqualTheHosts) {
  for (const bool callable : {false, true}) {
    auto options = nn::TransformerOptions().d_model(4).nhead(2).num_encoder_layers(2).num_decoder_layers(2);
    options.dim_feedforward(16).dropout(0.0);
    callable ? options.activation([](const Tensor& t) { return nn::functional::relu(t); }) : options.activation(kGELU);
    nn::Transformer here(options);
    set_numbers(*here);
    nn::Transformer there(std::dynamic_pointer_cast<nn::TransformerImpl>(here->clone(kFirst)));
    const Tensor source = randn({3, 2, 4}), target = randn({2, 2, 4});
    expect_close(here(source, target), there(source.to(kFirst), target.to(kFirst)));
    const Tensor causal = nn::TransformerImpl::generate_square_subsequent_mask(3);
    const Tensor padding = tensor({0, 0, 1, 0}, kInt64).reshape({2, 2}).to(kBool);
    expect_close(here(source, target, causal, Tensor(), Tensor(), Tensor(), padding),
                 there(source.to(kFirst), target.to(kFirst), causal.to(kFirst), Tensor(), Tensor(), Tensor(),
                       padding.to(kFirst)));
  }
}

TEST(CudaLayers, AParameterIsGivenTheHostsNumbersInPlace) {
  nn::TransformerEncoderLayer there(nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(16).dropout(0.0));
  nn::TransformerEncoderLayer here(std::dynamic_pointer_cast<nn::TransformerEncoderLayerImpl>(there->clone()));
  there->to(kFirst);
  set_numbers(*here);
  set_numbers(*there);
  const Tensor x = randn({5, 2, 4});
  expect_close(here(x), there(x.to(kFirst)));
}

}  // namespace
}  // namespace tenon::test
