// SPECs of allocators as the shortest names that tell them apart.
#include <tenon/core/spec_names.h>

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::ElementsAre;

TEST(SpecNames, CutPathsToTheEndThatNoOtherHas) {
  EXPECT_THAT(short_specs({"/a/build/mine.so"}), ElementsAre("mine.so"));
  EXPECT_THAT(short_specs({"/a/old.so", "/a/new.so"}), ElementsAre("old.so", "new.so"));
  EXPECT_THAT(short_specs({"/a/old/mine.so", "/a/new/mine.so"}), ElementsAre("old/mine.so", "new/mine.so"));
  EXPECT_THAT(short_specs({"/old/build/mine.so", "/new/build/mine.so", "/new/other.so"}),
              ElementsAre("old/build/mine.so", "new/build/mine.so", "other.so"));
  EXPECT_THAT(short_specs({"mine.so", "old/mine.so"}), ElementsAre("mine.so", "old/mine.so"));
}

TEST(SpecNames, KeepOptionsAndNamesAsTheyAre) {
  EXPECT_THAT(short_specs({"/a/mine.so:chunk=1MiB", "/a/mine.so", "caching:max_split_size=24MiB"}),
              ElementsAre("mine.so:chunk=1MiB", "mine.so", "caching:max_split_size=24MiB"));
  EXPECT_THAT(short_specs({"expandable_segments:True", ""}), ElementsAre("expandable_segments:True", ""));
}

TEST(SpecNames, KnowAFileByItsWord) {
  EXPECT_TRUE(names_a_file("mine.so"));
  EXPECT_TRUE(names_a_file("./mine:file=x"));
  EXPECT_FALSE(names_a_file("planned:file=/a/b.so"));
}

TEST(AllocatorTitles, NameAFileOnlyWhereSeveralHaveAllocatorsOfThatName) {
  EXPECT_THAT(allocator_titles({"mine", "caching"}, {"/a/mine.so:chunk=1MiB", "caching"}),
              ElementsAre("mine", "caching"));
  EXPECT_THAT(allocator_titles({"mine", "mine"}, {"/old/mine.so:chunk=1MiB", "/new/mine.so"}),
              ElementsAre("old/mine.so", "new/mine.so"));
  EXPECT_THAT(allocator_titles({"mine", "mine"}, {"/a/mine.so:chunk=1MiB", "/a/mine.so:chunk=2MiB"}),
              ElementsAre("mine", "mine"))
      << "one file";
  EXPECT_THAT(allocator_titles({"mine", "mine"}, {"mine", "/a/mine.so"}), ElementsAre("mine", "mine.so"))
      << "one is found by its name";
}

}  // namespace
}  // namespace tenon::test
