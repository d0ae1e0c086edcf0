// What is written: chunks of the binary form and how long they become, texts and numbers at the edges of what they may
// be, header lines that are kept, and logs of RMM that count what they leave out.
#include "replay/drawn_history.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/formats/tenon/binary_format.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/trace/header_keys.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kMagicBytes = sizeof kBinaryMagic - 1;

/// The lengths of a file's chunks; each has its own sum.
std::vector<std::uint32_t> chunks_of(const std::string& file) {
  std::vector<std::uint32_t> lengths;
  std::size_t at = kMagicBytes + 1;
  while (at < file.size()) {
    std::uint32_t length = 0, sum = 0;
    std::memcpy(&length, file.data() + at, 4);
    std::memcpy(&sum, file.data() + at + 4, 4);
    EXPECT_LE(at + 8 + length, file.size());
    EXPECT_EQ(sum, ::crc32(0, reinterpret_cast<const Bytef*>(file.data() + at + 8), length));
    lengths.push_back(length);
    at += 8 + length;
  }
  return lengths;
}

TEST(BinaryChunks, EndWithTheRecordThatFillsFourKibibytes) {
  const std::string path = scratch("chunks.tenon");
  {
    BinaryTraceWriter writer(path);
    // Two bytes each, once size and stream are known: a tag and a number for both of them, and of a free a tag and one.
    const std::uint64_t first = writer.allocate(100, 0);
    for (int i = 0; i < 3000; ++i) writer.allocate(100, 0);
    writer.use(first, 0);
    writer.close();
  }
  const std::vector<std::uint32_t> lengths = chunks_of(content(path));
  ASSERT_GE(lengths.size(), 3U);
  for (std::size_t i = 0; i + 1 < lengths.size(); ++i) {
    EXPECT_GE(lengths[i], 4096U);
    EXPECT_LE(lengths[i], 4096U + 2);
  }
  EXPECT_LT(lengths.back(), 4096U);
  std::filesystem::remove(path);
}

TEST(BinaryChunks, AreOnlyThoseThatHaveSomethingInThem) {
  const std::string path = scratch("few.tenon");
  BinaryTraceWriter writer(path);
  writer.flush();
  EXPECT_EQ(content(path).size(), kMagicBytes + 1) << "nothing to write";
  writer.allocate(100, 0);
  EXPECT_EQ(content(path).size(), kMagicBytes + 1) << "not yet";
  writer.flush();
  EXPECT_EQ(chunks_of(content(path)).size(), 1U);
  writer.flush();
  EXPECT_EQ(chunks_of(content(path)).size(), 1U);
  writer.mark("m");
  writer.close();
  EXPECT_EQ(chunks_of(content(path)).size(), 2U);
  writer.close();
  EXPECT_EQ(chunks_of(content(path)).size(), 2U) << "a second time is none";
  {
    BinaryTraceWriter again(path);
    again.mark("unsaid");
  }
  EXPECT_EQ(read_one(content(path)).marks, std::vector<std::string>{"unsaid"}) << "the end of a writer writes, too";
  EXPECT_THROW(BinaryTraceWriter("/no/such/folder/x.tenon"), Error);
  std::filesystem::remove(path);
}

TEST(BinaryTexts, AreCutAtAMebibyte) {
  const std::string path = scratch("texts.tenon");
  for (const std::size_t size : {std::size_t{0}, MiB - 1, MiB, MiB + 1, MiB + 500}) {
    BinaryTraceWriter writer(path);
    writer.header("key", std::string(size, 'v'));
    writer.header(std::string(size, 'k'), "value");
    writer.mark(std::string(size, 'm'));
    writer.close();
    const Trace trace = read_one(content(path));
    const std::size_t kept = std::min<std::size_t>(size, MiB);
    EXPECT_EQ(trace.header.at("key").size(), kept);
    EXPECT_TRUE(trace.header.contains(std::string(kept, 'k'))) << size;
    EXPECT_EQ(trace.marks.at(0).size(), kept);
  }
  std::filesystem::remove(path);
}

TEST(BinaryNumbers, OfAnySizeComeBack) {
  const std::string path = scratch("numbers.tenon");
  std::vector<std::uint64_t> sizes = {0};
  for (int bits = 0; bits < 62; ++bits)
    for (const int more : {-1, 0, 1}) sizes.push_back((std::uint64_t{1} << bits) + static_cast<std::uint64_t>(more));
  BinaryTraceWriter writer(path, /*has_columns=*/true);
  std::vector<std::int64_t> times;
  std::int64_t time = 1000;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto jump = static_cast<std::int64_t>(sizes[i] >> 8);
    time = i % 3 == 0 ? time + jump : i % 3 == 1 ? time - jump / 2 : time;
    times.push_back(time);
    writer.at(time);
    writer.free(writer.allocate(sizes[i] == 0 ? 1 : sizes[i] / 64 + 1, sizes[i] % 1000));
  }
  writer.close();
  const Trace trace = read_one(content(path), {.with_columns = true});
  std::vector<std::int64_t> read;
  for (std::size_t i = 0; i < trace.columns.times_us.size(); i += 2) read.push_back(trace.columns.times_us[i]);
  EXPECT_EQ(read, times);
  std::vector<std::uint64_t> streams;
  std::size_t i = 0;
  for (const TraceEvent& event : trace.events) {
    if (event.kind != EventKind::kAllocate) continue;
    EXPECT_EQ(event.bytes, sizes[i] == 0 ? 1 : sizes[i] / 64 + 1);
    EXPECT_EQ(trace.streams[event.stream], sizes[i] % 1000);
    ++i;
  }
  EXPECT_EQ(i, sizes.size());
  std::filesystem::remove(path);
}

TEST(BinaryTraces, OfDrawnHistoriesComeBackAsAWhole) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = drawn_history(seed, 120, false);
    const std::string path = scratch("drawn.tenon");
    write_trace(trace, path);
    const ReadOptions options{.with_stacks = true, .with_columns = true};
    const Trace once = read_one(content(path), options);
    EXPECT_EQ(once.columns.times_us, trace.columns.times_us);
    EXPECT_EQ(once.columns.purposes, trace.columns.purposes);
    const std::string bytes = content(path);
    write_trace(once, path);
    EXPECT_EQ(all_of(read_one(content(path), options)), all_of(once)) << seed;
    EXPECT_EQ(content(path).size(), bytes.size());
    std::filesystem::remove(path);
  }
}

TEST(HeaderLines, ThatMeanSomethingAreKeptBeyondTheThousandth) {
  const auto is_kept = [](const std::string& key) {
    TraceBuilder builder("x");
    for (int i = 0; i < 1000; ++i) builder.header(fmt::format("key {}", i), "v");
    builder.header(key, "w");
    return std::move(builder).finish().header.contains(key);
  };
  for (const HeaderKey& known : kHeaderKeys) EXPECT_TRUE(is_kept(std::string(known.key))) << known.key;
  for (const char* key : {"remark 1", "remark 9", "remark 42", "recorded_", "recorded_by"})
    EXPECT_TRUE(is_kept(key)) << key;
  for (const char* key : {"remark 123", "remark x", "remark 1x", "remark", "unrecorded_", "namely", "Name"})
    EXPECT_FALSE(is_kept(key)) << key;
}

// --- RMM ------------------------------------------------------------------------------------------------------------

Trace of_rmm(const std::string& rows) { return read_one("Thread,Time,Action,Pointer,Size,Stream\n" + rows); }
std::string rmm_row(const std::string& action, const std::string& pointer, std::uint64_t bytes,
                    const std::string& stream) {
  return fmt::format("1,10:00:00.000001,{},{},{},{}\n", action, pointer, bytes, stream);
}

TEST(RmmLogs, CountWhatTheyLeaveOut) {
  const std::string some = rmm_row("allocate", "0x10", 100, "0x1");
  EXPECT_THAT(of_rmm(some + rmm_row("free", "0x10", 100, "0x1")).notes, ElementsAre());
  EXPECT_THAT(of_rmm(rmm_row("allocate failure", "0x0", 70, "0x1") + some).notes,
              ElementsAre("1 request ran out of memory in the recording"));
  EXPECT_THAT(
      of_rmm(rmm_row("allocate failure", "0x0", 70, "0x1") + rmm_row("allocate failure", "0x0", 0, "0x1") + some).notes,
      ElementsAre("2 requests ran out of memory in the recording"));
  EXPECT_THAT(of_rmm(rmm_row("allocate", "0x0", 0, "0x1") + rmm_row("allocate", "0x50", 0, "0x1") +
                     rmm_row("free", "0x0", 0, "0x1") + rmm_row("free", "0x50", 0, "0x1") + some)
                  .notes,
              ElementsAre("4 requests of 0 bytes are left out"));
  EXPECT_THAT(of_rmm(some + rmm_row("free", "0x10", 100, "0x2")).notes,
              ElementsAre("1 free names another stream than its allocation; the replay gives such a block back to the "
                          "stream that it was allocated on"));
  EXPECT_THAT(of_rmm(some + rmm_row("deallocate", "0x10", 90, "0x1")).notes,
              ElementsAre("1 free names another size than its allocation, which is what is replayed"));
  EXPECT_THAT(of_rmm(some + rmm_row("free", "0x10", 0, "0x1")).notes, ElementsAre()) << "the log does not say";
}

TEST(RmmLogs, OfDrawnHistoriesComeBackWithTheirTimesAndPointers) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Trace trace = drawn_history(seed, 80, true);
    const std::string path = scratch("drawn.csv");
    write_trace(trace, path);
    const Trace back = read_traces(path).front();
    EXPECT_EQ(back.facts.allocations, trace.facts.allocations);
    EXPECT_EQ(back.facts.frees, trace.facts.frees);
    EXPECT_EQ(back.facts.peak_requested_bytes, trace.facts.peak_requested_bytes);
    EXPECT_EQ(back.facts.end_live_bytes, trace.facts.end_live_bytes);
    std::filesystem::remove(path);
  }
  TraceBuilder builder("x");
  const std::uint32_t a = builder.allocate(100, 0), b = builder.allocate(200, 7);
  builder.free(a);
  builder.fail({.bytes = 50, .stream = 7});
  builder.free(b);
  const std::string path = scratch("rows.csv");
  write_trace(std::move(builder).finish(), path);
  EXPECT_EQ(content(path),
            "Thread,Time,Action,Pointer,Size,Stream\n"
            "1,00:00:00.000000,allocate,0x7f0000000000,100,0x0\n"
            "1,00:00:00.000001,allocate,0x7f0000000100,200,0x7\n"
            "1,00:00:00.000002,free,0x7f0000000000,100,0x0\n"
            "1,00:00:00.000003,allocate failure,0x0,50,0x7\n"
            "1,00:00:00.000005,free,0x7f0000000100,200,0x7\n");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon::replay
