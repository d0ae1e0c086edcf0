// What is added up and said of blocks while a program runs: by whom they are held, how often they are used, and what a
// call or a crash is called.
// Long: attribution, uses and words share what a program does meanwhile.
#include <tenon/core/scope/scope.h>
#include <tenon/memory/available_bytes.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/watch/attribution.h>
#include <tenon/memory/watch/call.h>
#include <tenon/memory/watch/crash_text.h>
#include <tenon/memory/watch/step_uses.h>
#include <tenon/memory/watch/watched_allocator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace tenon::memory {
namespace {

using scopes::Kind;
using scopes::Phase;
using scopes::Scope;
using ::testing::ElementsAre;

// ---- attribution

struct Row {
  std::size_t bytes = 0, blocks = 0;
  bool operator==(const Row&) const = default;
};
/// "module/operator/phase/purpose" to bytes and blocks.
using Rows = std::map<std::string, Row>;

std::string name_of_row(const AttributedBytes& row) {
  return row.module + "/" + row.operator_name + "/" + row.phase + "/" + std::string(name_of(row.purpose));
}

Rows rows_of(const std::vector<AttributedBytes>& list) {
  Rows rows;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) {
      EXPECT_GE(list[i - 1].bytes, list[i].bytes) << "the largest first";
    }
    EXPECT_TRUE(rows.emplace(name_of_row(list[i]), Row{list[i].bytes, list[i].blocks}).second) << "one row each";
  }
  return rows;
}

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.bytes << " in " << row.blocks; }

TEST(AttributionModel, LiveAndPeakRowsAreTheSumsOfTheirBlocks) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    AddressOnlySource source;
    const auto stack = test::make_stack(source);
    const Block before = stack->allocate({.bytes = 5000, .purpose = Purpose::kParameter});
    Attribution attribution(*stack, stack->stats());
    struct Live {
      Block block;
      std::string place;
    };
    std::vector<Live> live;
    const std::string outside = "//other/parameter";
    std::size_t most = 5000, sum = 5000;
    Rows now{{outside, {5000, 0}}}, peak = now;
    const auto change = [&](const std::string& place, std::size_t bytes, bool comes) {
      Row& row = now[place];
      comes ? row.bytes += bytes : row.bytes -= bytes;
      comes ? ++row.blocks : --row.blocks;
      if (row == Row{}) now.erase(place);
      comes ? sum += bytes : sum -= bytes;
    };
    for (int step = 0; step < 150; ++step) {
      if (random() % 5 < 2 && !live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        change(live.back().place, live.back().block.request.bytes, false);
        stack->deallocate(live.back().block);
        live.pop_back();
      } else {
        const auto phase = static_cast<Phase>(random() % scopes::kPhaseCount);
        const std::string module = "net.layer" + std::to_string(random() % 3),
                          name = random() % 2 == 0 ? "linear" : "relu";
        const Scope in_phase(phase);
        Scope in_module;
        in_module.enter({.kind = Kind::kModule, .name = module.c_str()}, "Layer");
        const Scope in_operator(Kind::kOperator, name.c_str());
        const auto purpose = static_cast<Purpose>(random() % kPurposeCount);
        const Block block = stack->allocate({.bytes = 1 + random() % 3000, .purpose = purpose});
        live.push_back(
            {block, module + "/" + name + "/" + scopes::name_of(phase) + "/" + std::string(name_of(purpose))});
        change(live.back().place, block.request.bytes, true);
        if (sum > most) most = sum, peak = now;
      }
      attribution.check(stack->stats(), "step");
      const AttributionReport report = attribution.report();
      ASSERT_EQ(report.disagreement, "");
      EXPECT_EQ(report.checks, static_cast<std::uint64_t>(step + 1));
      EXPECT_EQ(report.live_bytes, sum);
      EXPECT_EQ(report.peak_bytes, most);
      EXPECT_EQ(rows_of(report.live), now);
      EXPECT_EQ(rows_of(report.peak), peak);
    }
    for (const Live& one : live) stack->deallocate(one.block);
    stack->deallocate(before);
    EXPECT_EQ(rows_of(attribution.report().live), Rows());
    EXPECT_EQ(attribution.report().live_bytes, 0u);
  }
}

TEST(AttributionRules, ADisagreementNamesItsFirstPurposeAndStays) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  Attribution attribution(*stack, stack->stats());
  const Block block = stack->allocate({.bytes = 100, .purpose = Purpose::kData});
  MemoryStats stats = stack->stats();
  attribution.check(stats, "before");
  EXPECT_EQ(attribution.report().disagreement, "");
  stats.requested_by_purpose[static_cast<std::size_t>(Purpose::kData)].current = 99;
  attribution.check(stats, "step 1");
  EXPECT_EQ(attribution.report().disagreement, "step 1: 100 bytes of data are attributed, and the allocator has 99");
  attribution.check(stack->stats(), "step 2");
  EXPECT_EQ(attribution.report().checks, 3u);
  EXPECT_EQ(attribution.report().disagreement, "step 1: 100 bytes of data are attributed, and the allocator has 99");
  Attribution other(*stack, stack->stats());
  stats = stack->stats();
  stats.requested_bytes.current = 101;
  other.check(stats, "then");
  EXPECT_EQ(other.report().disagreement, "then: 100 bytes are attributed, and the allocator has 101");
  stack->deallocate(block);
}

TEST(AttributionRules, AnOverAlignedBlockCountsAsTheAllocatorCountsIt) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const Request request{.bytes = 1000, .alignment = 4 * kMaxAlignment};
  const Block older = stack->allocate(request);
  Attribution attribution(*stack, stack->stats());
  const Block block = stack->allocate(request);
  attribution.check(stack->stats(), "both");
  EXPECT_EQ(attribution.report().live_bytes, static_cast<std::size_t>(stack->stats().requested_bytes.current));
  stack->deallocate(older);
  stack->deallocate(block);
  attribution.check(stack->stats(), "none");
  EXPECT_EQ(attribution.report().disagreement, "");
  EXPECT_EQ(attribution.report().live_bytes, 0U);
}

TEST(AttributionRules, ABlockIsItsOwnersWhereverAndForWhatItWasMade) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const Block older = stack->allocate({.bytes = 300, .purpose = Purpose::kParameter});
  Attribution attribution(*stack, stack->stats());
  std::vector<Block> blocks;
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    blocks.push_back(
        stack->allocate({.bytes = 100 + static_cast<std::size_t>(purpose), .purpose = static_cast<Purpose>(purpose)}));
    attribution.own(blocks.back().data, {.root = "", .path = "mine"});
  }
  Rows wanted{{"//other/parameter", {300, 0}}};
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    wanted["mine//other/" + std::string(name_of(static_cast<Purpose>(purpose)))] = {
        100 + static_cast<std::size_t>(purpose), 1};
  }
  EXPECT_EQ(rows_of(attribution.report().live), wanted);
  // One that was there before is known by its bytes and purpose, as far as there are so many without an owner.
  attribution.own(older.data, {.root = "", .path = "too much"}, 301, Purpose::kParameter);
  attribution.own(older.data, {.root = "", .path = "nothing"}, 0, Purpose::kParameter);
  attribution.own(older.data, {.root = "", .path = "another purpose"}, 300, Purpose::kActivation);
  EXPECT_EQ(rows_of(attribution.report().live), wanted);
  attribution.own(older.data, {.root = "", .path = "older"}, 300, Purpose::kParameter);
  wanted.erase("//other/parameter");
  wanted["older//other/parameter"] = {300, 1};
  EXPECT_EQ(rows_of(attribution.report().live), wanted);
  EXPECT_EQ(rows_of(attribution.report().peak), wanted);
  stack->deallocate(older);
  wanted.erase("older//other/parameter");
  EXPECT_EQ(rows_of(attribution.report().live), wanted);
  for (const Block& block : blocks) stack->deallocate(block);
}

TEST(AttributionRules, APhaseIsThatOfItsStepsInWhichItReachedMost) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  Attribution attribution(*stack, stack->stats());
  const Block kept = stack->allocate({.bytes = 10});
  const auto step = [&](int number, std::size_t first, std::size_t second) {
    scopes::tell_marked("step " + std::to_string(number));
    const Scope forward(Phase::kForward);
    const Block one = stack->allocate({.bytes = first});
    stack->deallocate(one);
    const Scope in_operator(Kind::kOperator, "linear");
    stack->deallocate(stack->allocate({.bytes = second}));
  };
  step(1, 100, 200);
  step(2, 500, 300);
  step(3, 400, 450);
  const AttributionReport report = attribution.report();
  ASSERT_EQ(report.phases.size(), 1u);
  const PhaseMemory& forward = report.phases[0];
  EXPECT_EQ(forward.phase, "forward");
  EXPECT_EQ(forward.times, 3u);
  EXPECT_EQ(forward.before_bytes, 10u);
  EXPECT_EQ(forward.peak_bytes, 510u);
  EXPECT_EQ(forward.after_bytes, 10u);
  EXPECT_EQ(forward.mark, "step 2");
  EXPECT_EQ(forward.peak_at, "forward");
  EXPECT_EQ(forward.peak_request_bytes, 500u);
  EXPECT_EQ(report.peak_mark, "step 2");
  EXPECT_EQ(report.peak_at, "forward");
  EXPECT_EQ(report.peak_request_bytes, 500u);
  stack->deallocate(kept);
}

TEST(AttributionRules, WhatWasThereBeforeIsOfItsPurposeAloneUntilItGoes) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const Block first = stack->allocate({.bytes = 70, .purpose = Purpose::kData});
  const Block second = stack->allocate({.bytes = 30, .purpose = Purpose::kData});
  const Attribution attribution(*stack, stack->stats());
  EXPECT_EQ(rows_of(attribution.report().live), (Rows{{"//other/data", {100, 0}}}));
  stack->deallocate(first);
  EXPECT_EQ(rows_of(attribution.report().live), (Rows{{"//other/data", {30, 0}}}));
  EXPECT_EQ(attribution.report().live_bytes, 30u);
  stack->deallocate(second);
  EXPECT_EQ(rows_of(attribution.report().live), Rows());
  EXPECT_EQ(attribution.report().live_bytes, 0u);
}

TEST(AttributionRules, OfPhasesWithinEachOtherTheLastEntersAndEndsFirstOnItsThread) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const Attribution attribution(*stack, stack->stats());
  const auto take = [&](std::size_t bytes) { stack->deallocate(stack->allocate({.bytes = bytes})); };
  {
    const Scope forward(Phase::kForward);
    take(100);
    std::thread([&] {
      const Scope of_another_thread(Phase::kOptimizer);
      take(200);
    }).join();
    {
      const Scope backward(Phase::kBackward);
      take(300);
    }
    take(250);
  }
  std::map<std::string, std::size_t> peaks;
  for (const PhaseMemory& phase : attribution.report().phases) {
    peaks[phase.phase] = phase.peak_bytes;
    EXPECT_EQ(phase.times, 1u);
  }
  EXPECT_EQ(peaks, (std::map<std::string, std::size_t>{{"forward", 300}, {"backward", 300}, {"optimizer", 200}}));
}

TEST(AttributionRules, WhatAStepMadeForItselfAndLeftIsHeldOver) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  Attribution attribution(*stack, stack->stats());
  std::vector<Block> blocks;
  const auto make = [&](Purpose purpose) {
    blocks.push_back(stack->allocate({.bytes = 100 + blocks.size(), .purpose = purpose}));
  };
  make(Purpose::kActivation);  // before the first step
  scopes::tell_marked("step 1");
  Rows wanted;
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    const auto which = static_cast<Purpose>(purpose);
    if (which == Purpose::kGradient || which == Purpose::kActivation || which == Purpose::kWorkspace)
      wanted["//other/" + std::string(name_of(which))] = {100 + blocks.size(), 1};
    make(which);
  }
  EXPECT_EQ(rows_of(attribution.report().held_over), Rows()) << "the step is under way";
  scopes::tell_marked("step 2");
  make(Purpose::kActivation);
  EXPECT_EQ(rows_of(attribution.report().held_over), wanted);
  for (const Block& block : blocks) stack->deallocate(block);
}

TEST(AttributionRules, OtherAllocatorsBlocksAreNoneOfItsBusiness) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source), other = test::make_stack(source);
  Attribution attribution(*stack, stack->stats());
  const Block block = other->allocate({.bytes = 100});
  EXPECT_EQ(attribution.report().live_bytes, 0u);
  other->deallocate(block);
  EXPECT_EQ(attribution.report().live_bytes, 0u);
}

TEST(AttributionRules, AtAFailureAPinIsKnownByItsBlockAndTheLargestComesFirst) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  Attribution attribution(*stack, stack->stats());
  const Block small = stack->allocate({.bytes = 100, .purpose = Purpose::kData});
  const Block large = stack->allocate({.bytes = 700, .purpose = Purpose::kGradient});
  const Segment segment{{.address = small.data, .bytes = 4096},
                        {{1, 512, 0, BlockState::kFree, 0},
                         {small.data, 512, 100, BlockState::kActive, 0},
                         {77, 512, 100, BlockState::kActive, 0},
                         {3, 1024, 0, BlockState::kFree, 0},
                         {large.data, 1024, 700, BlockState::kActive, 0},
                         {5, 1024, 0, BlockState::kFree, 0},
                         {6, 512, 0, BlockState::kAwaitingStream, 0}}};
  const AttributionReport report =
      attribution.report_at_failure({segment}, 4600, [](const void*) { return std::string("here"); });
  EXPECT_EQ(report.failed_bytes, 4600u);
  EXPECT_EQ(report.hole_bytes, 4608u);
  EXPECT_EQ(report.hole_free_bytes, 2560u);
  EXPECT_EQ(report.awaiting_bytes, 512u);
  ASSERT_EQ(report.pins.size(), 3u);
  EXPECT_EQ(report.pins[0].bytes, 1024u);
  EXPECT_EQ(report.pins[0].whose.bytes, 700u);
  EXPECT_EQ(report.pins[0].whose.blocks, 1u);
  EXPECT_EQ(report.pins[0].whose.purpose, Purpose::kGradient);
  EXPECT_EQ(report.pins[0].whose.site, "here");
  EXPECT_EQ(report.pins[2].whose.bytes, 0u) << "whose it is nobody knows";
  EXPECT_FALSE(report.are_uses_told);
  ASSERT_EQ(report.live.size(), 2u);
  EXPECT_EQ(report.live[0].bytes, 700u);
  EXPECT_EQ(report.live[0].site, "here");
  stack->deallocate(small);
  stack->deallocate(large);
}

TEST(AttributionRules, ABlockIsIdleOnceSixteenOperatorsHaveBegunSinceItsLastUse) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  for (const bool is_used_again : {false, true})
    for (const int operators : {15, 16, 17}) {
      Attribution attribution(*stack, stack->stats());
      const auto step = [&](int others, bool uses_again) {
        scopes::tell_marked("a step");
        const Scope forward(Phase::kForward);
        Block block;
        {
          const Scope in_operator(Kind::kOperator, "make");
          block = stack->allocate({.bytes = 100, .purpose = Purpose::kActivation});
        }
        for (int i = 0; i < others; ++i) const Scope other(Kind::kOperator, "other");
        if (uses_again) {
          const Scope in_operator(Kind::kOperator, "use");
          attribution.used(block.data);
        }
        return block;
      };
      stack->deallocate(step(1, is_used_again));
      const Block block = step(operators, false);
      const KeptBlocks nothing, all{block.data};
      const AttributionReport report = attribution.report_at_failure({}, 1, {}, &nothing);
      const bool is_idle = operators >= 16 && !is_used_again;
      EXPECT_TRUE(report.are_uses_told);
      EXPECT_EQ(report.step_operators, static_cast<std::uint64_t>(operators + 1));
      ASSERT_EQ(report.idle.size(), is_idle ? 1u : 0u) << operators << ", " << is_used_again;
      EXPECT_TRUE(attribution.report_at_failure({}, 1, {}, &all).idle.empty()) << "something keeps it";
      if (is_idle) {
        EXPECT_EQ(report.idle[0].operators_ago, static_cast<std::uint64_t>(operators));
        EXPECT_EQ(report.idle[0].last_use, "forward > make");
        EXPECT_TRUE(report.idle[0].is_known);
        EXPECT_EQ(report.idle[0].whose.bytes, 100u);
        EXPECT_EQ(report.idle[0].whose.blocks, 1u);
      }
      stack->deallocate(block);
    }
}

// ---- uses of a step

TEST(StepUsesModel, AreComparedWithTheSameBlockOfTheStepBefore) {
  std::mt19937_64 random(8);
  StepUses uses;
  using Key = std::tuple<scopes::ContextId, Purpose, std::size_t, std::uint32_t>;
  std::map<Key, std::int64_t> before, now;
  for (int step = 0; step < 30; ++step) {
    std::map<std::tuple<scopes::ContextId, Purpose, std::size_t>, std::uint32_t> made;
    std::vector<StepUses::Name> names;
    for (int i = 0; i < 40; ++i) {
      const auto context = static_cast<scopes::ContextId>(random() % 3);
      const auto purpose = static_cast<Purpose>(random() % 2);
      const std::size_t bytes = 64 << (random() % 2);
      const StepUses::Name name = uses.next(context, purpose, bytes);
      EXPECT_EQ(name.which, ++made[std::tuple(context, purpose, bytes)]);
      names.push_back(name);
      now[{name.context, name.purpose, name.bytes, name.which}];
      const StepUses::Name& used = names[random() % names.size()];
      const Key key{used.context, used.purpose, used.bytes, used.which};
      if (random() % 2 == 0) uses.used(used), ++now[key];
      const auto to_come = uses.uses_to_come(used);
      EXPECT_EQ(to_come.has_value(), before.contains(key));
      if (to_come) {
        EXPECT_EQ(*to_come, before[key] - (now.contains(key) ? now[key] : 0));
      }
    }
    uses.begin_step();
    before = std::move(now);
    now.clear();
  }
}

// ---- what is left

TEST(AvailableBytes, AreWhatTheDeviceAndTheLimitLeave) {
  for (const std::size_t limit : {0, 1, 100, 1000})
    for (const std::size_t reserved : {0, 99, 100, 101})
      for (const std::size_t left : {0, 50, 5000})
        for (const std::size_t capacity : {0, 6000}) {
          const std::size_t under_limit = limit > reserved ? limit - reserved : 0;
          const bool is_unknown = left == 0 && capacity == 0;
          EXPECT_EQ(available_bytes({.reserved_bytes = reserved,
                                     .device_free_bytes = left,
                                     .capacity_bytes = capacity,
                                     .limit_bytes = limit}),
                    limit == 0   ? left
                    : is_unknown ? under_limit
                                 : std::min(left, under_limit));
        }
}

// ---- words

TEST(CallTexts, OfEveryCallHaveItsNameAndArguments) {
  const CallFacts facts{.alignment = 64, .bytes = 4096, .stream = 3, .address = 0xabc0};
  const std::string texts[] = {"the constructor",
                               "allocate(4096 bytes, alignment 64, stream 3)",
                               "deallocate(0xabc0, last used on stream 3)",
                               "record_use(0xabc0, stream 3)",
                               "trim(4096)",
                               "complete()",
                               "walk()",
                               "report()",
                               "reset_stats()",
                               "check_invariants()",
                               "the destructor"};
  for (int call = 0; call <= static_cast<int>(Call::kDestroy); ++call) {
    CallFacts its = facts;
    its.call = static_cast<Call>(call);
    EXPECT_EQ(text_of(its), texts[call]);
    EXPECT_EQ(name_of(its.call), texts[call].substr(0, texts[call].find('(')));
  }
}

TEST(RequestDifferences, NameTheFirstFieldThatDiffers) {
  const Request asked{.bytes = 10, .alignment = 64, .stream = {1}, .purpose = Purpose::kData, .label = 2, .pool = 3};
  const auto differs = [&](const auto& change) {
    Request is = asked;
    change(is);
    return request_differs(is, asked);
  };
  const auto words = [](const std::string& field, int is, int was) {
    return "the block says request." + field + " = " + std::to_string(is) + ", the request had " + std::to_string(was) +
           ": allocate() fills in Block::request";
  };
  EXPECT_EQ(differs([](Request&) {}), "");
  EXPECT_EQ(differs([](Request& r) { r.bytes = 11; }), words("bytes", 11, 10));
  EXPECT_EQ(differs([](Request& r) { r.stream = {4}; }), words("stream", 4, 1));
  EXPECT_EQ(differs([](Request& r) { r.alignment = 128; }), words("alignment", 128, 64));
  EXPECT_EQ(differs([](Request& r) { r.purpose = Purpose::kOther; }),
            words("purpose", 0, static_cast<int>(Purpose::kData)));
  EXPECT_EQ(differs([](Request& r) { r.label = 0; }), words("label", 0, 2));
  EXPECT_EQ(differs([](Request& r) { r.pool = 0; }), words("pool", 0, 3));
}

/// A note of a process that has named these frames, from the innermost on.
std::unique_ptr<CrashNote> note_of(const std::vector<NamedFrame>& frames) {
  auto note = std::make_unique<CrashNote>();
  for (std::size_t i = 0; i < frames.size(); ++i) note->named[i] = frames[i];
  note->named_count = static_cast<int>(frames.size());
  return note;
}

NamedFrame frame(const char* function, const char* module, const char* file = "", std::uint32_t line = 0) {
  NamedFrame made{};
  std::strncpy(made.function, function, sizeof made.function - 1);
  std::strncpy(made.module, module, sizeof made.module - 1);
  std::strncpy(made.file, file, sizeof made.file - 1);
  made.line = line;
  return made;
}

TEST(CrashStacks, BeginBehindTheHandlerAndEndBeforeTheHost) {
  for (const char* of_handler :
       {"told_of_exit()", "ExitWatch", "x::tell(int)", "on_crash", "on_terminate", "__restore_rt"}) {
    const auto note = note_of({frame(of_handler, "libtenon.so"), frame("raise", "libc.so.6"),
                               frame("mine", "mine.so", "mine.cpp", 42), frame("mine", "mine.so", "mine.cpp", 42),
                               frame("mine", "mine.so", "mine.cpp", 43), frame("", "mine.so"),
                               frame("tenon::AllocatorStack::allocate", "libtenon.so"), frame("main", "program")});
    EXPECT_THAT(crash_stack(*note), ElementsAre("mine (mine.so) at mine.cpp:42  (2 times)",
                                                "mine (mine.so) at mine.cpp:43", "?? (mine.so)"))
        << of_handler;
    EXPECT_THAT(crash_stack(*note, 1), ElementsAre("mine (mine.so) at mine.cpp:42  (2 times)"));
    EXPECT_EQ(crash_stack_text(*note),
              "\n  where it was:\n    mine (mine.so) at mine.cpp:42  (2 times)\n    mine (mine.so) at mine.cpp:43\n    "
              "?? (mine.so)");
  }
  for (const char* module : {"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0"})
    EXPECT_THAT(crash_stack(*note_of({frame("f", module), frame("mine", "mine.so")})), ElementsAre("mine (mine.so)"))
        << module;
  for (const char* host : {"tenon::WatchedAllocator::allocate", "tenon::AllocatorStack::trim"})
    EXPECT_THAT(crash_stack(*note_of({frame("mine", "mine.so"), frame(host, "x")})), ElementsAre("mine (mine.so)"))
        << host;
  EXPECT_EQ(crash_stack_text(std::vector<std::string>{}), "");
}

TEST(CrashCauses, SayTheSignalTheAddressAndTheWords) {
  CrashNote note{};
  EXPECT_EQ(crash_cause(note, SIGABRT), "SIGABRT (Aborted)");
  EXPECT_EQ(crash_cause(note, SIGKILL), "SIGKILL (Killed); the system may have run out of memory");
  note.fault_address = 0x10;
  EXPECT_EQ(crash_cause(note, SIGSEGV), "SIGSEGV (Segmentation fault) at address 0x10");
  std::strcpy(note.words, "what it said");
  EXPECT_EQ(crash_cause(note, SIGBUS), "SIGBUS (Bus error) at address 0x10: what it said");
  for (const int frames : {CrashNote::kMostFrames - 2, CrashNote::kMostFrames - 1, CrashNote::kMostFrames}) {
    note.frame_count = frames;
    EXPECT_EQ(is_endless_recursion(note, SIGSEGV), frames >= CrashNote::kMostFrames - 1);
    EXPECT_FALSE(is_endless_recursion(note, SIGBUS));
  }
  EXPECT_EQ(crash_cause(note, SIGSEGV),
            "SIGSEGV (Segmentation fault), the stack is full: endless recursion? at address 0x10: what it said");
}

}  // namespace
}  // namespace tenon::memory
