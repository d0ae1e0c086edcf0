// Names to ids to kernels.
#include <tenon/core/error.h>
#include <tenon/dispatch/dispatch.h>

#include <gtest/gtest.h>

#include <cstdlib>
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

TEST(Dispatch, AKindThatSharesAnothersKernelsHasItsOwnFirst) {
  const DeviceType own = DeviceType::named("dispatch_test_sharing"), other = DeviceType::named("dispatch_test_shared");
  const OperatorId both = intern_operator("dispatch_test_e"), one = intern_operator("dispatch_test_f");
  register_kernel(other, "dispatch_test_e", &first_kernel);
  register_kernel(other, "dispatch_test_f", &first_kernel);
  EXPECT_EQ(find_kernel(own, both), nullptr);
  share_kernels(own, other);
  register_kernel(own, "dispatch_test_e", &second_kernel);
  EXPECT_EQ(find_kernel(own, both), &second_kernel);
  EXPECT_EQ(find_kernel(own, one), &first_kernel);
  EXPECT_EQ(find_kernel(other, both), &first_kernel) << "not the other way round";
  EXPECT_EQ(find_kernel(own, intern_operator("dispatch_test_g")), nullptr);
}

TEST(Dispatch, SaysThatNobodyHasAKernelOrListsAllThatDo) {
  const DeviceType type = DeviceType::named("dispatch_test_other");
  const auto message = [&](const char* name) -> std::string {
    try {
      require_kernel(type, intern_operator(name));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("dispatch_test_h"),
            "operator 'dispatch_test_h' has no kernel for device 'dispatch_test_other'; no loaded plugin has one "
            "(`tenon plugins list` shows what is loaded)");
  register_kernel(DeviceType::named("dispatch_test_kind"), "dispatch_test_i", &first_kernel);
  register_kernel(DeviceType::named("dispatch_test_shared"), "dispatch_test_i", &first_kernel);
  EXPECT_NE(message("dispatch_test_i").find("it has one for: dispatch_test_"), std::string::npos);
  EXPECT_NE(message("dispatch_test_i").find("dispatch_test_kind"), std::string::npos);
  EXPECT_NE(message("dispatch_test_i").find(", dispatch_test_"), std::string::npos);
  register_kernel(kCPU, "dispatch_test_j", &first_kernel);
  EXPECT_EQ(message("dispatch_test_j"),
            "operator 'dispatch_test_j' has no kernel for device 'dispatch_test_other'; it has one for: cpu "
            "(`tenon plugins list` shows what is loaded)");
  EXPECT_EQ(name_of(OperatorId{1'000'000}), "?");
}

/// In a process of its own, since names are never given back.
using DispatchDeathTest = testing::Test;

TEST(DispatchDeathTest, HasRoomFor1024NamesAndAnErrorForTheNext) {
  const auto fill = [] {
    for (int again = 0; again < 2000; ++again) intern_operator("dispatch_test_known");  // takes no more room
    std::string message;
    OperatorId last;
    for (int i = 0; message.empty(); ++i) {
      const std::string name = "dispatch_test_" + std::to_string(i);
      try {
        last = intern_operator(name);
        if (name_of(last) != name) std::exit(2);
      } catch (const Error& error) {
        message = error.what();
      }
    }
    if (last.value != 1023 || name_of({1024}) != "?") std::exit(3);
    if (!message.starts_with("more than 1024 operator names: 'dispatch_test_")) std::exit(4);
    const std::string refused = message.substr(message.find('\'') + 1, message.rfind('\'') - message.find('\'') - 1);
    for (const std::string& name : {refused, refused, std::string("dispatch_test_one_more")}) {
      try {
        intern_operator(name);
        std::exit(5);
      } catch (const Error&) {
      }
    }
    std::exit(intern_operator(name_of(last)).value == last.value ? 0 : 6);
  };
  EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenon
