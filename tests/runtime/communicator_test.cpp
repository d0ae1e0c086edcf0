// Communicators as plugins supply them: found by name, with options like those of devices and allocators.
#include "runtime/fixture.h"
#include "support/expect_error.h"

#include <tenon/core/error.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/plugins/shipped_plugins.h>
#include <tenon/runtime/process_group.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string alone(const char* file = "alone") { return std::string(TENON_FIXTURE_DIR "/") + file + ".so"; }

class CommunicatorPlugins : public testing::Test {
 protected:
  CommunicatorPlugins() { load_plugin(alone()); }
  Folder folder_;
};

Config configured(const Folder& folder, const std::string& text) {
  return Config::load({.file = folder.write("exp.toml", text), .use_environment = false});
}

TEST_F(CommunicatorPlugins, OneIsFoundByItsName) {
  EXPECT_EQ(find_communicator("alone").summary, "a single rank");
  EXPECT_THAT(communicator_names(), Contains("alone"));
  const auto plugins = loaded_plugins();
  const auto found = std::ranges::find(plugins, "alone", &LoadedPlugin::name);
  ASSERT_NE(found, plugins.end());
  EXPECT_THAT(found->communicators, testing::ElementsAre("alone"));
}

TEST_F(CommunicatorPlugins, OneIsMadeFromASpec) {
  EXPECT_EQ(distributed::init_process_group("alone:ports=2")->size(), 1);
  expect_error<ConfigError>([] { distributed::init_process_group("alone:prts=2"); }, "ports");
  expect_error<ConfigError>([] { distributed::init_process_group("alone:ports"); }, "expected NAME=VALUE");
}

TEST_F(CommunicatorPlugins, AnUnknownNameIsRefusedWithTheNearest) {
  expect_error<ConfigError>([] { find_communicator("alon"); },
                            "unknown communicator \"alon\"; did you mean \"alone\"?");
}

TEST_F(CommunicatorPlugins, OneThatThisBuildCouldNotMakeSaysHowToGetIt) {
  const auto shipped = shipped_plugins();
  for (const ShippedCommunicator& one : shipped_communicators()) {
    EXPECT_NE(one.to_run, "") << one.name;
    if (std::ranges::find(shipped, one.name) != shipped.end()) continue;
    EXPECT_NE(one.to_build, "") << one.name;
    expect_error<ConfigError>([&] { find_communicator(one.name); }, "is not here: " + std::string(one.to_build));
  }
}

TEST_F(CommunicatorPlugins, ANameThatIsTakenIsRefusedNamingBothPlugins) {
  EXPECT_THAT([] { load_plugin(alone("alone_too")); },
              ThrowsMessage<PluginError>(AllOf(HasSubstr("alone_too.so: communicator 'alone' is already supplied by "
                                                         "plugin 'alone' from"),
                                               HasSubstr("alone.so"))));
}

TEST_F(CommunicatorPlugins, AFileNamesOneAndItsOptions) {
  const ExperimentConfig config =
      configured(folder_, "[distributed]\nname = \"alone\"\nbucket_cap = \"2MiB\"\n[distributed.alone]\nports = 3\n")
          .experiment();
  EXPECT_EQ(config.distributed.name, "alone");
  EXPECT_EQ(config.distributed.options.integer("ports"), 3);
  EXPECT_EQ(config.section("distributed").size("bucket_cap"), std::size_t{2} << 20);
}

TEST_F(CommunicatorPlugins, WithoutAWordARunIsOneProcess) {
  EXPECT_EQ(configured(folder_, "").experiment().distributed.name, "");
}

TEST_F(CommunicatorPlugins, AMistypedSectionOrOptionIsRefusedWithThePlace) {
  EXPECT_THAT([&] { configured(folder_, "[distributed.alon]\nports = 3\n"); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("exp.toml:1"), HasSubstr("[distributed.alon]; did you mean [distributed.alone]?"))));
  EXPECT_THAT([&] { configured(folder_, "[distributed.alone]\nprts = 3\n"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("exp.toml:2"), HasSubstr("did you mean 'ports'?"))));
  EXPECT_THAT([&] { configured(folder_, "[distributed]\nname = \"alon\"\n"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("exp.toml:2"), HasSubstr("did you mean \"alone\"?"))));
}

TEST_F(CommunicatorPlugins, TheResolvedFileHasItsSection) {
  const std::string text = configured(folder_, "[distributed]\nname = \"alone\"\n").resolved_toml();
  EXPECT_THAT(text, AllOf(HasSubstr("[distributed]\nname = \"alone\""), HasSubstr("[distributed.alone]\nports = 1")));
}

}  // namespace
}  // namespace tenon::test
