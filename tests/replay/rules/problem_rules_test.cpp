// Static problems in minimalloc's columns, read row by row and written back, and the tables that they and RMM's logs
// are.
#include "replay/support.h"

#include <tenon/replay/formats/minimalloc_problem.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MinimallocProblem problem_in(const std::string& text) {
  InputFile input("file", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return read_minimalloc_problem(input);
}
std::string refusal_of_problem(const std::string& text) {
  try {
    problem_in(text);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "taken";
}
std::string shown(const packing::Buffer& buffer) {
  std::string text = fmt::format("{}-{} {} by {}", buffer.lower, buffer.upper, buffer.size, buffer.alignment);
  if (buffer.offset) text += fmt::format(" at {}", *buffer.offset);
  if (buffer.hint) text += fmt::format(" near {}", *buffer.hint);
  for (const packing::Gap& gap : buffer.gaps)
    text += fmt::format(", {}-{} uses {}-{}", gap.lower, gap.upper, gap.low, gap.high);
  return text;
}
std::vector<std::string> shown(const MinimallocProblem& problem) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i)
    all.push_back(problem.ids[i] + ": " + shown(problem.buffers[i]));
  return all;
}

TEST(MinimallocProblems, HaveTheirColumnsInAnyOrderAndUnderEachName) {
  EXPECT_THAT(shown(problem_in("id,lower,upper,size\nx,0,5,8\ny,2,3,0\n")),
              ElementsAre("x: 0-5 8 by 1", "y: 2-3 0 by 1"));
  EXPECT_THAT(shown(problem_in("size,what,UPPER,Start,buffer\n8,?,5,0,x\n")), ElementsAre("x: 0-5 8 by 1"));
  EXPECT_THAT(shown(problem_in("begin,end,size,buffer_id\n0,5,8,x\n")), ElementsAre("x: 0-6 8 by 1")) << "inclusive";
  EXPECT_THAT(shown(problem_in("begin,end,upper,size\n0,5,9,8\n2,2,3,1\n")),
              ElementsAre("0: 0-9 8 by 1", "1: 2-3 1 by 1"))
      << "the exclusive one, and rows by number";
  EXPECT_THAT(
      shown(problem_in("id,lower,upper,size,alignment,offset,hint\na,0,5,8,4,12,7\nb,0,5,8,,,\nc,0,5,8,2,,-1\n")),
      ElementsAre("a: 0-5 8 by 4 at 12 near 7", "b: 0-5 8 by 1", "c: 0-5 8 by 2"));
}

TEST(MinimallocProblems, HaveGapsInOrderOfTimeWithTheBytesInUseThere) {
  const auto gaps = [](const std::string& text) {
    return shown(problem_in("id,lower,upper,size,gaps\na,0,20,8," + text + "\n").buffers.front());
  };
  EXPECT_EQ(gaps("1-2"), "0-20 8 by 1, 1-2 uses 0-0");
  EXPECT_EQ(gaps("10-20@0:8   0-3@2:4"), "0-20 8 by 1, 0-3 uses 2-4, 10-20 uses 0-8");
  EXPECT_EQ(shown(problem_in("lower,end,size,gaps\n0,19,8,1-2\n").buffers.front()), "0-20 8 by 1, 1-3 uses 0-0")
      << "to the end of 2, as the column 'end'";
  const auto refused = [](const std::string& text) {
    return refusal_of_problem("id,lower,upper,size,gaps\na,0,20,8," + text + "\n");
  };
  EXPECT_EQ(refused("x"), "file:2: expected gaps as 'a-b' or 'a-b@lo:hi', not 'x'");
  EXPECT_EQ(refused("1-2 x3456789012345678901234567890123456789"),
            "file:2: expected gaps as 'a-b' or 'a-b@lo:hi', not '1-2 x34567890123456789012345678901234567'");
  EXPECT_EQ(refused("9223372036854775807-9"),
            "file:2: expected gaps as 'a-b' or 'a-b@lo:hi', not '9223372036854775807-9'");
  EXPECT_THAT(refused("3-9223372036854775806"), HasSubstr("outside of its life"));
  EXPECT_EQ(refused("3:4"), "file:2: a gap that does not end after its start in '3:4'");
  EXPECT_EQ(refused("3-3"), "file:2: a gap that does not end after its start in '3-3'");
  EXPECT_EQ(refused("3-4@5-6"), "file:2: a gap that does not end after its start in '3-4@5-6'");
  EXPECT_EQ(refused("3-4@5:5"), "file:2: a gap that does not end after its start in '3-4@5:5'");
  EXPECT_THAT(refused("3-5 4-6"), HasSubstr("file:2: a buffer that has a gap from 4 to 6"));
  EXPECT_THAT(refused("3-5@0:9"), HasSubstr("file:2: a buffer that uses the bytes from 0 to 9"));
  EXPECT_EQ(refused("3-4@5:6@7:8"), "file:2: expected gaps as 'a-b' or 'a-b@lo:hi', not '3-4@5:6@7:8'");
}

TEST(MinimallocProblems, AreRefusedWithTheLineOfTheFirstMistake) {
  const std::string header = "id,lower,upper,size\n";
  EXPECT_EQ(refusal_of_problem(header + "a,5,5,4\n"), "file:2: a buffer whose life ends at 5, not after its start 5");
  EXPECT_EQ(refusal_of_problem(header + "a,5,4,4\n"), "file:2: a buffer whose life ends at 4, not after its start 5");
  EXPECT_EQ(refusal_of_problem(header + "a,5,9223372036854775807,4\n"), "taken");
  EXPECT_EQ(refusal_of_problem("id,lower,end,size\na,5,9223372036854775807,4\n"),
            "file:2: an upper bound does not fit in 63 bits");
  EXPECT_EQ(refusal_of_problem(header + "a,5,9223372036854775808,4\n"),
            "file:2: an upper bound does not fit in 63 bits: 9223372036854775808");
  EXPECT_EQ(refusal_of_problem(header + ",0,5,4\n"), "file:2: a buffer without an id");
  EXPECT_EQ(refusal_of_problem(header + "a,0,5,4\n\n# a remark\nb,0,5,4\na,7,8,1\n"), "file:6: the id 'a' comes twice");
  const std::string id(50, 'i');
  EXPECT_EQ(refusal_of_problem(header + id + ",0,5,4\n" + id + ",0,5,4\n"),
            "file:3: the id '" + id.substr(0, 40) + "' comes twice");
  EXPECT_EQ(refusal_of_problem("id,upper,size\n"), "file:1: the header line has no column 'lower'");
  EXPECT_EQ(refusal_of_problem("id,lower,size\n"), "file:1: the header line has no column 'end'");
  EXPECT_EQ(refusal_of_problem("id,lower,upper\n"), "file:1: the header line has no column 'size'");
  EXPECT_EQ(refusal_of_problem(header + "a,0,5\n"), "file:2: a row of 3 fields under a header of 4");
  EXPECT_EQ(refusal_of_problem(header + "a,0,5,-4\n"), "file:2: expected a size, not '-4'");
  EXPECT_EQ(refusal_of_problem(header + "a,0,5,0x4\n"), "file:2: expected a size, not '0x4'");
  EXPECT_THAT(refusal_of_problem("lower,upper,size,alignment\n0,5,4,0\n"),
              HasSubstr("file:2: a buffer that has an alignment of 0"));
  EXPECT_EQ(refusal_of_problem("lower,upper,size,alignment\n0,5,0,0\n"), "taken") << "without bytes it needs no place";
  EXPECT_THAT(refusal_of_problem("lower,upper,size,alignment,offset\n0,5,4,8,12\n"),
              HasSubstr("has to lie at 12, which is not a multiple of 8"));
}

TEST(MinimallocProblems, ComeBackAsTheyWereWrittenWithTheColumnsThatAreNeeded) {
  const auto written = [](const std::string& text) {
    const MinimallocProblem problem = problem_in(text);
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) offsets.push_back(100 * i);
    const std::string path = scratch("problem.csv");
    write_minimalloc_problem(path, problem, offsets);
    MinimallocProblem back = read_minimalloc_problem(path);
    for (std::size_t i = 0; i < back.buffers.size(); ++i) {
      EXPECT_EQ(back.buffers[i].offset, offsets[i]);
      back.buffers[i].offset = problem.buffers[i].offset;
    }
    EXPECT_EQ(shown(back), shown(problem));
    return content(path);
  };
  EXPECT_EQ(written("id,lower,upper,size\na,0,5,8\nb,1,2,0\n"), "id,lower,upper,size,offset\na,0,5,8,0\nb,1,2,0,100\n");
  EXPECT_EQ(written("id,lower,upper,size,alignment\na,0,5,8,1\nb,1,2,4,4\n"),
            "id,lower,upper,size,alignment,offset\na,0,5,8,1,0\nb,1,2,4,4,100\n");
  EXPECT_EQ(written("id,lower,upper,size,hint\na,0,5,8,-1\nb,1,2,4,9\n"),
            "id,lower,upper,size,hint,offset\na,0,5,8,-1,0\nb,1,2,4,9,100\n");
  EXPECT_EQ(written("id,lower,upper,size,gaps\na,0,9,8,1-2 4-6@1:3\nb,1,2,4,\n"),
            "id,lower,upper,size,gaps,offset\na,0,9,8,1-2 4-6@1:3,0\nb,1,2,4,,100\n");
}

TEST(MinimallocHistories, ArePutTogetherInTimeWithEndsFirstAndThenByRow) {
  const auto told = [](const std::string& text) {
    std::string events;
    for (const TraceEvent& event : read_one(text).events)
      events += fmt::format("{}{} ", event.kind == EventKind::kFree ? "f" : "a", event.bytes);
    return events;
  };
  EXPECT_EQ(told("id,lower,upper,size\nx,5,7,1\ny,0,5,2\nz,5,6,3\nw,2,5,4\nv,1,3,0\n"), "a2 a4 f2 f4 a1 a3 f3 f1 ");
  const Trace trace = read_one("id,lower,upper,size,gaps\nx,0,7,1,2-3\ny,0,5,0,\nz,0,5,0,1-2\n");
  EXPECT_THAT(trace.notes,
              ElementsAre("a static problem: buffers with the times they live, replayed as allocations and frees in "
                          "time order",
                          "2 buffers of 0 bytes are left out",
                          "2 buffers have gaps, which are replayed as alive: an allocator cannot take part of a block "
                          "back"));
  EXPECT_THAT(refusal_of(fmt::format("lower,upper,size\n0,5,{0}\n0,5,{0}\n0,5,1\n", std::uint64_t{1} << 61)),
              HasSubstr("2^62"));
}

TEST(CsvTables, BeginBehindRemarksAndHaveQuotesAndBlanksAroundFields) {
  EXPECT_THAT(
      shown(problem_in("\xef\xbb\xbf# remark\n\n \"\" \n\"id\" , lower,\tupper,size\n\"a\",0, 5 ,8\n  \n#b,1,2,3\n")),
      ElementsAre("a: 0-5 8 by 1"));
  EXPECT_EQ(refusal_of_problem("id,lower\rx,1\r"),
            "file:1: lines end in carriage returns alone; convert them: tr '\\r' '\\n' < IN > OUT");
  std::string wide = "lower,upper,size", row = "0,5,8";
  for (int i = 3; i < 256; ++i) wide += ",c", row += ",";
  EXPECT_EQ(refusal_of_problem(wide + "\n" + row + "\n"), "taken");
  EXPECT_EQ(refusal_of_problem(wide + ",c\n" + row + ",\n"), "taken") << "257 fields";
  EXPECT_EQ(refusal_of_problem(wide + ",c,c\n"), "file:1: more than 256 fields");
}

/// Bytes that no two neighbours of are alike, more than a buffer of the reader holds.
TEST(InputPieces, OfAFileAreItsBytesOneAfterTheOther) {
  std::string bytes;
  for (std::uint32_t i = 0; bytes.size() < 600'000; ++i) bytes += fmt::format("{}\n", i * 7919);
  const std::string path = scratch("long.txt");
  std::ofstream(path, std::ios::binary) << bytes;
  {
    InputFile input(path);
    std::string read, piece(1000, ' ');
    while (input.read(piece.data(), 1000)) {
      read += piece;
      ASSERT_EQ(input.position(), read.size());
    }
    EXPECT_EQ(read, bytes.substr(0, read.size()));
    EXPECT_EQ(input.position(), bytes.size()) << "the rest is taken, and not enough";
    EXPECT_LT(input.peek(), 0);
  }
  InputFile input(path);
  std::string_view line;
  std::string read;
  std::uint64_t lines = 0;
  while (input.line(line)) {
    read += std::string(line) + "\n";
    ASSERT_EQ(input.line_number(), ++lines);
  }
  EXPECT_EQ(read, bytes) << "lines over the ends of buffers, too";
}

TEST(InputLines, MayBeAMebibyteLong) {
  const auto first_of = [](std::size_t bytes) {
    const std::string path = scratch("line.txt");
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x') << "\r\nsecond";
    InputFile input(path);
    std::string_view line;
    EXPECT_TRUE(input.line(line));
    const std::size_t length = line.size();
    EXPECT_TRUE(input.line(line));
    EXPECT_EQ(line, "second");
    EXPECT_FALSE(input.line(line));
    return length;
  };
  EXPECT_EQ(first_of(300'000), 300'000U);
  EXPECT_EQ(first_of((1 << 20) - 1), (1U << 20) - 1) << "with its carriage return a mebibyte";
  EXPECT_THROW(first_of(1 << 20), TraceError);
}

}  // namespace
}  // namespace tenon::replay
