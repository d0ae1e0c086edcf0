// The pickle machine: data of every kind, nothing that runs, memory bounded.
#include "replay/support.h"

#include <tenon/replay/formats/pytorch/pickle/pickle.h>

namespace tenon::replay {
namespace {

using Kind = PickleValue::Kind;

std::string bytes(std::initializer_list<int> list) {
  std::string text;
  for (const int byte : list) text.push_back(static_cast<char>(byte));
  return text;
}

Pickle load(const std::string& text) {
  InputFile input("file", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return Pickle(input);
}

std::string refusal(const std::string& text) {
  try {
    load(text);
  } catch (const TraceError& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

const std::string kProto = bytes({0x80, 4});

TEST(PickleMachine, ReadsIntegersOfEveryWidth) {
  const auto value = [](const std::string& body) {
    const Pickle pickle = load(kProto + body + ".");
    bool ok = false;
    const std::uint64_t number = pickle.unsigned_int(pickle.root(), ok);
    return ok ? static_cast<__int128>(number) : static_cast<__int128>(-1);
  };
  EXPECT_TRUE(value(bytes({'K', 255})) == 255);
  EXPECT_TRUE(value(bytes({'M', 1, 1})) == 257);
  EXPECT_TRUE(value(bytes({'J', 0, 0, 0, 0x40})) == 0x40000000);
  EXPECT_TRUE(value(bytes({0x8a, 6, 0, 0, 0, 0, 0, 0x7f})) == static_cast<__int128>(0x7f0000000000));
  EXPECT_TRUE(value(bytes({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0x80, 0})) == static_cast<__int128>(1) << 63)
      << "2^63 takes nine bytes";
  EXPECT_TRUE(value(bytes({0x8a, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})) == -1)
      << "negative is no unsigned number";
  EXPECT_TRUE(value(bytes({0x8a, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0})) == -1) << "2^64 does not fit";
  EXPECT_TRUE(value(bytes({0x8a, 0})) == 0);
}

TEST(PickleMachine, ReadsNegativeNumbers) {
  const Pickle pickle = load(kProto + bytes({'J', 0xff, 0xff, 0xff, 0xff}) + ".");
  bool ok = false;
  EXPECT_EQ(pickle.signed_int(pickle.root(), ok), -1);
  EXPECT_TRUE(ok);
}

TEST(PickleMachine, RefusesEveryOperatorThatCouldRunCodeWithItsOffset) {
  for (const std::string& op :
       {std::string("cos\nsystem\n"), bytes({0x93}), std::string("R"), std::string("b"), std::string("ios\nsystem\n"),
        std::string("o"), bytes({0x81}), bytes({0x92}), bytes({0x82, 1}), std::string("P1\n"), std::string("Q")}) {
    const std::string what = refusal(kProto + "N" + op + ".");
    EXPECT_NE(what.find("byte 3:"), std::string::npos) << what;
    EXPECT_NE(what.find("refused"), std::string::npos) << what;
  }
}

TEST(PickleMachine, RefusesAFileOfNothingButContainersOrNumbers) {
  EXPECT_NE(refusal(kProto + std::string(3'000'000, '}')).find("refused to keep memory bounded"), std::string::npos);
  std::string numbers = kProto;
  for (int i = 0; i < 3'000'000; ++i) numbers += "K1";
  EXPECT_NE(refusal(numbers).find("refused to keep memory bounded"), std::string::npos);
}

/// A program that has, where it is looked at, so many open containers; one more byte makes one more step.
std::string dense(std::size_t containers, std::size_t steps) {
  const std::string pad = "N0";  // pushed and popped
  std::string program(containers, '}');
  if ((steps - containers) % 2 == 1) program += bytes({0x94});  // memorized
  while (program.size() < steps) program += pad;
  return kProto + program + ".";
}

TEST(PickleMachine, AMebiOfContainersAndOneInEightBytesAreStillRead) {
  constexpr std::size_t kSteps = std::size_t{19} << 16;  // it is looked at every 2^16 steps
  constexpr std::size_t kMost = (std::size_t{1} << 20) + kSteps / 8;
  EXPECT_NO_THROW(load(dense(kMost, kSteps)));
  EXPECT_NE(refusal(dense(kMost + 1, kSteps)).find(std::to_string(kMost + 1) + " open values"), std::string::npos);
}

TEST(PickleMachine, RefusesMalformedPrograms) {
  EXPECT_NE(refusal("").find("truncated"), std::string::npos);
  EXPECT_NE(refusal(bytes({0x80, 1, 'N', '.'})).find("protocol 1"), std::string::npos);
  EXPECT_NE(refusal(bytes({0x80, 6, 'N', '.'})).find("protocol 6"), std::string::npos);
  EXPECT_NE(refusal(kProto + ".").find("empty stack"), std::string::npos);
  EXPECT_NE(refusal(kProto + "e.").find("no MARK"), std::string::npos);
  EXPECT_NE(refusal(kProto + "Na.").find("appends to nothing"), std::string::npos);
  EXPECT_NE(refusal(kProto + "NNa.").find("not a list"), std::string::npos);
  EXPECT_NE(refusal(kProto + "}(Nu.").find("a key without a value"), std::string::npos);
  EXPECT_NE(refusal(kProto + bytes({'h', 7, '.'})).find("memo entry 7 was never set"), std::string::npos);
  EXPECT_NE(refusal(kProto + bytes({'X', 0xff, 0xff, 0xff, 3})).find("truncated"), std::string::npos)
      << "a lying length";
  EXPECT_NE(refusal(kProto + bytes({0x8d, 0, 0, 0, 0, 0, 0, 1, 0})).find("a text of"), std::string::npos);
  EXPECT_NE(refusal(kProto + "N").find("truncated"), std::string::npos) << "no STOP";
  EXPECT_NE(refusal(kProto + bytes({0xee})).find("not one of pickle's"), std::string::npos);
}

TEST(PickleMachine, ToleratesWhatFollowsStop) {
  EXPECT_EQ(load(kProto + "N." + std::string(100, '\0')).root().kind(), Kind::kNone);
}

TEST(PickleMachine, SharesWhatTheMemoShares) {
  const Pickle pickle = load(kProto + bytes({']', 0x94, '(', ']', 0x94, 'h', 1, 'e', '.'}));
  std::vector<PickleValue> items;
  pickle.for_each(pickle.root(), [&](std::uint64_t, PickleValue value) { items.push_back(value); });
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0], items[1]);
}

TEST(PickleMachine, ABillionLaughsCostWhatTheirBytesCost) {
  // Thirty lists, each naming the one before ten times: 10^30 leaves if it were expanded.
  std::string program = kProto + "]" + bytes({0x94});
  for (int level = 0; level < 30; ++level) {
    program += "](";
    for (int i = 0; i < 10; ++i) program += bytes({'h', level});
    program += "e" + bytes({0x94});
  }
  const Pickle pickle = load(program + ".");
  EXPECT_EQ(pickle.node_count(), 31u);
  EXPECT_EQ(pickle.word_count(), 300u);
}

std::string short_text(const std::string& text) { return bytes({0x8c, static_cast<int>(text.size())}) + text; }

/// {"name": "f", "line": LINE}, memoised as picklers do it.
std::string frame(int line) {
  return "}" + bytes({0x94}) + "(" + short_text("name") + short_text("f") + short_text("line") + bytes({'K', line}) +
         "u";
}

TEST(PickleMachine, FramesThatAFileWritesOutForEveryEntryAreKeptOnce) {
  std::string program = kProto + "](";
  for (int entry = 0; entry < 10000; ++entry) {
    program += "]" + bytes({0x94}) + "(";
    for (int line = 0; line < 20; ++line) program += frame(line);
    program += "e";
  }
  const Pickle pickle = load(program + "e.");
  EXPECT_LT(pickle.node_count(), 100u);
  EXPECT_EQ(pickle.word_count(), 10000u + 10000u * 20 + 10000u * 40) << "what the file said counts for its budget";
  pickle.for_each(pickle.root(), [&](std::uint64_t, PickleValue stack) {
    ASSERT_EQ(pickle.size(stack), 20u);
    pickle.for_each(stack, [&](std::uint64_t i, PickleValue item) {
      bool ok = false;
      ASSERT_EQ(pickle.unsigned_int(pickle.get(item, "line"), ok), i);
    });
  });
}

TEST(PickleMachine, TheMemoFollowsWhatIsKeptOnce) {
  // [{f 1}, {f 1}, memo 2 (the second dict), {f 2}, memo 3 (the third)]
  const Pickle pickle = load(kProto + "]" + bytes({0x94}) + "(" + frame(1) + frame(1) + bytes({'h', 2}) + frame(2) +
                             bytes({'h', 3}) + "e.");
  std::vector<std::uint64_t> lines;
  pickle.for_each(pickle.root(), [&](std::uint64_t, PickleValue item) {
    bool ok = false;
    lines.push_back(pickle.unsigned_int(pickle.get(item, "line"), ok));
  });
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{1, 1, 1, 2, 2}));
}

TEST(PickleMachine, AListThatSomebodyElseHoldsAlreadyIsKeptThoughAnEqualOneIsThere) {
  // ([1, 2], memo 0, the same once more, which then becomes [1, 2], [7, 8])
  const Pickle pickle =
      load(kProto + "(](K\1K\2e]" + bytes({0x94, 'h', 0}) + "(K\1K\2e](" + bytes({'K', 7, 'K', 8}) + "et.");
  std::vector<std::uint64_t> firsts;
  pickle.for_each(pickle.root(), [&](std::uint64_t, PickleValue list) {
    bool ok = false;
    pickle.for_each(list, [&](std::uint64_t i, PickleValue item) {
      if (i == 0) firsts.push_back(pickle.unsigned_int(item, ok));
    });
  });
  EXPECT_EQ(firsts, (std::vector<std::uint64_t>{1, 1, 1, 7}));
}

TEST(PickleMachine, AListThatNamesItselfIsLeftAlone) {
  const Pickle pickle = load(kProto + "]" + bytes({0x94}) + "(" + bytes({'h', 0}) + "e.");
  EXPECT_EQ(pickle.size(pickle.root()), 1u);
}

TEST(PickleMachine, AddingToWhatEqualOnesStandForIsRefused) {
  EXPECT_NE(refusal(kProto + "](](K\1K\2eK\3ae.").find("was complete"), std::string::npos);
}

TEST(PickleMachine, NestsAMillionDeepWithoutAStack) {
  std::string program = kProto;
  for (int i = 0; i < 1000000; ++i) program += "]";
  for (int i = 0; i < 999999; ++i) program += "a";
  EXPECT_EQ(load(program + ".").node_count(), 1000000u);
}

TEST(PickleMachine, ASharedHistoryIsNotReadTwice) {
  // device_traces = [L, L, …]: a list of entries named over and over.
  std::string program = kProto + "}(" + bytes({0x8c, 13}) + "device_traces](";
  program += "](";
  for (int i = 0; i < 1000; ++i) program += "}(" + bytes({0x8c, 6}) + "action" + bytes({0x8c, 8}) + "snapshotu";
  program += "e" + bytes({0x94});
  for (int i = 0; i < 1000; ++i) program += bytes({'h', 0});
  program += "eu.";
  EXPECT_NE(refusal_of(program).find("over and over"), std::string::npos);
}

}  // namespace
}  // namespace tenon::replay
