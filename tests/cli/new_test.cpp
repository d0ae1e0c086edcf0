// `tenon new allocator` and `tenon new backend`: what they write. That it builds against an installed package is a test
// of the package.
#include "cli/program.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class NewVerb : public Program {};

TEST_F(NewVerb, WritesAProjectWithOneShortSource) {
  const Said said = tenon({"new", "allocator", "my_cache"});
  ASSERT_EQ(said.code, 0) << said.error;
  const std::string source = read_bytes(folder_.path() / "my_cache/my_cache.cpp");
  EXPECT_LT(std::count(source.begin(), source.end(), '\n'), 80);
  EXPECT_THAT(source, AllOf(HasSubstr("class MyCachePolicy final"), HasSubstr("TENON_ALLOCATOR(my_cache,")));
  for (const char* file : {"CMakeLists.txt", "experiment.toml", "README.md", "my_cache.cpp"}) {
    EXPECT_THAT(read_bytes(folder_.path() / "my_cache" / file), AllOf(HasSubstr("my_cache"), Not(HasSubstr("@NAME@"))))
        << file;
  }
  EXPECT_THAT(read_bytes(folder_.path() / "my_cache/experiment.toml"),
              HasSubstr("one that is renamed there is renamed here"));
  EXPECT_THAT(said.out, HasSubstr("files: my_cache\n"));
}

TEST_F(NewVerb, WritesABackendWithThreeKernels) {
  const Said said = tenon({"new", "backend", "my_device"});
  ASSERT_EQ(said.code, 0) << said.error;
  const std::string source = read_bytes(folder_.path() / "my_device/my_device.cpp");
  EXPECT_THAT(source, AllOf(HasSubstr("host.add_kernel(kind, \"add\", &add)"), HasSubstr("TENON_PLUGIN(my_device,")));
  for (const char* file : {"CMakeLists.txt", "README.md", "my_device.cpp"}) {
    EXPECT_THAT(read_bytes(folder_.path() / "my_device" / file), AllOf(HasSubstr("my_device"), Not(HasSubstr("@"))))
        << file;
  }
  EXPECT_THAT(said.out, HasSubstr("A project for the backend 'my_device'"));
  EXPECT_THAT(tenon({"new", "backend", "cuda"}).error,
              HasSubstr("\"cuda\" cannot name a backend: Tenon ships with a plugin of that name; my_cuda can"));
}

TEST_F(NewVerb, NeverWritesIntoAFolderWithFiles) {
  folder_.write("full/keep.txt", "mine");
  const Said said = tenon({"new", "allocator", "other", "--dir", "full"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("not empty"));
  EXPECT_EQ(read_bytes(folder_.path() / "full/keep.txt"), "mine");
}

TEST_F(NewVerb, AFullDiskLeavesNothingInTheWayOfTheNextTry) {
  // A limit on the size of files stands for it: 1,536 bytes are enough for the first file and for no source.
  const Said full = StartedProgram(folder_, {"new", "allocator", "mine"}, {}, "/dev/null", "ulimit -f 3").wait();
  EXPECT_EQ(full.code, 1) << full.error;
  EXPECT_THAT(full.error, HasSubstr("cannot write mine/"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "mine"));
  EXPECT_EQ(tenon({"new", "allocator", "mine"}).code, 0);
}

TEST_F(NewVerb, ANameThatIsNoWordIsRefused) {
  for (const char* name : {"My", "9lives", "a-b", "a b", "../up"})
    EXPECT_EQ(tenon({"new", "allocator", name}).code, 2) << name;
}

TEST_F(NewVerb, ANameThatMeansSomethingElseIsRefusedWithTheReason) {
  for (const char* name : {"caching", "expandable", "direct", "cub_bins", "tlsf", "cpu", "simulated", "cuda"}) {
    const Said said = tenon({"new", "allocator", name});
    EXPECT_EQ(said.code, 2) << name;
    EXPECT_THAT(said.error, AllOf(HasSubstr("Tenon ships with a plugin of that name"),
                                  HasSubstr("; my_" + std::string(name) + " can")));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / name)) << name;
  }
  EXPECT_THAT(tenon({"new", "allocator", "limit"}).error, HasSubstr("[allocator.limit] in a file is the section of"));
  EXPECT_THAT(tenon({"new", "allocator", "layers"}).error, HasSubstr("allocator.layers in a file is another setting"));
  EXPECT_THAT(tenon({"new", "allocator", "ideal"}).error, HasSubstr("tables of results have a row of that name"));
}

// tests/package compiles two of them.
TEST_F(NewVerb, NamesOfTheLanguageAndOfTheTemplateMakeAClassOfTheirOwn) {
  for (const char* name : {"class", "int", "new", "tenon", "std", "allocator", "request", "block", "entry", "error",
                           "stream_ref", "memory_source", "linux", "errno", "main", "a__b", "policy"}) {
    ASSERT_EQ(tenon({"new", "allocator", name}).code, 0) << name;
    const std::string source = read_bytes(folder_.path() / name / (name + std::string(".cpp")));
    EXPECT_THAT(source, AllOf(HasSubstr("Policy final : public Allocator {"),
                              HasSubstr("TENON_ALLOCATOR(" + std::string(name) + ",")));
  }
}

}  // namespace
}  // namespace tenon::test
