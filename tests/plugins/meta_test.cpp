// The meta backend: sizes without data. Everything runs, nothing is computed, whatever would need a value is refused.
#include "../support/expect_error.h"

#include <tenon/core/units.h>
#include <tenon/nn/clip_grad.h>
#include <tenon/nn/parameter.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tenon {
namespace {

using test::expect_error;

class Meta : public testing::Test {
 protected:
  void SetUp() override {
    set_backend_options("meta", Options(find_backend("meta").options()));
    set_allocator("meta", allocator_from_spec(kDefaultAllocator));
  }
  void TearDown() override { shutdown(); }

  static TensorOptions here(Dtype dtype = kFloat) { return TensorOptions(dtype).device("meta"); }
  static Tensor whole(IntArrayRef sizes) { return zeros(sizes, here(kLong)); }
  static std::string printed(const Tensor& tensor) {
    std::ostringstream stream;
    stream << tensor;
    return stream.str();
  }
  static std::vector<std::int64_t> sizes_of(const Tensor& tensor) { return tensor.sizes().vec(); }
};

using Sizes = std::vector<std::int64_t>;

TEST_F(Meta, TensorsAreCountedAndTakeNoMemory) {
  const std::size_t host_before = memory_allocated(kCPU);
  const Tensor zero = zeros({1 << 20, 1 << 20}, here());  // 4 TiB each
  const Tensor drawn = randn({1 << 20, 1 << 20}, here());
  const Tensor sum = (zero + drawn).fill_(3).uniform_();
  EXPECT_EQ(memory_allocated("meta"), 3 * 4 * TiB);
  EXPECT_EQ(memory_reserved("meta"), 3 * 4 * TiB);
  EXPECT_EQ(memory_allocated(kCPU), host_before);
}

TEST_F(Meta, ACapacityMakesThemRunOut) {
  set_backend_option("meta", "capacity", "1GiB");
  const Tensor fits = empty({200, 1 << 20}, here());
  EXPECT_THROW(empty({60, 1 << 20}, here()), OutOfMemory);
  EXPECT_EQ(mem_get_info("meta").total_bytes, GiB);
}

TEST_F(Meta, EveryAllocatorServesIt) {
  for (const char* name : {"direct", "caching", "expandable"}) {
    set_allocator("meta", allocator_from_spec(name));
    {
      const Tensor x = ones({1 << 18}, here());
      EXPECT_EQ(device_state("meta").allocator().config().policy.name, name);
      EXPECT_GE(memory_reserved("meta"), MiB) << name;
    }
    shutdown();
  }
}

TEST_F(Meta, ResultsHaveSizesDtypesAndStrides) {
  const Tensor x = empty({2, 3}, here());
  EXPECT_EQ(x.device().type(), DeviceType::Meta);
  EXPECT_TRUE(x.is_meta());
  EXPECT_FALSE(x.is_cpu());
  EXPECT_FALSE(ones({2}).is_meta()) << "on the CPU";
  EXPECT_EQ(sizes_of(x.matmul(empty({3, 5}, here()))), (Sizes{2, 5}));
  EXPECT_EQ((x + empty({4, 1, 3}, here(kDouble))).scalar_type(), kDouble);
  EXPECT_EQ(sizes_of(x + empty({4, 1, 3}, here())), (Sizes{4, 2, 3}));
  EXPECT_EQ(x.gt(0).scalar_type(), kBool);
  EXPECT_EQ(x.t().strides().vec(), (Sizes{1, 3}));
  EXPECT_EQ((x.t() * 2).strides().vec(), (Sizes{1, 3}));
  const auto [values, order] = x.sort(1);
  EXPECT_EQ(order.scalar_type(), kLong);
  EXPECT_EQ(sizes_of(conv2d(empty({1, 3, 8, 8}, here()), empty({4, 3, 3, 3}, here()))), (Sizes{1, 4, 6, 6}));
  EXPECT_EQ(sizes_of(x + tensor(2.F)), (Sizes{2, 3})) << "a number on the host goes with every device";
  expect_error([&] { x + ones({2, 3}); }, "on the same device");
}

TEST_F(Meta, ATrainingStepAsksForParametersGradientsAndStates) {
  nn::Sequential model(nn::Linear(64, 256), nn::ReLU(), nn::Dropout(0.1), nn::Linear(256, 10));
  model->to(Device("meta"));
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-3));
  std::size_t parameter_bytes = 0;
  for (const Tensor& parameter : model->parameters()) parameter_bytes += parameter.nbytes();
  for (int step = 0; step < 2; ++step) {
    const Tensor loss = nn::functional::cross_entropy(model->forward(randn({32, 64}, here())), whole({32}));
    EXPECT_EQ(loss.dim(), 0);
    loss.backward();
    for (const Tensor& parameter : model->parameters()) EXPECT_EQ(sizes_of(parameter.grad()), sizes_of(parameter));
    EXPECT_TRUE(std::isnan(nn::utils::clip_grad_norm_(model->parameters(), 1)));
    optimizer.step();
    optimizer.zero_grad();
  }
  std::map<Purpose, std::int64_t> peak;
  for (const PurposeUsage& usage : memory_by_purpose("meta")) peak[usage.purpose] = usage.requested_bytes.peak;
  EXPECT_EQ(peak[Purpose::kOptimizerState], 2 * static_cast<std::int64_t>(parameter_bytes));
  EXPECT_GE(peak[Purpose::kGradient], static_cast<std::int64_t>(parameter_bytes));
  EXPECT_GT(peak[Purpose::kActivation], 0);
}

TEST_F(Meta, AModuleIsMadeThereWithoutMemoryAndGetsSomeElsewhere) {
  const std::size_t host_before = memory_allocated(kCPU);
  const auto make = [] {
    const nn::ParametersWithoutMemory scope("meta");
    return nn::Linear(1 << 20, 1 << 20);
  };
  nn::Linear large = make();
  large->to_empty("meta");
  EXPECT_GE(memory_allocated("meta"), 4 * TiB);
  EXPECT_EQ(memory_allocated(kCPU), host_before);
  nn::Linear small(3, 2);
  small->to(Device("meta"));
  expect_error<NotImplementedError>([&] { small->to(Device(kCPU)); }, "by to_empty(device)");
  small->to_empty(kCPU);
  EXPECT_TRUE(small->weight.is_cpu());
}

TEST_F(Meta, TensorsComeFromEveryDevice) {
  set_backend_option("meta", "count", std::int64_t{2});
  for (const char* device : {"cpu", "simulated:0", "meta:1"}) {
    const Tensor x = rand({3, 4}, TensorOptions().device(device)).t();
    const Tensor moved = x.to("meta");
    EXPECT_EQ(moved.device().str(), "meta:0") << device;
    EXPECT_EQ(moved.strides(), x.strides()) << device;
    EXPECT_EQ(sizes_of(x.slice(0, 0, 4, 2).to(Device("meta"), kDouble)), (Sizes{2, 3})) << device;
    EXPECT_NO_THROW(moved.copy_(x)) << device;
  }
}

TEST_F(Meta, ValuesCannotBeRead) {
  const Tensor x = ones({2, 3}, here());
  const std::string no_data = "Cannot copy out of meta tensor; no data!";
  expect_error<NotImplementedError>([&] { x.cpu(); }, no_data);
  expect_error<NotImplementedError>([&] { x.t().to(Device("simulated:0"), kDouble); }, no_data);
  expect_error<NotImplementedError>([&] { zeros({2, 3}).copy_(x); }, no_data);
  expect_error<NotImplementedError>([&] { zeros({2, 3}, here()).requires_grad_().cpu(); }, no_data);
  expect_error<NotImplementedError>([&] { x.sum().item<float>(); }, "Tensor.item() cannot be called on meta tensors");
  expect_error<NotImplementedError>([&] { x.sum().is_nonzero(); }, "Tensor.item() cannot be called");
  expect_error<NotImplementedError>([&] { x[tensor(0, here(kLong))]; }, "Tensor.item() cannot be called");
  expect_error<NotImplementedError>([&] { x.equal(x); }, "equal: its result depends on values");
  expect_error<NotImplementedError>([&] { x.allclose(x); }, "allclose: its result depends on values");
  DeviceDriver& driver = device_state("meta").driver();
  char byte = 7;
  expect_error<NotImplementedError>([&] { driver.copy(&byte, x.data_ptr(), 1, CopyKind::kDeviceToHost, {}); },
                                    "meta:0: cannot copy to the host");
}

TEST_F(Meta, ACopyThatIsRefusedTakesNothing) {
  const Tensor large = empty({1 << 20, 1 << 20}, here());
  expect_error<NotImplementedError>([&] { large.cpu(); }, "no data");
}

TEST_F(Meta, PrintsWhatItHas) {
  EXPECT_EQ(printed(ones({2, 3}, here())), "tensor(..., device='meta', size=(2, 3))\n[ METAFloatType{2,3} ]");
  EXPECT_EQ(printed(whole({5})), "tensor(..., device='meta', size=(5,))\n[ METALongType{5} ]");
  EXPECT_EQ(printed(ones({}, here())), "tensor(..., device='meta', size=())\n[ METAFloatType{} ]");
}

TEST_F(Meta, WhatIsSizedByValuesIsRefusedByName) {
  const Tensor x = ones({2, 3}, here()), mask = x.gt(0), numbers = whole({3});
  const std::vector<std::pair<std::string, std::function<void()>>> refused{
      {"nonzero: the size of its output depends on values", [&] { x.nonzero(); }},
      {"nonzero:", [&] { x.argwhere(); }},
      {"nonzero:", [&] { where(mask); }},
      {"masked_select: the size of its output", [&] { x.masked_select(mask); }},
      {"index: how many elements a mask takes", [&] { x.index({mask}); }},
      {"_unique2: the size of its output", [&] { _unique2(x); }},
      {"unique_dim: the size of its output", [&] { unique_dim(x, 0); }},
      {"unique_consecutive: the size of its output", [&] { unique_consecutive(x); }},
      {"bincount: the size of its output", [&] { numbers.bincount(); }},
      {"repeat_interleave: the size of its output (unless output_size is given)",
       [&] { x.repeat_interleave(numbers, 1); }},
      {"one_hot: the number of classes (unless num_classes is given)", [&] { one_hot(numbers); }},
      {"ctc_loss: the path through the targets",
       [&] {
         ctc_loss(zeros({4, 2, 5}, here()), whole({2, 3}), whole({2}), whole({2}));
       }},
  };
  for (const auto& [message, call] : refused) expect_error<NotImplementedError>(call, message);
}

TEST_F(Meta, WhatIsSizedWithoutThemRuns) {
  const Tensor x = ones({2, 3}, here()), mask = x.gt(0), numbers = whole({3});
  EXPECT_EQ(sizes_of(x.repeat_interleave(numbers, 1, 7)), (Sizes{2, 7}));
  EXPECT_EQ(sizes_of(one_hot(numbers, 4)), (Sizes{3, 4}));
  EXPECT_EQ(sizes_of(x.histc(10)), (Sizes{10}));
  EXPECT_EQ(sizes_of(x.multinomial(2)), (Sizes{2, 2}));
  EXPECT_EQ(sizes_of(x.quantile(tensor({.1F, .2F}).to("meta"))), (Sizes{2}));
  EXPECT_EQ(sizes_of(x.masked_fill(mask, 1)), (Sizes{2, 3}));
  EXPECT_EQ(sizes_of(x.masked_scatter(mask, x)), (Sizes{2, 3}));
  EXPECT_EQ(sizes_of(x.index_put({mask}, tensor(1.F))), (Sizes{2, 3}));
  EXPECT_EQ(sizes_of(x.index_fill(1, numbers, tensor(1.F).to("meta"))), (Sizes{2, 3}));
  EXPECT_EQ(sizes_of(x.index_copy(1, numbers, x)), (Sizes{2, 3}));
  EXPECT_EQ(sizes_of(numbers.gcd(numbers)), (Sizes{3}));
  EXPECT_EQ(sizes_of(combinations(numbers)), (Sizes{3, 2}));
  EXPECT_EQ(sizes_of(tril_indices(3, 3, 0, here(kLong))), (Sizes{2, 6}));
  EXPECT_EQ(sizes_of(nn::functional::gaussian_nll_loss(x, x, x)), Sizes{});
  EXPECT_EQ(sizes_of(nn::functional::multilabel_margin_loss(x, whole({2, 3}))), Sizes{});
  EXPECT_EQ(sizes_of(nn::functional::embedding_bag(
                numbers, x, nn::functional::EmbeddingBagFuncOptions().offsets(whole({2})).mode(kMax))),
            (Sizes{2, 3}));
  EXPECT_EQ(sizes_of(nn::functional::fractional_max_pool2d(
                ones({1, 2, 8, 8}, here()), nn::functional::FractionalMaxPool2dFuncOptions(3).output_size(4))),
            (Sizes{1, 2, 4, 4}));
  EXPECT_EQ(sizes_of(nn::init::orthogonal_(empty({1 << 20, 1 << 20}, here()))), (Sizes{1 << 20, 1 << 20}));
  const Tensor leaf = ones({4}, here()).requires_grad_();
  leaf.cumprod(0).sum().backward();
  EXPECT_EQ(sizes_of(leaf.grad()), (Sizes{4}));
}

TEST_F(Meta, HasStreamsThatAreAlwaysIdle) {
  DeviceDriver& driver = device_state("meta").driver();
  EXPECT_FALSE(driver.properties().computes);
  EXPECT_FALSE(driver.begin_kernel({}));
  const StreamRef first = driver.create_stream(0), second = driver.create_stream(0);
  EXPECT_NE(first.id, second.id);
  const StreamGuard guard("meta", first);
  const Tensor x = ones({4}, here());
  x.record_stream(second);
  MemorySource& memory = driver.memory();
  EXPECT_TRUE(memory.reached(memory.mark(first)));
  driver.destroy_stream(first);
}

TEST_F(Meta, SaysThatItsMemoryIsCountedAndNothingIsComputed) {
  Backend& backend = find_backend("meta");
  set_backend_option("meta", "capacity", "3GiB");
  const DeviceProperties properties = device_state("meta").driver().properties();
  EXPECT_EQ(properties.name, "meta");
  EXPECT_EQ(properties.capacity_bytes, 3 * GiB);
  EXPECT_FALSE(properties.host_accessible);
  EXPECT_FALSE(properties.asynchronous);
  EXPECT_EQ(properties.details, (std::vector<std::pair<std::string, std::string>>{
                                    {"memory", "counted, not taken: tensors have sizes and no data"}}));
  EXPECT_EQ(device_state("meta").driver().memory().traits().device, "meta:0");
  EXPECT_EQ(backend.kernels_like(), "cpu") << "operators choose their way as there";
  EXPECT_EQ(backend.device_count(), 1);
}

TEST_F(Meta, TakesWhateverIsCopiedThereAndGivesNothingButNothing) {
  DeviceDriver& driver = device_state("meta").driver();
  char byte = 7;
  void* const address = driver.memory().acquire(512);
  for (const CopyKind kind : {CopyKind::kHostToDevice, CopyKind::kDeviceToDevice})
    driver.copy(address, &byte, 512, kind, {});
  driver.fill(address, 1, 512, {});
  driver.copy(&byte, address, 0, CopyKind::kDeviceToHost, {});
  EXPECT_EQ(byte, 7);
  EXPECT_NE(driver.create_stream(0).id, 0U) << "that one is always there";
  driver.memory().release(address, 512);
}

TEST_F(Meta, HasAsManyDevicesAsConfiguredAndSaysHowToGetMore) {
  expect_error([] { find_backend("meta").device(1); }, "device.meta.count");
  expect_error([] { ones({1}, TensorOptions().device("meta:1")); }, "no device meta:1");
}

}  // namespace
}  // namespace tenon
