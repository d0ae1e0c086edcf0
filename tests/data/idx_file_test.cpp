// IDX files: what is right is read, what is wrong is refused with the file and the reason.
#include "../support/message_of.h"
#include "data/idx_fixture.h"

#include <tenon/core/error.h>
#include <tenon/data/idx_file.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <iterator>
#include <string>

namespace tenon::test {
namespace {

using data::read_idx;
using ::testing::AllOf;
using ::testing::HasSubstr;

using IdxFile = TemporaryFolder;

TEST_F(IdxFile, PlainAndGzippedFilesHoldTheSame) {
  const std::string bytes = idx_bytes({2, 3, 4}, 24);
  const auto plain = read_idx(write("plain", bytes), 3);
  const auto packed = read_idx(write("packed.gz", gzipped(bytes)), 3);
  EXPECT_EQ(plain.sizes, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(plain.bytes.size(), 24u);
  EXPECT_EQ(plain.bytes[13], 3);
  EXPECT_EQ(plain.bytes, packed.bytes);
}

TEST_F(IdxFile, AMissingFileIsNamed) {
  EXPECT_THAT(message_of([&] { read_idx(folder / "absent.gz", 3); }),
              AllOf(HasSubstr("no such data file"), HasSubstr("absent.gz")));
}

TEST_F(IdxFile, AFolderIsNoFile) {
  EXPECT_THAT(message_of([&] { read_idx(folder, 3); }), HasSubstr("is not a file"));
}

TEST_F(IdxFile, AWrongMagicNumberIsShown) {
  const auto path = write("pickle", "\x80\x04something else");
  EXPECT_THAT(message_of([&] { read_idx(path, 3); }),
              AllOf(HasSubstr("pickle"), HasSubstr("not an IDX file"), HasSubstr("0x8004")));
}

TEST_F(IdxFile, EachOfTheFirstTwoBytesIsZero) {
  for (const std::size_t place : {0u, 1u}) {
    std::string bytes = idx_bytes({2}, 2);
    bytes[place] = 1;
    const auto path = write("other", bytes);
    EXPECT_THAT(message_of([&] { read_idx(path, 1); }), HasSubstr(place == 0 ? "begins with 0x01000801, not 0x00000801"
                                                                             : "begins with 0x00010801, not 0x0000"));
  }
}

TEST_F(IdxFile, AnotherElementTypeIsRefused) {
  const auto path = write("floats", idx_bytes({2}, 8, 0x0d));
  EXPECT_THAT(message_of([&] { read_idx(path, 1); }), HasSubstr("element type 0x0d"));
}

TEST_F(IdxFile, AnotherRankIsRefused) {
  const auto path = write("labels", idx_bytes({2}, 2));
  EXPECT_THAT(message_of([&] { read_idx(path, 3); }), HasSubstr("1 dimensions where 3 are expected"));
}

TEST_F(IdxFile, EveryTruncationIsRefused) {
  const std::string whole = idx_bytes({3, 2, 2}, 12);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto path = write("cut", whole.substr(0, length));
    EXPECT_NE(message_of([&] { read_idx(path, 3); }), "no error") << length << " of " << whole.size() << " bytes";
  }
  const auto path = write("cut", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(message_of([&] { read_idx(path, 3); }),
              HasSubstr("truncated: the header announces 12 bytes, the file holds 11"));
}

TEST_F(IdxFile, ATruncatedGzipStreamIsRefused) {
  const std::string packed = gzipped(idx_bytes({100, 20, 20}, 40000));
  const auto path = write("cut.gz", packed.substr(0, packed.size() / 2));
  EXPECT_THAT(message_of([&] { read_idx(path, 3); }), HasSubstr("truncated"));
}

TEST_F(IdxFile, TrailingBytesAreRefused) {
  const auto path = write("long", idx_bytes({2, 1, 1}, 3));
  EXPECT_THAT(message_of([&] { read_idx(path, 3); }), HasSubstr("longer than the 2 bytes"));
}

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

TEST_F(IdxFile, IsClosedWhetherItWasReadOrRefused) {
  const auto whole = write("whole", idx_bytes({2}, 2)), cut = write("cut", idx_bytes({2}, 1));
  const std::size_t before = open_files();
  EXPECT_EQ(read_idx(whole, 1).bytes.size(), 2u);
  EXPECT_EQ(open_files(), before);
  EXPECT_THAT(message_of([&] { read_idx(cut, 1); }), HasSubstr("truncated"));
  EXPECT_EQ(open_files(), before);
}

TEST_F(IdxFile, AHeaderThatAnnouncesTerabytesCostsNothing) {
  const auto path = write("huge", idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, 10));
  EXPECT_THAT(message_of([&] { read_idx(path, 3); }), HasSubstr("beyond 2 GiB"));
  const auto large = write("large", idx_bytes({1u << 30}, 10));
  EXPECT_THAT(message_of([&] { read_idx(large, 1); }), HasSubstr("truncated"));
}

}  // namespace
}  // namespace tenon::test
