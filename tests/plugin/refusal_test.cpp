// Plugins that cannot be loaded are refused with the path, the reason and what to do, before any of their code runs;
// the program then ends with exit code 5.
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/plugin/descriptor.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace tenon {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

fs::path fixture(const std::string& name) { return fs::path(TENON_FIXTURES) / (name + ".so"); }

bool ran(const std::string& name) { return std::getenv(("TENON_FIXTURE_RAN_" + name).c_str()) != nullptr; }

std::string refusal(const fs::path& path) {
  try {
    load_plugin(path.string());
  } catch (const PluginError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kPlugin);
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
    return error.what();
  }
  ADD_FAILURE() << path << " was loaded";
  return {};
}

fs::path scratch_file(const std::string& name, const std::string& bytes) {
  const fs::path path = fs::path(test::scratch_folder()) / ("tenon_refusal_" + name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Ended {
  int code = -1;
  std::string output;
};
Ended run_program(const std::string& arguments) {
  Ended ended;
  FILE* pipe = ::popen(("\"" TENON_PROGRAM "\" " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    ended.output.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

TEST(PluginRefusal, TheHealthyFixtureLoads) {
  EXPECT_EQ(load_plugin(fixture("healthy").string()).name, "healthy");
  EXPECT_TRUE(ran("healthy"));
}

TEST(PluginRefusal, AMissingFileIsNamed) { EXPECT_THAT(refusal(fixture("nowhere")), HasSubstr("no such file")); }

TEST(PluginRefusal, ATextFileIsNoSharedLibrary) {
  EXPECT_THAT(refusal(scratch_file("text.so", "hello\n")), HasSubstr("not a shared library"));
}

TEST(PluginRefusal, AnEmptyFileIsNoSharedLibrary) {
  EXPECT_THAT(refusal(scratch_file("empty.so", "")), HasSubstr("not a shared library"));
}

/// Where the part of a shared library ends that is loaded; debug information behind it may be missing.
std::size_t end_of_loaded_part(const std::string& file) {
  Elf64_Ehdr header{};
  std::memcpy(&header, file.data(), sizeof header);
  std::size_t end = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) end = std::max<std::size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

TEST(PluginRefusal, ATruncatedPluginIsRefusedAtEveryLength) {
  const std::string whole = bytes_of(fixture("healthy"));
  const std::size_t end = end_of_loaded_part(whole);
  ASSERT_GT(end, 4096u);
  for (std::size_t length = 1; length < end; length = length * 2 + 1) {
    EXPECT_FALSE(refusal(scratch_file("truncated.so", whole.substr(0, length))).empty()) << length << " bytes";
  }
  EXPECT_FALSE(refusal(scratch_file("truncated.so", whole.substr(0, end - 1))).empty());
}

TEST(PluginRefusal, ASharedLibraryWithoutDescriptorIsNoPlugin) {
  EXPECT_THAT(refusal(fixture("no_descriptor")), AllOf(HasSubstr("no Tenon plugin"), HasSubstr("TENON_ALLOCATOR")));
  EXPECT_FALSE(ran("no_descriptor"));
}

TEST(PluginRefusal, AnOlderAbiIsToBeRebuilt) {
  EXPECT_THAT(refusal(fixture("older_abi")),
              AllOf(HasSubstr("ABI " + std::to_string(plugin::kAbiMajor - 1) + "."), HasSubstr("rebuild the plugin")));
  EXPECT_FALSE(ran("older_abi"));
}

TEST(PluginRefusal, ANewerAbiAsksForANewerTenon) {
  for (const auto* name : {"newer_abi", "newer_minor"}) {
    EXPECT_THAT(refusal(fixture(name)), AllOf(HasSubstr("plugin ABI"), HasSubstr("update Tenon"))) << name;
    EXPECT_FALSE(ran(name));
  }
}

TEST(PluginRefusal, AnotherBuildNamesBothTags) {
  EXPECT_THAT(refusal(fixture("other_build")), AllOf(HasSubstr("itanium/elsewhere"), HasSubstr("rebuild the plugin")));
  EXPECT_FALSE(ran("other_build"));
}

TEST(PluginRefusal, ADescriptorOfAnotherKindIsRefused) {
  EXPECT_THAT(refusal(fixture("bad_magic")), HasSubstr("does not hold a Tenon plugin descriptor"));
  EXPECT_FALSE(ran("bad_magic"));
}

TEST(PluginRefusal, AnUndefinedSymbolIsNamed) {
  EXPECT_THAT(refusal(fixture("undefined_symbol")), HasSubstr("function_that_nobody_defines"));
  EXPECT_FALSE(ran("undefined_symbol"));
}

TEST(PluginRefusal, AMissingRegisterFunctionIsNamed) {
  EXPECT_THAT(refusal(fixture("no_register")), HasSubstr("register function is null"));
}

TEST(PluginRefusal, APluginThatFailsToRegisterLeavesNothingBehind) {
  EXPECT_THAT(refusal(fixture("throws")), HasSubstr("this fixture never works"));
  EXPECT_THAT(allocator_names(), testing::Not(testing::Contains("throws")));
}

TEST(PluginRefusal, ASecondAllocatorOfTheSameNameNamesBothPlugins) {
  load_plugin(fixture("healthy").string());
  EXPECT_THAT(refusal(fixture("twin")), AllOf(HasSubstr("'healthy'"), HasSubstr(fixture("healthy").string())));
}

TEST(PluginRefusal, TheProgramEndsWithExitCodeFive) {
  for (const auto* name : {"older_abi", "no_descriptor", "undefined_symbol", "throws"}) {
    const Ended ended = run_program("plugins info \"" + fixture(name).string() + "\"");
    EXPECT_EQ(ended.code, 5) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(fixture(name).string()));
  }
}

TEST(PluginRefusal, AnExperimentThatNamesABadPluginEndsWithExitCodeFive) {
  const fs::path toml =
      scratch_file("experiment.toml", "[allocator]\nname = \"" + fixture("older_abi").string() + "\"\n");
  const Ended ended = run_program("config check \"" + toml.string() + "\"");
  EXPECT_EQ(ended.code, 5) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("older_abi.so"), HasSubstr("rebuild the plugin")));
}

}  // namespace
}  // namespace tenon
