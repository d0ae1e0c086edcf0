// Tensor options: the spellings of a device.
#include <tenon/core/error.h>
#include <tenon/tensor/tensor_options.h>

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace tenon {
namespace {

TEST(TensorOptions, TakeADeviceByItsName) {
  const Device second(kCUDA, 1);
  EXPECT_EQ(TensorOptions().device("cuda:1").device(), second);
  EXPECT_EQ(TensorOptions().device(std::string("cuda:1")).device(), second);
  EXPECT_EQ(TensorOptions().device(std::string_view("cuda:1")).device(), second);
  EXPECT_THROW(TensorOptions().device("cuda:x"), Error);
}

TEST(TensorOptions, TakeADeviceByItsKindAndIndex) {
  const Device second(kCUDA, 1);
  EXPECT_EQ(TensorOptions().device(kCUDA, 1).device(), second);
  EXPECT_EQ(TensorOptions().device({kCUDA, 1}).device(), second);
  EXPECT_EQ(TensorOptions().device(second).device(), second);
  EXPECT_EQ(TensorOptions().device(kCPU).device(), Device(kCPU));
}

TEST(TensorOptions, ForgetADeviceThatIsTakenBack) {
  EXPECT_FALSE(TensorOptions().device("cuda:1").device(std::nullopt).has_device());
}

TEST(TensorOptions, PrintWhichOfThemWereChosen) {
  const auto printed = [](const TensorOptions& options) {
    std::ostringstream text;
    text << options;
    return text.str();
  };
  EXPECT_EQ(printed(TensorOptions()),
            "TensorOptions(dtype=float (default), device=cpu (default), layout=Strided (default), "
            "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))");
  EXPECT_EQ(printed(TensorOptions(kFloat64)
                        .device(kCUDA, 1)
                        .layout(kStrided)
                        .requires_grad(true)
                        .pinned_memory(true)
                        .memory_format(MemoryFormat::ChannelsLast)),
            "TensorOptions(dtype=double, device=cuda:1, layout=Strided, requires_grad=true, pinned_memory=true, "
            "memory_format=ChannelsLast)");
}

}  // namespace
}  // namespace tenon
