// Names to ids to kernels.
#include <tenon/core/error.h>
#include <tenon/dispatch/dispatch.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon {
namespace {

void first_kernel(KernelContext&, std::span<const TensorView>, std::span<const TensorView>, const void*) {}
void second_kernel(KernelContext&, std::span<const TensorView>, std::span<const TensorView>, const void*) {}

TEST(Dispatch, GivesTheSameIdForTheSameName) {
  EXPECT_EQ(intern_operator("dispatch_test_a").value, intern_operator("dispatch_test_a").value);
  EXPECT_NE(intern_operator("dispatch_test_a").value, intern_operator("dispatch_test_b").value);
  EXPECT_EQ(name_of(intern_operator("dispatch_test_b")), "dispatch_test_b");
}

TEST(Dispatch, LastRegistrationWins) {
  const DeviceType type = DeviceType::named("dispatch_test_kind");
  const OperatorId op = intern_operator("dispatch_test_c");
  EXPECT_EQ(find_kernel(type, op), nullptr);
  register_kernel(type, "dispatch_test_c", &first_kernel);
  EXPECT_EQ(find_kernel(type, op), &first_kernel);
  register_kernel(type, "dispatch_test_c", &second_kernel);
  EXPECT_EQ(require_kernel(type, op), &second_kernel);
}

TEST(Dispatch, MissingKernelNamesOperatorDeviceAndWhoHasIt) {
  register_kernel(DeviceType::named("dispatch_test_kind"), "dispatch_test_d", &first_kernel);
  try {
    require_kernel(DeviceType::named("dispatch_test_other"), intern_operator("dispatch_test_d"));
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("dispatch_test_d"), std::string::npos) << text;
    EXPECT_NE(text.find("dispatch_test_other"), std::string::npos) << text;
    EXPECT_NE(text.find("dispatch_test_kind"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tenon
