// A device kind that only a plugin knows: by its name it is a device like any other.
#include <tenon/device/device_state.h>
#include <tenon/device/no_data.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>

#include "runtime/fixture.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

class UnknownKind : public testing::Test {
 protected:
  void SetUp() override {
    load_plugin(fixture("abacus").string());
    set_backend_options("abacus", Options(find_backend("abacus").options()));
  }
  void TearDown() override { shutdown(); }
};

TEST_F(UnknownKind, HasANameAndRoundTripsThroughText) {
  const Device device("abacus:1");
  EXPECT_EQ(device.type().name(), "abacus");
  EXPECT_EQ(device.str(), "abacus:1");
  EXPECT_EQ(device, Device(DeviceType::named("abacus"), 1));
  EXPECT_FALSE(device.is_cpu());
  EXPECT_THAT(backend_names(), Contains("abacus"));
}

TEST_F(UnknownKind, RunsTensorsByName) {
  const Tensor x = arange(6, TensorOptions().device("abacus:0")).view({2, 3});
  EXPECT_EQ(x.device().str(), "abacus:0");
  const Tensor y = (x * x).sum();
  EXPECT_EQ(y.device(), x.device());
  EXPECT_EQ(y.to(Device("cpu")).item<std::int64_t>(), 55);
  EXPECT_GT(device_state("abacus:0").allocator().stats().allocations.allocated, 0);
}

TEST_F(UnknownKind, KeepsItsGradientsOnItsDevice) {
  const Tensor w = ones({4}, TensorOptions().device("abacus:1").requires_grad(true));
  (w * 3).sum().backward();
  EXPECT_EQ(w.grad().device(), w.device());
  EXPECT_EQ(w.grad().sum().item<float>(), 12);
}

TEST_F(UnknownKind, MayDeclareThatItHoldsNoData) {
  set_backend_option("abacus", "covered", true);
  EXPECT_FALSE(holds_data(device_state("abacus:0").driver()));
  const Tensor x = ones({2, 3}, TensorOptions().device("abacus:0"));
  EXPECT_EQ(message_of<NotImplementedError>([&] { x.sum().item(); }),
            "Tensor.item() cannot be called on abacus tensors: they have no data");
  EXPECT_THAT(message_of<NotImplementedError>([&] { x.cpu(); }),
              HasSubstr("Cannot copy out of abacus tensor; no data!"));
  EXPECT_EQ(message_of<NotImplementedError>([&] { x.nonzero(); }),
            "nonzero: the size of its output depends on values, and tensors on abacus have none");
  EXPECT_EQ(x.to(Device("abacus:1")).device().str(), "abacus:1") << "there nobody reads either";
  EXPECT_EQ(x.multinomial(2).sizes().vec(), (std::vector<std::int64_t>{2, 2})) << "a check of values is left out";
}

TEST_F(UnknownKind, WhoseOptionsItRefusesMayBeGivenOthers) {
  set_backend_option("abacus", "beads", "0");
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(message_of<Error>([] { device_state("abacus:0"); }), "an abacus has beads") << "each time";
  set_backend_option("abacus", "beads", "3MiB");
  EXPECT_EQ(ones({4}, TensorOptions().device("abacus:0")).sum().to(Device("cpu")).item<float>(), 4);
  EXPECT_THROW(empty({1 << 20}, TensorOptions().device("abacus:0")), OutOfMemory) << "4 MiB of 3";
}

TEST_F(UnknownKind, HoldsDataUnlessItSaysOtherwise) {
  EXPECT_TRUE(holds_data(device_state("abacus:0").driver()));
  EXPECT_TRUE(holds_data(device_state("cpu").driver()));
}

TEST_F(UnknownKind, HasASectionOfItsOwnInAFile) {
  const Folder folder;
  const auto file = folder.write("abacus.toml", "[device]\nname = \"abacus:1\"\n[device.abacus]\nbeads = \"3MiB\"\n");
  const ExperimentConfig config = Config::load({.file = file}).experiment();
  EXPECT_EQ(config.device.str(), "abacus:1");
  EXPECT_EQ(config.backend_options.at("abacus").size("beads"), 3 * MiB);
  const auto wrong = folder.write("wrong.toml", "[device.abacuz]\nbeads = \"3MiB\"\n");
  EXPECT_THAT(message_of<ConfigError>([&] { Config::load({.file = wrong}).experiment(); }),
              HasSubstr("did you mean [device.abacus]?"));
}

}  // namespace
}  // namespace tenon::test
