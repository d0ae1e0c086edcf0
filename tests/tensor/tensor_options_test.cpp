// Tensor options: the spellings of a device.
#include <tenon/core/error.h>
#include <tenon/tensor/tensor_options.h>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tenon
