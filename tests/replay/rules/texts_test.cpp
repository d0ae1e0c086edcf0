// Text formats by rule: each number of each kind of line at the edges of what it may be. What is read is recorded in
// texts.txt; who changes a reading on purpose writes it anew (support/recorded_table.h), with the filter TextTable*.
// Beside it: as many timed passes as are asked for, and comments that are not kept.
#include "replay/drawn_history.h"
#include "replay/support.h"
#include "support/recorded_table.h"

#include <tenon/core/error.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

void expect_read(const std::string& what, const std::string& outcome) {
  static test::RecordedTable table("tests/replay/rules/texts.txt");
  table.expect(what, outcome);
}

/// Every '$' is the number.
constexpr std::pair<const char*, const char*> kTemplates[] = {
    {"text id", "a $ 512 0\nf $\n"},
    {"text size", "a 0 $ 0\nf 0\n"},
    {"text sizes", "a 0 $ 0\na 1 $ 0\n"},
    {"text stream", "a 0 512 $\nu 0 $\n"},
    {"text use", "a 0 512 0\nu 0 $\nf 0\n"},
    {"text free", "a 1 512 0\nf $\n"},
    {"text time", "#t $\na 0 512 0\n#t +$\nf 0\n"},
    {"text failed", "m tenon:failed 0 $ 5\na 0 512 0\nf 0\n"},
    {"text left", "m tenon:failed 0 5 $\na 0 512 0\nf 0\n"},
    {"text failed id", "m tenon:failed $ 5 5\na 0 512 0\nf 0\n"},
    {"text deferred", "a 0 512 0\nm tenon:deferred $\nf 0\nm tenon:completed $\n"},
    {"text header", "# recorded_peak_reserved_bytes: $\na 0 512 0\n"},
    {"text purpose", "#p $\na 0 512 0\n"},
    {"text mark", "m $\na 0 512 0\nm step $\n"},
    {"text record", "$ 0 512 0\n"},
    {"text more", "a 0 512 0 $\n"},
    {"text start", "a 0 $ 0\nm recording starts\nf 0\na 1 5 0\n"},
    {"rmm size", "Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0xabc,$,0x1\n1,2,free,0xabc,$,0x1\n"},
    {"rmm pointer", "Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,$,8,0x1\n1,2,free,$,8,0x1\n"},
    {"rmm stream", "Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0xabc,8,$\n"},
    {"rmm action", "Thread,Time,Action,Pointer,Size,Stream\n1,1,$,0xabc,8,0x1\n"},
    {"rmm failure", "Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate failure,0x0,$,0x1\n1,1,allocate,0x9,5,0x1\n"},
    {"rmm columns", "Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0xabc,8,0x1,$\n"},
    {"minimalloc size", "id,lower,upper,size\na,0,5,$\nb,2,7,16\n"},
    {"minimalloc lower", "id,lower,upper,size\na,$,9,8\nb,2,7,16\n"},
    {"minimalloc upper", "id,lower,upper,size\na,0,$,8\nb,2,7,16\n"},
    {"minimalloc end", "id,start,end,size\na,0,$,8\nb,2,7,16\n"},
    {"minimalloc gaps", "id,lower,upper,size,gaps\na,0,9,8,3-$\n"},
    {"mtrace size", "= Start\n@ ./p:[0x401136] + 0x4006a0 $\n@ ./p:[0x401136] - 0x4006a0\n= End\n"},
    {"mtrace address", "= Start\n@ ./p:[0x401136] + $ 0x10\n@ ./p:[0x401136] - $\n= End\n"},
    {"mtrace place", "= Start\n@ ./p:[$] + 0x4006a0 0x10\n= End\n"},
    {"mtrace realloc", "= Start\n@ ./p:[0x4] + 0x4006a0 0x10\n@ ./p:[0x4] < 0x4006a0\n@ ./p:[0x4] > $ $\n= End\n"},
    {"profiler time",
     "[{\"name\":\"[memory]\",\"ts\":$,\"args\":{\"Addr\":16,\"Bytes\":512}},{\"name\":\"[memory]\",\"ts\":5,\"args\":{"
     "\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler time as text",
     "[{\"name\":\"[memory]\",\"ts\":\"$\",\"args\":{\"Addr\":16,\"Bytes\":512}},{\"name\":\"[memory]\",\"ts\":5,"
     "\"args\":{\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler fraction",
     "[{\"name\":\"[memory]\",\"ts\":17.$,\"args\":{\"Addr\":16,\"Bytes\":512}},{\"name\":\"[memory]\",\"ts\":5,"
     "\"args\":{\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler address",
     "[{\"name\":\"[memory]\",\"ts\":3,\"args\":{\"Addr\":$,\"Bytes\":512}},{\"name\":\"[memory]\",\"ts\":5,\"args\":{"
     "\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler address as text",
     "[{\"name\":\"[memory]\",\"ts\":3,\"args\":{\"Addr\":\"$\",\"Bytes\":512}},{\"name\":\"[memory]\",\"ts\":5,"
     "\"args\":{\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler bytes",
     "[{\"name\":\"[memory]\",\"ts\":3,\"args\":{\"Addr\":16,\"Bytes\":$}},{\"name\":\"[memory]\",\"ts\":5,\"args\":{"
     "\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler total",
     "[{\"name\":\"[memory]\",\"ts\":3,\"args\":{\"Addr\":16,\"Bytes\":512,\"Total "
     "Allocated\":$}},{\"name\":\"[memory]\",\"ts\":5,\"args\":{\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler reserved",
     "[{\"name\":\"[memory]\",\"ts\":3,\"args\":{\"Addr\":16,\"Bytes\":512,\"Total "
     "Reserved\":$}},{\"name\":\"[memory]\",\"ts\":5,\"args\":{\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler kind",
     "[{\"name\":\"[memory]\",\"ts\":3,\"args\":{\"Addr\":16,\"Bytes\":512,\"Device "
     "Type\":$}},{\"name\":\"[memory]\",\"ts\":5,\"args\":{\"Addr\":32,\"Bytes\":64}}]"},
    {"profiler device",
     "[{\"name\":\"[memory]\",\"ts\":3,\"args\":{\"Addr\":16,\"Bytes\":512,\"Device Type\":1,\"Device "
     "Id\":$}},{\"name\":\"[memory]\",\"ts\":5,\"args\":{\"Addr\":32,\"Bytes\":64}}]"}};

constexpr const char* kNumbers[] = {"",
                                    "-1",
                                    "+1",
                                    "0",
                                    "1",
                                    "2",
                                    "8",
                                    "9",
                                    "10",
                                    "0x0",
                                    "0x10",
                                    "0x",
                                    "x",
                                    "data",
                                    "free",
                                    "01",
                                    "1.5",
                                    "-7.25",
                                    "1e3",
                                    "2e30",
                                    "null",
                                    "123456789",
                                    "4294967295",
                                    "4294967296",
                                    "1152921504606846976",
                                    "1152921504606846977",
                                    "2305843009213693952",
                                    "4611686018427387903",
                                    "4611686018427387904",
                                    "4611686018427387905",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "18446744073709551614",
                                    "18446744073709551615",
                                    "18446744073709551616",
                                    "0xfffffffffffffffd",
                                    "0xfffffffffffffffe",
                                    "0xffffffffffffffff",
                                    "0x10000000000000000",
                                    "0x3fffffffffffffff",
                                    "0x4000000000000000",
                                    "0x4000000000000001"};

TEST(TextTable, OfEachNumberAtTheEdgesOfWhatItMayBeIsAsItWas) {
  for (const auto& [name, text] : kTemplates)
    for (const char* number : kNumbers) {
      std::string made;
      for (const char c : std::string_view(text)) c == '$' ? void(made += number) : void(made += c);
      std::string outcome;
      try {
        for (const Trace& trace : read_bytes(made, {.with_stacks = true, .with_columns = true}))
          outcome += all_of(trace);
        outcome = hash_of(outcome);
      } catch (const Error& error) {
        outcome = "refused, " + one_line(error.what()).substr(0, 70);
      }
      expect_read(fmt::format("{} {}", name, number), outcome);
    }
}

TEST(HeaderLines, BeyondAThousandAreCountedAndNotKeptUnlessTheyMeanSomething) {
  for (const int count : {999, 1000, 1001, 1002, 1500}) {
    TraceBuilder builder("x");
    for (int i = 0; i < count; ++i) builder.header("key " + std::to_string(i), "v");
    builder.header("key 5", "w");  // one that is there already
    builder.header("recorded_anything", "kept");
    builder.header("device", "kept as well");
    const Trace trace = std::move(builder).finish();
    EXPECT_EQ(trace.header.contains("key 999"), count >= 1000);
    EXPECT_FALSE(trace.header.contains("key 1000"));
    EXPECT_EQ(trace.header.at("key 5"), "w");
    EXPECT_EQ(trace.header.at("recorded_anything"), "kept");
    std::string notes;
    for (const std::string& note : trace.notes) notes += note;
    expect_read(fmt::format("{} comments", count), notes);
  }
}

TEST(TimedPasses, AreAsManyAsAreAskedForAndAtLeastOneWithoutABudget) {
  const Trace trace = drawn_history(3, 30, true);
  const StackConfig policy = plain_policy();
  for (const int passes : {0, 1, 3})
    for (const bool has_budget : {false, true})
      for (const bool observe : {false, true}) {
        const ReplayRow row = run_job(trace, policy,
                                      {.observe = observe,
                                       .timed_passes = passes,
                                       .timed_budget_seconds = has_budget ? 1e9 : 0,
                                       .time_each_call = false});
        EXPECT_EQ(row.failure, "");
        EXPECT_EQ(row.pass_seconds.size(), static_cast<std::size_t>(passes == 0 ? 0 : has_budget ? passes : 1));
        if (row.pass_seconds.empty() || row.seconds == 0) continue;
        EXPECT_EQ(row.seconds, std::ranges::min(row.pass_seconds));
        EXPECT_DOUBLE_EQ(row.events_per_second, static_cast<double>(row.events) / row.seconds);
      }
}

// A sleep takes as long as it is told, or longer.
TEST(TimedCalls, HaveTheirPercentilesAmongTheLongestOnes) {
  constexpr int kRequests = 100;
  const auto sleep_of = [](int i) { return i >= 90 ? 1000 : i >= 50 ? 200 : 0; };  // microseconds
  const StackConfig policy = policy_of("sleeping", [=](const AllocatorContext& context) {
    class Sleeping final : public PlainPolicy {
     public:
      Sleeping(MemorySource& source, std::function<int(int)> sleep) : PlainPolicy(source), sleep_(std::move(sleep)) {}
      Block allocate(const Request& request) override {
        if (const int time = sleep_(static_cast<int>(request.bytes) - 1); time != 0)
          std::this_thread::sleep_for(std::chrono::microseconds(time));
        return PlainPolicy::allocate(request);
      }
      void deallocate(const Block& block, StreamRef last_use) noexcept override {
        if (block.bytes == kRequests) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        PlainPolicy::deallocate(block, last_use);
      }

     private:
      std::function<int(int)> sleep_;
    };
    return std::make_unique<Sleeping>(context.source, sleep_of);
  });
  std::string text;
  for (int i = 0; i < kRequests; ++i) text += fmt::format("a {} {} 0\n", i, i + 1);
  for (int i = 0; i < kRequests; ++i) text += fmt::format("f {}\n", i);
  const ReplayRow row = run_job(read_one(text), policy, {.observe = false, .timed_passes = 0});
  EXPECT_GE(row.allocate_ns.p50, 190e3);
  EXPECT_GE(row.allocate_ns.p90, 950e3);
  EXPECT_GE(row.allocate_ns.p99, row.allocate_ns.p90);
  EXPECT_GE(row.allocate_ns.max, row.allocate_ns.p99_9);
  EXPECT_EQ(row.allocate_ns.p99_9, row.allocate_ns.max) << "of a hundred";
  EXPECT_GE(row.allocate_ns.mean, 0.95 * (40 * 200e3 + 10 * 1000e3) / kRequests);
  EXPECT_LE(row.allocate_ns.mean, row.allocate_ns.max);
  EXPECT_GE(row.free_ns.max, 1.9e6);
  EXPECT_EQ(row.free_ns.p99, row.free_ns.max);
  EXPECT_GE(row.free_ns.mean, 1.9e6 / kRequests);
#if defined(__x86_64__)  // elsewhere the clock may stand still for so long
  EXPECT_GT(row.clock_ns, 0);
#endif
  const ReplayRow nothing = run_job(read_one("e\n"), policy, {.timed_passes = 0});
  EXPECT_EQ(nothing.allocate_ns.max, 0);
  EXPECT_EQ(nothing.free_ns.mean, 0);
}

}  // namespace
}  // namespace tenon::replay
