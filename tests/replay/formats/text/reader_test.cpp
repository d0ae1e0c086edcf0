// The text form: what is read, and each way to be refused.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <thread>

namespace tenon::replay {
namespace {

TEST(TextReader, CountsWhatTheFileHolds) {
  const Trace trace = read_one("# name: tiny\na 0 100 0\na 1 200 3\nm step 1\nu 0 3\nf 0\ne\na 2 50 0\nf 2\n");
  EXPECT_EQ(trace.facts.events, 7u);
  EXPECT_EQ(trace.facts.allocations, 3u);
  EXPECT_EQ(trace.facts.frees, 2u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 300u);
  EXPECT_EQ(trace.facts.peak_event, 1u);
  EXPECT_EQ(trace.facts.end_live_bytes, 200u);
  EXPECT_EQ(trace.stream_count(), 2u);
  EXPECT_EQ(trace.header.at("name"), "tiny");
  EXPECT_EQ(trace.marks, std::vector<std::string>{"step 1"});
  EXPECT_EQ(trace.slot_count, 2u) << "the slot of block 0 serves block 2";
}

TEST(TextReader, TakesIdsInAnyOrder) {
  const Trace trace = read_one("a 900000000000 8 0\na 0 8 0\na 1 8 0\nf 900000000000\nf 1\nf 0\n");
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
}

TEST(TextReader, AcceptsAMissingLastNewlineAndCarriageReturns) {
  EXPECT_EQ(read_one("a 0 8 0\r\nf 0").facts.events, 2u);
}

TEST(TextReader, AcceptsAByteOrderMarkBlankLinesAndTabs) {
  EXPECT_EQ(read_one("\xef\xbb\xbf# name: x\r\n\r\n  \r\na\t0  8 0 \r\n f 0\r\n").facts.events, 2u);
  EXPECT_EQ(read_one("\xef\xbb\xbf"
                     "a 0 8 0\n")
                .facts.events,
            1u);
}

TEST(TextReader, ATraceOfCommentsIsEmpty) {
  const Trace trace = read_one("# name: nothing\n");
  EXPECT_EQ(trace.facts.events, 0u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 0u);
}

TEST(TextReader, TakesThousandsOfStreamsAndTheLargestIds) {
  std::string text = "a 9223372036854775807 8 9223372036854775807\nf 9223372036854775807\n";
  for (int i = 0; i < 5000; ++i) text += "a " + std::to_string(i) + " 512 " + std::to_string(i) + "\n";
  EXPECT_EQ(read_one(text).stream_count(), 5001u);
  EXPECT_NE(refusal_of("a 9223372036854775808 8 0\n").find("file:1: the id of a block does not fit"),
            std::string::npos);
  std::string many;
  for (int i = 0; i < 70000; ++i) many += "a " + std::to_string(i) + " 512 " + std::to_string(i) + "\n";
  EXPECT_NE(refusal_of(many).find("more than 65535 streams"), std::string::npos);
}

TEST(TextReader, NamesLineAndReasonOfEachMistake) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"a 0 8 0\nf 1\n", "file:2: frees id 1, which was never allocated"},
      {"a 0 8 0\nf 0\nf 0\n", "file:3: frees id 0, which was freed before"},
      {"a 0 8 0\na 0 8 0\n", "file:2: id 0 was allocated before"},
      {"a 0 0 0\n", "file:1: a size of 0 bytes"},
      {"a 0 8\n", "file:1: expected a space and a stream"},
      {"a 0 x 0\n", "file:1: expected a size in bytes, not 'x 0'"},
      {"a 0 -8 0\n", "file:1: expected a size in bytes"},
      {"a 0 9223372036854775808 0\n", "file:1: a size in bytes does not fit in 63 bits"},
      {"a 0 99999999999999999999999 0\n", "does not fit in 63 bits"},
      {"a 0 8 0 7\n", "file:1: text after the last field: '7'"},
      {"a 0 8 0\nz 1\n", "file:2: unknown record 'z 1'"},
      {"a 0 8 0\nu 5 1\n", "file:2: uses id 5, which was never allocated"},
      {"a 0 4611686018427387905 0\n", "file:1: the live bytes exceed 2^62"},
      {"# events: 4\na 0 8 0\nf ", "file:3: expected the id of a block"},
      {"# events: 4\na 0 8 0\nf 0", "it is truncated"},
  };
  for (const auto& [text, reason] : mistakes)
    EXPECT_NE(refusal_of(text).find(reason), std::string::npos) << text << "\n" << refusal_of(text);
}

TEST(TextReader, RefusesAHistoryWhoseSumOfRequestsIsMoreThanAFigureHolds) {
  std::string text;
  for (int i = 0; i < 2; ++i) text += fmt::format("a {0} {1} 0\nf {0}\n", i, std::int64_t{1} << 61);
  EXPECT_EQ(read_one(text).facts.total_requested_bytes, std::uint64_t{1} << 62);
  for (int i = 2; i < 4; ++i) text += fmt::format("a {0} {1} 0\nf {0}\n", i, std::int64_t{1} << 61);
  EXPECT_NE(refusal_of(text).find("file:7: "), std::string::npos) << refusal_of(text);
}

TEST(TextReader, RefusesAFileThatWasCutAtALineEnd) {
  const std::string reason = refusal_of("# events: 4\na 0 8 0\nf 0\n");
  EXPECT_NE(reason.find("file:3: the file ends after 2 allocations and frees, its header states 4: it is truncated"),
            std::string::npos)
      << reason;
  EXPECT_EQ(read_one("# events: 2\na 0 8 0\nf 0\n").facts.events, 2u);
}

TEST(TextReader, TakesAFileToWhichLinesWereAdded) {
  const Trace trace = read_one("# events: 1\na 0 8 0\nf 0\n");
  EXPECT_EQ(trace.facts.events, 2u);
  EXPECT_EQ(trace.notes, std::vector<std::string>{"it holds 2 allocations and frees, its header states 1: lines were "
                                                  "added after it was written"});
}

TEST(TextReader, RefusesWhatIsNoTrace) {
  EXPECT_NE(refusal_of("").find("empty"), std::string::npos);
  EXPECT_NE(refusal_of("hello world\n").find("not a memory history"), std::string::npos);
  EXPECT_NE(refusal_of(std::string("a \0\0\0", 5)).find("file:1"), std::string::npos);
  EXPECT_NE(refusal_of("# x\n" + std::string(3 << 20, 'y')).find("more than a mebibyte"), std::string::npos);
}

TEST(TextReader, KeepsDeferredFreesApart) {
  const Trace trace = read_one("a 0 8 0\nm tenon:deferred 0\nf 0\na 1 8 0\nm tenon:completed 0\na 2 8 0\n");
  EXPECT_EQ(trace.facts.deferred_frees, 1u);
  EXPECT_EQ(trace.slot_count, 2u) << "slot 0 is free again for block 2 only";
  EXPECT_NE(refusal_of("a 0 8 0\nf 0\nm tenon:completed 0\n").find("not pending"), std::string::npos);
}

class Files : public testing::Test {
 protected:
  std::string gz(const std::string& name, const std::string& text) {
    const std::string path = test::scratch_folder() + name;
    const gzFile file = ::gzopen(path.c_str(), "wb");
    ::gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    ::gzclose(file);
    return path;
  }
  static std::string refusal(const std::string& path) {
    try {
      read_traces(path);
    } catch (const TraceError& error) {
      return error.what();
    }
    ADD_FAILURE() << path << " is accepted";
    return {};
  }
};

TEST_F(Files, ReadsGz) { EXPECT_EQ(read_traces(gz("plain.gz", "a 0 8 0\nf 0\n")).front().facts.events, 2u); }

TEST_F(Files, RefusesATruncatedGz) {
  std::string text;
  for (int i = 0; i < 50000; ++i)
    text += "a " + std::to_string(i) + " " + std::to_string(i * 7919 % 100003 + 1) + " 0\n";
  const std::string path = gz("cut.gz", text);
  const std::uintmax_t half = std::filesystem::file_size(path) / 2;
  std::filesystem::resize_file(path, half);
  EXPECT_EQ(refusal(path),
            path + ": byte " + std::to_string(half) + " of the compressed file: the gz stream is truncated");
}

TEST_F(Files, RefusesADamagedGz) {
  std::string text;
  for (int i = 0; i < 50000; ++i)
    text += "a " + std::to_string(i) + " " + std::to_string(i * 7919 % 100003 + 1) + " 0\n";
  const std::string path = gz("bad.gz", text);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2));
  file.write("\x55\xaa\x55\xaa\x55\xaa", 6);
  file.close();
  EXPECT_NE(refusal(path).find(path), std::string::npos);
}

TEST_F(Files, RefusesAGzWhoseChecksumIsAnother) {
  const std::string path = gz("sum.gz", "a 0 8 0\nf 0\n");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);
  file.write("\x55\xaa\x55\xaa", 4);
  file.close();
  EXPECT_NE(refusal(path).find(" of the compressed file: the gz stream is damaged: incorrect data check"),
            std::string::npos)
      << refusal(path);
}

TEST_F(Files, ReadsGzMembersBehindEachOther) {
  const std::string path = gz("first.gz", "a 0 8 0\nf 0\n");
  std::ofstream(path, std::ios::app | std::ios::binary)
      << std::ifstream(gz("second.gz", "a 1 8 0\nf 1\n"), std::ios::binary).rdbuf();
  EXPECT_EQ(read_traces(path).front().facts.events, 4u);
  std::ofstream(path, std::ios::app | std::ios::binary) << std::string(10000, '\0');
  EXPECT_EQ(read_traces(path).front().facts.events, 4u) << "zeros behind it, as a tape has them";
}

TEST_F(Files, RefusesWhatFollowsAGzAndIsNone) {
  const std::string path = gz("followed.gz", "a 0 8 0\nf 0\n");
  const std::uintmax_t bytes = std::filesystem::file_size(path);
  std::ofstream(path, std::ios::app | std::ios::binary) << "more";
  EXPECT_EQ(refusal(path), path + ": byte " + std::to_string(bytes) +
                               " of the compressed file: the gz stream has ended, and something else follows");
}

TEST_F(Files, RefusesAnEmptyGz) {
  EXPECT_NE(refusal(gz("nothing.gz", "")).find("the file is empty"), std::string::npos);
}

TEST(TextReader, QuotesControlCharactersAsNumbers) {
  const std::string reason = refusal_of(std::string("a 0 8 0\nx\0y\n", 12));
  EXPECT_NE(reason.find("unknown record 'x\\x00y'; records begin"), std::string::npos) << reason;
}

TEST_F(Files, ReadsAPipe) {
  const std::string path = test::scratch_folder() + "history.fifo";
  ::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "a 0 8 0\nf 0\n"; });
  EXPECT_EQ(read_traces(path).front().facts.events, 2u);
  writer.join();
  ::unlink(path.c_str());
}

TEST_F(Files, RefusesADecompressionBomb) {
  // 200 MiB of zeros in 200 KiB: legal JSON white space would do as well.
  const std::string path = test::scratch_folder() + "bomb.gz";
  const gzFile file = ::gzopen(path.c_str(), "wb9");
  const std::string blanks(1 << 20, ' ');
  ::gzwrite(file, "[", 1);
  for (int i = 0; i < 200; ++i) ::gzwrite(file, blanks.data(), static_cast<unsigned>(blanks.size()));
  ::gzclose(file);
  EXPECT_NE(refusal(path).find("decompresses to more than 400 times"), std::string::npos) << refusal(path);
  ::unlink(path.c_str());
}

TEST_F(Files, NamesAMissingFileAndAFolder) {
  EXPECT_NE(refusal(test::scratch_folder() + "absent.gz").find("No such file"), std::string::npos);
  EXPECT_NE(refusal(test::scratch_folder()).find("is a directory, not a history"), std::string::npos);
}

TEST_F(Files, TheExampleHistoryHasThePeakOfItsHeader) {
  const Trace trace = read_traces(example_trace("llama7b_lora_ckpt.trace.gz")).front();
  EXPECT_EQ(std::to_string(trace.facts.peak_requested_bytes), trace.header.at("peak_live_bytes"));
  EXPECT_EQ(trace.facts.events, 80276u);
  EXPECT_TRUE(trace.notes.empty());
}

TEST(TextReader, AMarkOfTenonsThatIsIllFormedIsRefused) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"m tenon:failed 0 100 50\na 1 8 0\nf 1\n",
       "file:2: 'a 1' where 'a 0' is to follow: line 1 announces a request that ran out of memory"},
      {"m tenon:failed 0 100 50\n", "file:1: the file ends, where 'a 0' is to follow"},
      {"m tenon:failed 0 100 50\na 0 8 0\n", "file:2: the file ends, where 'f 0' is to follow"},
      {"m tenon:failed 0 100 50\na 0 8 0\na 1 8 0\nf 0\n", "file:3: 'a 1' where 'f 0' is to follow"},
      {"m tenon:failed 0 100 50\na 0 8 0\nu 0 3\nf 0\n", "file:3: 'u 0' where 'f 0' is to follow"},
      {"m tenon:failed 0 100 50\na 0 8 0\ne\nf 0\n", "file:3: 'e' where 'f 0' is to follow"},
      {"m tenon:failed 0 100 50\na 0 8 0\nm tenon:deferred 0\nf 0\n", "file:3: a mark of Tenon's where 'f 0'"},
      {"m tenon:failed 0 100 50 junk\na 0 8 0\nf 0\n", "file:1: text after the last field: 'junk'"},
      {"m tenon:failed 0 100\na 0 8 0\nf 0\n", "file:1: expected a space and the bytes that the device had left"},
      {"a 0 8 0\nm tenon:deferred 7\nf 0\n", "file:3: 'f 0' where 'f 7' is to follow: line 2 announces a free that"},
      {"a 0 8 0\nm tenon:deferred 0 junk\nf 0\n", "file:2: text after the last field: 'junk'"},
      {"a 0 8 0\nm tenon:deferred\nf 0\n", "file:2: expected a space and the id of a block"},
      {"a 0 8 0\nm tenon:deferred 0\nf 0\nm tenon:completed 0 x\n", "file:4: text after the last field: 'x'"},
      {"m tenon:mark\n", "file:1: expected a space and a name"}};
  for (const auto& [text, reason] : mistakes)
    EXPECT_NE(refusal_of(text).find(reason), std::string::npos) << refusal_of(text);
}

TEST(TextReader, AMarkOfALaterTenonIsAMark) {
  const Trace trace = read_one(
      "m tenon:later 1 2\na 0 8 0\nm tenon:deferredx 0\nm tenon:failedness\nm tenon:deferred 0\nm step\n# x: y\nf 0\n");
  EXPECT_EQ(trace.marks,
            (std::vector<std::string>{"tenon:later 1 2", "tenon:deferredx 0", "tenon:failedness", "step"}));
  EXPECT_EQ(trace.facts.deferred_frees, 1u) << "a mark or a comment between is no event";
}

TEST(TextReader, ManyCommentsHideNothingThatIsKnown) {
  std::string text;
  for (int i = 0; i < 1500; ++i) text += "# comment " + std::to_string(i) + ": x\n";
  const Trace trace =
      read_one(text + "# recorded_peak_reserved_bytes: 4096\n# remark 1: it began late\n# events: 1\na 0 8 0\n");
  ASSERT_TRUE(trace.recorded);
  EXPECT_EQ(trace.recorded->peak_reserved_bytes, 4096u);
  EXPECT_EQ(trace.notes,
            (std::vector<std::string>{"500 comments beyond the first 1000 are not kept", "it began late"}));
  EXPECT_NE(refusal_of(text + "# events: 2\na 0 8 0\n").find("its header states 2"), std::string::npos);
}

}  // namespace
}  // namespace tenon::replay
