// `tenon new allocator`: what it writes. That it builds against an installed package is a test of the package.
#include "cli/program.h"

#include <gmock/gmock.h>

#include <algorithm>

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
  EXPECT_THAT(source, AllOf(HasSubstr("class MyCache final"), HasSubstr("TENON_ALLOCATOR(my_cache,")));
  for (const char* file : {"CMakeLists.txt", "experiment.toml", "README.md", "my_cache.cpp"}) {
    EXPECT_THAT(read_bytes(folder_.path() / "my_cache" / file), AllOf(HasSubstr("my_cache"), Not(HasSubstr("@NAME@"))))
        << file;
  }
  EXPECT_THAT(said.out, HasSubstr("files: my_cache\n"));
}

TEST_F(NewVerb, NeverWritesIntoAFolderWithFiles) {
  folder_.write("full/keep.txt", "mine");
  const Said said = tenon({"new", "allocator", "other", "--dir", "full"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("not empty"));
  EXPECT_EQ(read_bytes(folder_.path() / "full/keep.txt"), "mine");
}

TEST_F(NewVerb, ANameThatIsNoWordIsRefused) {
  for (const char* name : {"My", "9lives", "a-b", "a b", "../up"})
    EXPECT_EQ(tenon({"new", "allocator", name}).code, 2) << name;
}

}  // namespace
}  // namespace tenon::test
