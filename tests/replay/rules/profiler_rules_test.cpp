// What torch.profiler's traces say of memory, rule by rule: which objects of the file are events, what each field may
// be, in which order events come, and what is noted of those that do not fit together.
#include "replay/support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kMostOfABlock = std::uint64_t{1} << 62;

/// A history in short: "a512 u f512 !64 (a request that failed) m:NAME".
std::string told(const Trace& trace) {
  std::string text;
  std::uint64_t counted = 0;
  std::size_t next = 0;
  bool has_failed = false;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == EventKind::kMark) text += " m:" + trace.marks[event.bytes];
    if (event.kind == EventKind::kAllocate) {
      has_failed = trace.failure_at(counted, next) != nullptr;
      text += fmt::format(" {}{}", has_failed ? "!" : "a", event.bytes);
    }
    if (event.kind == EventKind::kFree && !std::exchange(has_failed, false)) text += fmt::format(" f{}", event.bytes);
    counted += is_counted(event.kind) ? 1 : 0;
  }
  return text.empty() ? text : text.substr(1);
}

/// An instant; `rest` are further members of its arguments.
std::string instant(const std::string& time, std::uint64_t address, std::int64_t bytes, const std::string& rest = "",
                    const std::string& name = "[memory]") {
  return fmt::format(R"({{"name":"{}","ts":{},"args":{{"Addr":{},"Bytes":{}{}}}}})", name, time, address, bytes,
                     rest.empty() ? "" : "," + rest);
}
std::string list_of(const std::vector<std::string>& events) { return fmt::format("[{}]", fmt::join(events, ",")); }
std::string told_of(const std::string& file) { return told(read_one(file)); }
std::string told_of(const std::vector<std::string>& events) { return told_of(list_of(events)); }

TEST(ProfilerEvents, AreTheObjectsOfTheListAloneOrOfTraceEventsAtTheTop) {
  const std::string one = instant("1", 16, 512), other = instant("2", 32, 64);
  EXPECT_EQ(told_of("[" + one + "]"), "a512");
  EXPECT_EQ(told_of(R"({"traceEvents":[)" + one + "]}"), "a512");
  EXPECT_EQ(told_of(R"({"other":[)" + other + R"(],"traceEvents":[)" + one + R"(],"more":[)" + other + "]}"), "a512");
  EXPECT_EQ(told_of(R"({"traceEvents":[)" + one + R"(],"single":)" + other + "}"), "a512") << "behind the list";
  EXPECT_EQ(told_of(R"({"single":)" + other + R"(,"traceEvents":[)" + one + "]}"), "a512") << "before it";
  EXPECT_EQ(told_of(R"({"deep":{"traceEvents":[)" + other + R"(]},"traceEvents":[)" + one + "]}"), "a512");
  EXPECT_EQ(told_of(R"({"traceEvents":[)" + one + R"(],"traceEvents":[)" + other + "]}"), "a512 a64") << "both lists";
  EXPECT_EQ(told_of("[[" + other + "]," + one + "]"), "a512") << "a list in the list";
  EXPECT_EQ(told_of("[1,\"x\",null,true,-3,2.5," + one + ",{}," + other + "]"), "a512 a64");
  EXPECT_EQ(told_of(R"([{"name":"op","args":)" + other + "}," + one + "]"), "a512") << "inside of another event";
}

TEST(ProfilerEvents, AreCalledByTheirOwnNameAndHaveTheArgumentsOfTheirOwn) {
  const auto with = [](const std::string& members) { return R"([{"ts":1,)" + members + "},{\"ph\":\"i\"}]"; };
  const std::string args = R"("args":{"Addr":16,"Bytes":512})", name = R"("name":"[memory]")";
  EXPECT_EQ(told_of(with(name + "," + args)), "a512");
  EXPECT_EQ(told_of(with(args + "," + name)), "a512") << "in either order";
  const std::string others = instant("9", 48, 32);
  const auto not_an_event = [&](const std::string& members) {
    return told_of("[" + others + R"(,{"ts":1,)" + members + "}]") == "a32";
  };
  EXPECT_TRUE(not_an_event(R"("cat":"[memory]",)" + args)) << "another member is called so";
  EXPECT_TRUE(not_an_event(R"("name":"[memory] ",)" + args));
  EXPECT_TRUE(not_an_event(R"("args":{"name":"[memory]","Addr":16,"Bytes":512})")) << "an argument is";
  EXPECT_TRUE(not_an_event(R"("x":{"name":"[memory]"},"args":{"Addr":16,"Bytes":512})"));
  EXPECT_EQ(told_of(with(name + R"(,"more":{"Bytes":7,"Addr":9},)" + args + R"(,"behind":{"Bytes":8,"Addr":1})")),
            "a512")
      << "arguments of another name";
  EXPECT_EQ(told_of(with(name + R"(,"args":{"Addr":16,"x":{"Bytes":5,"Addr":1},"y":[{"Bytes":6}],"Bytes":512})")),
            "a512")
      << "deeper ones";
  EXPECT_EQ(told_of(with(name + R"(,"Bytes":5,"Addr":1,)" + args)), "a512") << "members of the event itself";
  EXPECT_EQ(
      refusal_of(with(name + R"(,"args":{"Addr":16,"Bytes":[512]})")),
      "file: byte 60: a [memory] event without \"Bytes\", or with something else than an integer of 64 bits there");
  EXPECT_EQ(
      told_of(R"([{"name":"[memory]","args":{"Addr":16,"Bytes":512,"ts":77},"ts":1},)" + instant("2", 32, 64) + "]"),
      "a512 a64")
      << "the time is the event's";
}

TEST(ProfilerEvents, TakeNothingFromTheOneBefore) {
  const std::string one = instant("5", 16, 512);
  EXPECT_EQ(told_of({one, R"({"args":{"Addr":32,"Bytes":64}})"}), "a512") << "the name";
  EXPECT_THAT(refusal_of(list_of({one, R"({"name":"[memory]","ts":1,"args":{"Addr":32}})"})),
              ::testing::HasSubstr("without \"Bytes\""));
  EXPECT_THAT(refusal_of(list_of({one, R"({"name":"[memory]","ts":1,"args":{"Bytes":64}})"})),
              ::testing::HasSubstr("without \"Addr\""));
  EXPECT_EQ(told_of({one, R"({"name":"[memory]","args":{"Addr":32,"Bytes":64}})"}), "a64 a512") << "its time is 0";
  EXPECT_EQ(told_of({R"({"ts":"noon"})", one}), "a512") << "a time that is none";
  EXPECT_EQ(told_of({R"({"name":"ProfilerStep#1","ts":1})", R"({"ts":2})", one}), "m:ProfilerStep#1 a512");
  EXPECT_EQ(told_of({instant("1", 0, 64, "", "[OutOfMemory]"), R"({"ts":2,"args":{"Bytes":32}})", one}), "!64 a512");
}

TEST(ProfilerEvents, ComeInTheOrderOfTheirNanoseconds) {
  const std::vector<std::string> moments = {"-9007199254740993",
                                            "-2.5",
                                            "-2",
                                            "-1.75",
                                            "-1.2501",
                                            "-1.249",
                                            "-0.001",
                                            "0.0009",
                                            "0.001",
                                            "0.01",
                                            "0.1",
                                            "1",
                                            "1.009",
                                            "1.01",
                                            "1.1",
                                            "\"1.100\"",
                                            "1.101",
                                            "1.10201",
                                            "\"1.2\"",
                                            "1.2",
                                            "2e0",
                                            "2.001",
                                            "\"3\"",
                                            "1e3",
                                            "1000.5",
                                            "1712345678901234",
                                            "\"1712345678901234.001\"",
                                            "1712345678901234.002",
                                            "8.9e15",
                                            "9007199254740993",
                                            "9223372036854774"};
  std::vector<std::string> events;
  std::string expected;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    events.push_back(instant(moments[i], 1000 + i, static_cast<std::int64_t>(i) + 1));
    expected += fmt::format("{}a{}", i == 0 ? "" : " ", i + 1);
  }
  EXPECT_EQ(told_of(events), expected) << "those of one moment in the order of the file";
  // Later ones first; of "1.100" and "1.1", and of "1.2" twice, the moments are equal.
  std::vector<std::string> turned(events.rbegin(), events.rend());
  EXPECT_EQ(told_of(turned), [&] {
    std::string text = expected;
    text.replace(text.find("a15 a16"), 7, "a16 a15");
    text.replace(text.find("a19 a20"), 7, "a20 a19");
    return text;
  }());
}

TEST(ProfilerEvents, HaveATimeThatIsANumberOfMicrosecondsWithinReach) {
  const auto is_refused = [](const std::string& time) {
    const std::string file = list_of({instant(time, 16, 512)});
    try {
      read_one(file);
      return std::string("taken");
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
  };
  const std::string limit = "9223372036854774", beyond = "9223372036854775";  // of nanoseconds, 2^63 are one too many
  for (const std::string& time : {limit, "-" + limit, "\"" + limit + "\"", limit + ".999", std::string("\"-7.25\""),
                                  std::string("8.9e15"), std::string("1e-3"), std::string("\"1.\"")})
    EXPECT_EQ(is_refused(time), "taken") << time;
  for (const std::string& time :
       {beyond, "-" + beyond, "\"" + beyond + "\"", std::string("\"noon\""), std::string("\"\""), std::string("\"-\""),
        std::string("\"1.5x\""), std::string("\"1e3\""), std::string("\".5\""), std::string("\"5 \""),
        std::string("9.1e15"), std::string("-9.1e15"), std::string("9e15"), std::string("18446744073709551615")})
    EXPECT_THAT(is_refused(time), ::testing::HasSubstr("\"ts\" of a [memory] event is not a time, or out of range"))
        << time;
}

TEST(ProfilerEvents, HaveAnAddressAsANumberOrAsItsText) {
  // Freed at the same address by its number.
  const auto pairs = [](const std::string& address, std::uint64_t number) {
    return told_of("[{\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Addr\":" + address + ",\"Bytes\":512}}," +
                   instant("2", number, -512) + "]") == "a512 f512";
  };
  EXPECT_TRUE(pairs("140000000000000", 140000000000000));
  EXPECT_TRUE(pairs("1.4e+14", 140000000000000));
  EXPECT_TRUE(pairs("\"140000000000000\"", 140000000000000));
  EXPECT_TRUE(pairs("\"0x7f5432100000\"", 0x7f5432100000));
  EXPECT_TRUE(pairs("0", 0));
  EXPECT_TRUE(pairs("18446744073709551613", ~std::uint64_t{0} - 2));
  for (const char* address : {"18446744073709551614", "18446744073709551615", "-1", "-2"})
    EXPECT_THAT(refusal_of(fmt::format(R"([{{"name":"[memory]","ts":1,"args":{{"Addr":{},"Bytes":512}}}}])", address)),
                ::testing::HasSubstr("\"Addr\" of a [memory] event is out of range"))
        << address;
  for (const char* address :
       {"\"0x\"", "\"\"", "\"12a\"", "\"0x1g\"", "\" 1\"", "\"0x10000000000000000\"", "\"18446744073709551616\""})
    EXPECT_THAT(refusal_of(fmt::format(R"([{{"name":"[memory]","ts":1,"args":{{"Addr":{},"Bytes":512}}}}])", address)),
                ::testing::HasSubstr("expected an address as \"Addr\" of an event, not " + std::string(address)))
        << address;
  EXPECT_THAT(refusal_of(R"([{"args":{"Addr":"0123456789012345678901234567890123456789x"}}])"),
              ::testing::EndsWith("not \"0123456789012345678901234567890123456789\""))
      << "forty characters of it";
  for (const char* address : {"1.5", "9007199254740992.0", "null", "true", "[1]"})
    EXPECT_THAT(refusal_of(fmt::format(R"([{{"name":"[memory]","ts":1,"args":{{"Addr":{},"Bytes":512}}}}])", address)),
                ::testing::HasSubstr("without \"Addr\""))
        << address << " is none";
}

TEST(ProfilerEvents, HaveASizeOfUpTo2To62EitherWayAndOfNothingAreNone) {
  const auto of = [](const std::string& bytes) {
    return fmt::format(R"([{{"name":"[memory]","ts":1,"args":{{"Addr":16,"Bytes":{}}}}}])", bytes);
  };
  EXPECT_EQ(told_of(of(std::to_string(kMostOfABlock))), fmt::format("a{0}", kMostOfABlock));
  EXPECT_EQ(told_of(of("-" + std::to_string(kMostOfABlock))),
            fmt::format("a{0} m:recording starts f{0}", kMostOfABlock));
  EXPECT_EQ(told_of(of("1.5e3")), "a1500");
  for (const std::string& bytes : {std::to_string(kMostOfABlock + 1), "-" + std::to_string(kMostOfABlock + 1),
                                   std::string("-9223372036854775808")})
    EXPECT_THAT(refusal_of(of(bytes)), ::testing::EndsWith("\"Bytes\" of a [memory] event is out of range: " + bytes));
  for (const char* bytes : {"1.5", "\"512\"", "null", "9223372036854775808", "1e16"})
    EXPECT_THAT(refusal_of(of(bytes)), ::testing::HasSubstr("without \"Bytes\", or with something else")) << bytes;
  EXPECT_EQ(told_of(R"([{"name":"[memory]","ts":1,"args":{"Bytes":0}},)" + instant("2", 16, 64) + "]"), "a64")
      << "of nothing, without an address";
}

TEST(ProfilerDevices, AreCalledByTheirKindAndNumberAndHeldWithinBounds) {
  const auto on = [](const std::string& kind, const std::string& number, int bytes) {
    return instant("1", 16, bytes, fmt::format(R"("Device Type":{},"Device Id":{})", kind, number));
  };
  std::vector<std::pair<std::string, int>> named;
  for (const Trace& trace :
       read_bytes(list_of({on("1", "3", 1), on("1", "0", 2), on("5", "2", 3), on("2", "0", 4),
                           on("1048577", "9999999999", 5), on("-7", "-9", 6), on("1.5", "1", 7), on("-7", "1.5", 8)})))
    named.emplace_back(trace.name + "=" + told(trace), trace.device);
  EXPECT_THAT(named, ElementsAre(std::pair("file@device-1:-1=a6", -1), std::pair("file@device-1:0=a8", 0),
                                 std::pair("file@cuda:0=a2", 0), std::pair("file@cuda:3=a1", 3),
                                 std::pair("file@device2:0=a4", 0), std::pair("file@device5:2=a3", 2),
                                 std::pair("file@device1048576:1048576=a5", 1048576)))
      << "the one whose kind is no integer is the host's";
  const std::vector<Trace> hosts = read_bytes(list_of({on("0", "0", 1), on("0", "1", 2)}));
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[1].name, "file@cpu");
  EXPECT_EQ(hosts[1].sizes_are_rounded, 0U);
  EXPECT_THAT(hosts[1].notes, IsEmpty());
  const Trace alone = read_one(list_of({on("1", "3", 1)}));
  EXPECT_EQ(alone.name, "file");
  EXPECT_EQ(alone.sizes_are_rounded, 512U);
  EXPECT_EQ(alone.format, "chrome");
  EXPECT_THAT(alone.notes, ElementsAre("the profiler records sizes after PyTorch's rounding to 512 bytes"));
  const Trace beside = read_one(list_of({on("1", "3", 1), on("0", "0", 2), on("0", "1", 3), on("0", "1", 4)}));
  EXPECT_THAT(beside.notes, Contains("3 events of host memory are left out"));
}

TEST(ProfilerSteps, AreMarksBeforeTheFirstEventThatIsNotEarlier) {
  const auto step = [](const std::string& time, int number) {
    return fmt::format(R"({{"name":"ProfilerStep#{}","ts":{}}})", number, time);
  };
  const std::vector<std::string> events = {instant("10", 16, 1), instant("20", 32, 2), instant("30", 48, 3)};
  const auto with = [&](std::vector<std::string> steps) {
    steps.insert(steps.end(), events.begin(), events.end());
    return told_of(steps);
  };
  EXPECT_EQ(with({step("20", 2), step("5", 1), step("20.001", 3), step("31", 4)}),
            "m:ProfilerStep#1 a1 m:ProfilerStep#2 a2 m:ProfilerStep#3 a3");
  EXPECT_EQ(with({step("25", 2), step("25", 1)}), "a1 a2 m:ProfilerStep#2 m:ProfilerStep#1 a3") << "as in the file";
  EXPECT_EQ(with({step("\"noon\"", 1), step("1e300", 2), step("15", 3)}), "a1 m:ProfilerStep#3 a2 a3");
  EXPECT_EQ(with({R"({"name":"MyProfilerStep#1","ts":1})", R"({"ts":1,"args":{"name":"ProfilerStep#1"}})"}),
            "a1 a2 a3");
}

TEST(ProfilerSteps, AreNotCountedAgainWhereTheirKernelsRan) {
  const std::vector<std::string> events = {R"({"cat":"user_annotation","name":"ProfilerStep#1","ts":5})",
                                           instant("10", 16, 1),
                                           R"({"cat":"gpu_user_annotation","name":"ProfilerStep#1","ts":15})",
                                           instant("20", 32, 2),
                                           R"({"name":"ProfilerStep#2","ts":25,"cat":"user_annotation"})",
                                           R"({"name":"ProfilerStep#2","ts":26,"cat":"gpu_user_annotation"})",
                                           instant("30", 48, 3)};
  EXPECT_EQ(told_of(events), "m:ProfilerStep#1 a1 a2 m:ProfilerStep#2 a3");
}

TEST(ProfilerFailures, AreRequestsBehindTheEventsUpToTheirMoment) {
  const auto failure = [](const std::string& time, std::int64_t bytes) {
    return instant(time, 0, bytes, "", "[OutOfMemory]");
  };
  const std::vector<std::string> events = {instant("10", 16, 1), instant("20", 32, 2)};
  const auto with = [&](std::vector<std::string> failures) {
    failures.insert(failures.end(), events.begin(), events.end());
    return read_one(list_of(failures));
  };
  Trace trace = with({failure("15", 64), failure("20", 128), failure("5", 32), failure("99", 256), failure("0", 0),
                      failure("1", -5), failure("\"noon\"", 9), R"({"name":"[OutOfMemory]","ts":1})"});
  EXPECT_EQ(told(trace), "!32 a1 !64 a2 !128 !256");
  EXPECT_EQ(trace.notes.front(), "4 requests ran out of memory in the recording");
  EXPECT_EQ(with({failure("15", 64)}).notes.front(), "1 request ran out of memory in the recording");
  // One that could not be counted is no request, but is told.
  const Trace huge =
      with({failure("15", 9223372036854775807), failure("30", static_cast<std::int64_t>(kMostOfABlock))});
  EXPECT_EQ(told(huge), "a1 a2");
  EXPECT_EQ(huge.notes.front(), "2 requests ran out of memory in the recording");
  EXPECT_EQ(told(with({failure("30", static_cast<std::int64_t>(kMostOfABlock) - 3)})),
            fmt::format("a1 a2 !{}", kMostOfABlock - 3));
}

TEST(ProfilerSeeds, AreWhatIsFreedFirstAndTheRestOfTheFirstTotal) {
  const auto total = [](std::int64_t bytes) { return fmt::format(R"("Total Allocated":{})", bytes); };
  const std::string kFreed =
      "1 block of 512 B lived before the recording began; they are known from their frees, and "
      "the replay allocates them first";
  const Trace freed = read_one(list_of({instant("1", 16, 64), instant("2", 32, -512), instant("3", 16, -64)}));
  EXPECT_EQ(told(freed), "a512 m:recording starts a64 f512 f64");
  EXPECT_EQ(freed.notes.front(), kFreed);
  EXPECT_EQ(freed.facts.seeded_blocks, 1U);
  EXPECT_EQ(freed.facts.seeded_bytes, 512U);
  // The first event's total, without that event, is what lived before.
  const auto rest = [&](std::int64_t first_total) {
    return read_one(list_of({instant("1", 16, 64, total(first_total)), instant("2", 32, -512)}));
  };
  for (const std::int64_t none : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{64}, std::int64_t{64 + 512}}) {
    EXPECT_EQ(told(rest(none)), "a512 m:recording starts a64 f512") << none;
    EXPECT_EQ(rest(none).facts.unplaced_bytes, 0U);
  }
  EXPECT_EQ(told(rest(64 + 513)), "a512 a1 m:recording starts a64 f512");
  EXPECT_EQ(rest(64 + 513).facts.unplaced_bytes, 1U);
  EXPECT_EQ(rest(64 + 513).facts.seeded_blocks, 2U);
  EXPECT_EQ(rest(64 + 513).notes.front(),
            "1 B lived before the recording and are never freed in it; only their sum is known, and the replay "
            "allocates it first as one block");
  EXPECT_EQ(rest(64 + 513).notes[1], kFreed);
  const auto most = static_cast<std::int64_t>(kMostOfABlock);
  const auto short_of_most = [&](std::int64_t missing) {
    return told_of({instant("1", 16, 1, total(1 + most - missing)), instant("2", 32, -512)});
  };
  EXPECT_EQ(short_of_most(1), fmt::format("a512 a{} m:recording starts a1 f512", kMostOfABlock - 513));
  EXPECT_EQ(short_of_most(0), "a512 m:recording starts a1 f512") << "no such sum";
}

TEST(ProfilerSeeds, AndWhatIsTakenAreNoMoreThan2To62Together) {
  const auto most = static_cast<std::int64_t>(kMostOfABlock);
  EXPECT_EQ(refusal_of(list_of({instant("1", 16, most), instant("2", 32, 1)})), "file: the live bytes exceed 2^62");
}

TEST(ProfilerContradictions, AreCountedAndPutRight) {
  const Trace twice = read_one(list_of({instant("1", 16, 64), instant("2", 16, 128), instant("3", 16, -128)}));
  EXPECT_EQ(told(twice), "a64 f64 a128 f128") << "what was there is freed";
  EXPECT_EQ(twice.notes.front(),
            "1 event contradicts the ones before (allocated twice or freed twice) and was put right");
  const Trace freed_twice =
      read_one(list_of({instant("1", 16, 64), instant("2", 16, -64), instant("3", 16, -64), instant("4", 16, -64)}));
  EXPECT_EQ(told(freed_twice), "a64 f64");
  EXPECT_EQ(freed_twice.notes.front(),
            "2 events contradict the ones before (allocated twice or freed twice) and were put right");
  EXPECT_EQ(told_of({instant("1", 16, 64), instant("2", 16, -8), instant("3", 16, 32)}), "a64 f64 a32")
      << "freed as it was taken, whatever size the free says";
}

TEST(ProfilerTotals, ThatDisagreeAreCountedAndReservedOnesAreTheRecordings) {
  const auto with = [](const char* time, std::uint64_t address, int bytes, int allocated, int reserved) {
    return instant(time, address, bytes,
                   fmt::format(R"("Total Allocated":{},"Total Reserved":{})", allocated, reserved));
  };
  const Trace agrees = read_one(list_of({with("1", 16, 64, 64, 4096), with("2", 16, -64, 0, 2048)}));
  ASSERT_TRUE(agrees.recorded);
  EXPECT_EQ(agrees.recorded->peak_reserved_bytes, 4096U);
  EXPECT_EQ(agrees.recorded->reserved_bytes, 2048U);
  EXPECT_FALSE(agrees.recorded->has_device_calls);
  EXPECT_THAT(agrees.notes, IsEmpty());
  const Trace differs = read_one(list_of(
      {with("1", 16, 64, 64, 4096), with("2", 32, 64, 129, -1), with("3", 16, -64, -1, 0), with("4", 32, -64, 1, 0)}));
  EXPECT_THAT(differs.notes, ElementsAre("2 of 4 events disagree with the recorded running total of allocated bytes"));
  EXPECT_EQ(differs.recorded->reserved_bytes, 0U) << "not told at the end";
  EXPECT_EQ(differs.recorded->peak_reserved_bytes, 4096U);
  EXPECT_FALSE(read_one(list_of({with("1", 16, 64, 64, 0)})).recorded) << "no reserved memory is told of";
  EXPECT_EQ(read_one(list_of({with("1", 16, 64, 64, 1)})).recorded->peak_reserved_bytes, 1U);
}

TEST(ProfilerFiles, SayWhereTheyAreBrokenAndWhatIsMissing) {
  EXPECT_EQ(refusal_of("[{\"name\":}]"),
            "file: byte 9: invalid JSON: parse error at line 1, column 10: syntax error "
            "while parsing value - unexpected '}'; expected '[', '{', or a literal");
  EXPECT_EQ(refusal_of(R"({"traceEvents":[]})"),
            "file: no [memory] events in this JSON; record with torch.profiler.profile(profile_memory=True). What "
            "`tenon replay` and `tenon bench` print is read by `tenon compare`");
}

}  // namespace
}  // namespace tenon::replay
