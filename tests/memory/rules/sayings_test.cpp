// What is concluded and said of figures, names and strings: settings of PyTorch, growth, holes, call sites, advice
// where memory ran out. Recorded in sayings.txt; who changes one on purpose writes the table anew
// (support/recorded_table.h), with the filter Sayings*:PinnedHoles*.
// Long: one table for all that is said.
#include "support/recorded_table.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/history/call_site.h>
#include <tenon/memory/history/growth.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/history/pinned_hole.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/call_cost.h>
#include <tenon/memory/stack/oom.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace tenon {
namespace {

/// So many letters of it, and a number that tells it apart.
std::string shortened(const std::string& text, std::size_t letters) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return text.size() <= letters ? text : fmt::format("{:016x} {}", hash, text.substr(0, letters));
}

void expect_said(std::string what, std::string outcome) {
  static test::RecordedTable table("tests/memory/rules/sayings.txt");
  std::ranges::replace(outcome, '\n', '|');
  for (std::size_t at; (at = what.find(": ")) != std::string::npos;) what[at] = '=';
  table.expect(what, shortened(outcome, 90));
}

// ---- settings of PyTorch

std::string said_of_conf(const std::string& text, PytorchRelease release) {
  try {
    const PytorchConf conf = parse_pytorch_conf(text, release);
    std::string said = conf.allocator;
    for (const auto& [name, value] : conf.options) said += fmt::format(" {}={}", name, value);
    for (const std::string& key : conf.ignored) said += " without " + key;
    return said;
  } catch (const ConfigError& error) {
    return std::string("refused, ") + error.what();
  }
}

template <class Say>
std::string said_of(const Say& say) {
  try {
    return say();
  } catch (const ConfigError& error) {
    return std::string("refused, ") + error.what();
  }
}

// Long: the keys and values are listed.
TEST(Sayings, OfEverySettingOfPytorchWithValuesAtItsEdges) {
  const char* const keys[] = {"backend",
                              "expandable_segments",
                              "expandable_segments_reserve",
                              "expandable_segments_reserve_by_class",
                              "garbage_collection_threshold",
                              "graph_capture_record_stream_reuse",
                              "large_segment_size_mb",
                              "max_non_split_rounding_mb",
                              "max_split_size_mb",
                              "per_process_memory_fraction",
                              "pinned_free_catch_all",
                              "pinned_max_cached_size_mb",
                              "pinned_max_round_threshold_mb",
                              "pinned_num_register_threads",
                              "pinned_reserve_segment_size_mb",
                              "pinned_use_background_threads",
                              "pinned_use_cuda_host_register",
                              "release_lock_on_cudamalloc",
                              "release_lock_on_hipmalloc",
                              "roundup_power2_divisions",
                              "roundup_bypass_threshold_mb",
                              "throw_on_cudamalloc_oom",
                              "unknown"};
  const char* const values[] = {"",
                                "True",
                                "False",
                                "true",
                                "native",
                                "cudaMallocAsync",
                                "hipMallocAsync",
                                "other",
                                "-1",
                                "0",
                                "1",
                                "2",
                                "3",
                                "8",
                                "10",
                                "11",
                                "19",
                                "20",
                                "21",
                                "64",
                                "128",
                                "129",
                                "256",
                                "0.0",
                                "0.5",
                                "1.0",
                                "1.1",
                                "1e-3",
                                "nan",
                                "1.5G",
                                "2g",
                                "0G",
                                "G",
                                "1e12G",
                                "4294967295",
                                "4294967296",
                                "17592186044415",
                                "17592186044416",
                                "18446744073709551615",
                                "18446744073709551616",
                                "[64:8,256:4,>:2]",
                                "[1:1]",
                                "[3:4]",
                                "[32768:2,65536:4]",
                                "[>:8]",
                                "[64:3]",
                                "[64:0,>:1]",
                                "[64:8",
                                "[a:b]"};
  for (const char* key : keys)
    for (const PytorchRelease release : {PytorchRelease::kCurrent, PytorchRelease::k1_13}) {
      std::string all;
      for (const char* value : values) all += said_of_conf(fmt::format("{}:{}", key, value), release) + "; ";
      expect_said(fmt::format("values of {}{}", key, release == PytorchRelease::k1_13 ? " of 1.13" : ""), all);
    }
  for (const char* key : {"expandable_segments_reserve", "large_segment_size_mb", "max_split_size_mb"}) {
    std::string all;
    for (const char* value : values)
      all += said_of_conf(fmt::format("expandable_segments:True,{}:{}", key, value), PytorchRelease::kCurrent) + "; ";
    expect_said(fmt::format("values of {} with expandable segments", key), all);
  }
  for (const char* text :
       {"", ",", ":", "a", "max_split_size_mb", "max_split_size_mb:64,", "max_split_size_mb:64,,backend:native",
        " max_split_size_mb : 64 , backend : native ", "max_split_size_mb:64 backend:native", "max_split_size_mb=64",
        "max_split_size_mb:64,max_split_size_mb:128", "large_segment_size_mb:40,max_split_size_mb:39",
        "max_split_size_mb:40,large_segment_size_mb:40", "expandable_segments:True,expandable_segments_reserve:0.5",
        "expandable_segments_reserve:0.5,expandable_segments:True",
        "expandable_segments:True,expandable_segments:False", "expandable_segments:True,expandable_segments_reserve:x",
        "garbage_collection_threshold:0.8\nbackend:native"})
    for (const PytorchRelease release : {PytorchRelease::kCurrent, PytorchRelease::k1_13}) {
      std::string name = text;
      std::ranges::replace(name, '\n', '|');
      expect_said(fmt::format("'{}'{}", name, release == PytorchRelease::k1_13 ? " of 1.13" : ""),
                  said_of_conf(text, release));
    }
  for (const char* option :
       {"max_split_size", "max_non_split_rounding", "large_segment_size", "garbage_collection_threshold",
        "roundup_power2_divisions", "per_process_memory_fraction", "throw_on_cudamalloc_oom",
        "expandable_segments_reserve", "roundup_bypass_threshold", "compat", "other"})
    for (const char* value : {"0", "1", "128MiB", "1GiB", "100KiB", "0.5", "true", "false", "[1:2,2:4]", "512B"})
      expect_said(fmt::format("back {} of {}", option, value),
                  said_of([&] { return setting_of_option(option, value); }));
  for (const char* text : {"",
                           "0",
                           "1",
                           "8",
                           "3",
                           "-1",
                           "[256:1,512:2,1024:4,>:8]",
                           "[1:2]",
                           "[32768:4]",
                           "[65536:4]",
                           "[131072:2,>:1]",
                           "x",
                           "[",
                           "[64:8",
                           "8,",
                           "8:",
                           "[>:8]",
                           "[64:0]",
                           "]",
                           "[64:8]x",
                           "[1:1,2:2,4:4,8:8,16:16]",
                           "[]"})
    expect_said(fmt::format("divisions '{}'", text), said_of([&] {
                  std::string all;
                  for (const std::uint32_t divisions : parse_roundup_divisions(text))
                    all += fmt::format("{} ", divisions);
                  return all;
                }));
  for (const char* line :
       {"export PYTORCH_ALLOC_CONF=a:1", "PYTORCH_HIP_ALLOC_CONF=a:1", "export  PYTORCH_ALLOC_CONF='a:1' # x",
        "PYTORCH_ALLOC_CONF=\"a:1", "PYTORCH_ALLOC_CONF=", "PYTORCH_ALLOC_CONF=a:1#b", "exportPYTORCH_ALLOC_CONF=a",
        "\tPYTORCH_CUDA_ALLOC_CONF=a:1\t", "PYTORCH_ALLOC_CONF=''", "a", ""})
    expect_said(fmt::format("line '{}'", line), conf_of_line(line));
}

// ---- growth

TEST(Sayings, OfSeriesThatGrowOrDoNot) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 220; ++i) {
    const std::size_t count = i % 11 == 0 ? 120 + random() % 300 : 3 + random() % 22;
    const std::uint64_t kind = random() % 6, size = 1000 + random() % 100'000;
    std::vector<std::uint64_t> levels, survivors;
    std::uint64_t level = 100'000;
    const std::uint64_t every = 1 + random() % 6, phase = random() % every, stop = count * (1 + random() % 4) / 4;
    for (std::size_t step = 0; step < count; ++step) {
      const bool adds = step % every == phase && step < stop;
      const std::uint64_t added = kind == 0 || !adds ? 0 : kind < 3 ? size : 1 + random() % size;
      level += added;
      survivors.push_back(kind == 5 && step + 3 < count ? 0 : added);
      levels.push_back(level + (kind == 4 ? random() % (4 * size) : kind == 3 ? (step % 2) * size : 0));
    }
    const auto text = [](const std::optional<double>& slope) { return slope ? fmt::format("{:.6g}", *slope) : "none"; };
    expect_said(fmt::format("series {}", i),
                text(growth_per_step(levels)) + ", with survivors " + text(growth_per_step(levels, survivors)));
  }
}

// ---- holes

/// All stretches of a segment without a gap in what is mapped that have no free block beside them and are a hole: from
/// one free block to another, or free by half. Tried one by one.
std::vector<PinnedHole> all_stretches(const std::vector<Segment>& segments) {
  std::vector<PinnedHole> all;
  for (const Segment& segment : segments)
    for (std::size_t first = 0; first < segment.blocks.size(); ++first)
      for (std::size_t last = first; last < segment.blocks.size(); ++last) {
        const auto blocks = std::span(segment.blocks).subspan(first, last - first + 1);
        const auto is_free = [](const BlockInfo& block) { return block.state == BlockState::kFree; };
        if (std::ranges::any_of(blocks, [](const BlockInfo& block) { return block.state == BlockState::kUnmapped; }))
          break;
        if (first > 0 && is_free(segment.blocks[first - 1])) continue;
        if (last + 1 < segment.blocks.size() && is_free(segment.blocks[last + 1])) continue;
        PinnedHole hole{.address = blocks.front().address};
        for (const BlockInfo& block : blocks) {
          hole.bytes += block.bytes;
          is_free(block) ? void(hole.free_bytes += block.bytes) : hole.pins.push_back(block);
        }
        if ((is_free(blocks.front()) && is_free(blocks.back())) || hole.free_bytes >= hole.bytes - hole.free_bytes)
          all.push_back(hole);
      }
  return all;
}

std::vector<Segment> drawn_segments(std::mt19937_64& random) {
  std::vector<Segment> segments(random() % 4);
  std::uint64_t address = 4096;
  for (Segment& segment : segments) {
    segment.address = address;
    for (std::uint64_t blocks = 1 + random() % 7; blocks > 0; --blocks) {
      const std::uint64_t bytes = 512 * (1 + random() % 6);
      segment.blocks.push_back(
          {address, bytes, bytes, static_cast<BlockState>(random() % 7 == 0 ? 3 : random() % 3), 0});
      address += bytes;
      segment.bytes += bytes;
    }
    address += 1 << 20;
  }
  return segments;
}

TEST(PinnedHoles, AreTheBestOfAllStretchesThatAreLongEnough) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(i);
    const std::vector<Segment> segments = drawn_segments(random);
    const std::size_t bytes = 512 * (1 + random() % 14);
    const PinnedHole hole = pinned_hole(segments, bytes);
    const auto rank = [](const PinnedHole& one) { return std::tuple(one.bytes - one.free_bytes, one.bytes); };
    std::optional<PinnedHole> best;
    for (const PinnedHole& one : all_stretches(segments))
      if (one.bytes >= bytes && (!best || rank(one) < rank(*best))) best = one;
    std::string text = fmt::format("{} from {}, {} free, {} pins", hole.bytes, static_cast<std::uint64_t>(hole.address),
                                   hole.free_bytes, hole.pins.size());
    for (const BlockInfo& pin : hole.pins) text += fmt::format(" {}", static_cast<std::uint64_t>(pin.address));
    expect_said(fmt::format("hole {} of {}", i, bytes), text);
    if (!best) {
      EXPECT_LT(hole.bytes, bytes) << "else it were one of them";
      EXPECT_GE(2 * hole.free_bytes, hole.bytes) << "full memory has no hole";
      continue;
    }
    EXPECT_EQ(rank(hole), rank(*best));
    EXPECT_EQ(hole.pins.size(), best->pins.size());
    std::size_t pinned = 0;
    for (const BlockInfo& pin : hole.pins) pinned += pin.bytes;
    EXPECT_EQ(pinned + hole.free_bytes, hole.bytes);
  }
}

// ---- call sites

TEST(Sayings, OfCallSites) {
  const StackFrame frames[] = {
      {"torch::autograd::generated::MmBackward0::apply(x)", "??", 0},
      {"at::_ops::mm::call(at::Tensor const&)", "/usr/lib/libtorch_cpu.so", 0},
      {"tenon::AllocatorStack::allocate(tenon::Request const&)", "/x/libtenon.so.1", 0},
      {"tenon::nn::LinearImpl::forward(tenon::Tensor)", "/x/libtenon.so.1", 12},
      {"void tenon::run<int>(int)", "tenon", 3},
      {"operator()", "/src/framework/tenon/ops/linalg/mm.cpp", 8},
      {"forward", "/project/net.py", 31},
      {"forward", "/usr/lib/python3/site-packages/torch/nn/modules/module.py", 1501},
      {"(anonymous namespace)::step(int, (anonymous namespace)::State&)", "/project/train.cpp", 77},
      {"Net::operator()(int)", "/project/net.cpp", 5},
      {"_PyEval_EvalFrame", "/build/Python/ceval.c", 1},
      {"std::function<void ()>::operator()() const", "/usr/include/c++/12/bits/std_function.h", 560},
      {"main", "/project/main.cpp", 9},
      {"__libc_start_main", "/csu/libc-start.c", 0},
      {"PyObject_Call", "/project/own.cpp", 4},
      {"tenon::train::Training::step()", "/opt/bin/tenon", 0},
      {"c10::CachingAllocator", "/a/c10/core/x.cpp", 2},
      {"train", "/project/Modules/train.py", 6}};
  const auto said = [](const std::vector<StackFrame>& stack) {
    std::string own;
    for (const std::size_t i : own_frames(stack)) own += fmt::format("{} ", i);
    return own + "| " + call_site(stack, false) + " | " + call_site(stack, true);
  };
  expect_said("no frames", said({}));
  for (std::size_t i = 0; i < std::size(frames); ++i) expect_said(fmt::format("frame {}", i), said({frames[i]}));
  std::mt19937_64 random(3);
  for (int i = 0; i < 80; ++i) {
    std::vector<StackFrame> stack;
    for (std::uint64_t count = 2 + random() % 8; count > 0; --count)
      stack.push_back(frames[random() % std::size(frames)]);
    expect_said(fmt::format("stack {}", i), said(stack));
  }
}

// ---- advice where memory ran out

TEST(Sayings, OfMemoryThatRanOut) {
  MemoryStats nothing, much;
  much.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].current = 3 << 20;
  much.requested_by_purpose[static_cast<std::size_t>(Purpose::kParameter)].current = 2 << 20;
  MemoryStats parameters;
  parameters.requested_by_purpose[static_cast<std::size_t>(Purpose::kParameter)].current = 5;
  int number = 0;
  for (const std::size_t limit : {std::size_t{0}, 30 * MiB, 200 * MiB})
    for (const std::size_t request : {1 * MiB, 40 * MiB, 130 * MiB})
      for (const std::size_t reserved : {20 * MiB, 90 * MiB})
        for (const std::size_t left : {std::size_t{0}, 2 * MiB, 50 * MiB}) {
          const OutOfMemoryInfo info{.requested_bytes = request,
                                     .allocated_bytes = 20 * MiB,
                                     .reserved_bytes = reserved,
                                     .device_free_bytes = left,
                                     .capacity_bytes = 128 * MiB,
                                     .limit_bytes = limit,
                                     .largest_free_bytes = reserved == 20 * MiB ? 0 : 10 * MiB};
          std::string said;
          for (const MemoryStats* stats : {&nothing, &much, &parameters})
            for (int circumstances = 0; circumstances < 8; ++circumstances)
              for (const std::size_t refused : {std::size_t{0}, left, left + 1}) {
                const std::string hint = oom_hint(info, {.stats = *stats,
                                                         .has_virtual_memory = (circumstances & 1) != 0,
                                                         .is_expandable = (circumstances & 2) != 0,
                                                         .splits_all_sizes = (circumstances & 4) != 0,
                                                         .refused_bytes = refused});
                if (said.find(hint) == std::string::npos || hint.empty()) said += hint + "; ";
              }
          said += oom_others(info, "") + "; " + oom_others(info, "process 1");
          // Long, and the same parts again and again: their number tells them apart.
          expect_said(fmt::format("out of memory {}", ++number),
                      fmt::format("{} letters, {}", said.size(), said.substr(0, 600)));
        }
  for (const std::size_t known : {127 * MiB, 127 * MiB + 1, 128 * MiB})
    expect_said(fmt::format("others beside {}", known), oom_others({.requested_bytes = 100 * MiB,
                                                                    .allocated_bytes = known,
                                                                    .reserved_bytes = known,
                                                                    .capacity_bytes = 128 * MiB},
                                                                   "who"));
}

TEST(CallCosts, AreOfTheCallAndOfEachMebibyte) {
  constexpr CallCost cost{10, 4};
  EXPECT_EQ(cost.us(0), 10);
  EXPECT_EQ(cost.us(MiB), 14);
  EXPECT_EQ(cost.us(3 * MiB), 22);
  EXPECT_EQ(cost.us(MiB / 2), 12);
}

// ---- whose a segment is, in a history

TEST(SegmentEvents, AreOfTheStreamThatTheirMemoryWasTakenForWhoeverGivesItBack) {
  /// A page for each block, mapped by itself; odd sizes take a segment.
  class Mixed final : public Allocator {
   public:
    explicit Mixed(MemorySource& source) : source_(source) {}
    Block allocate(const Request& request) override {
      if (request.bytes % 2 == 1) return {.data = source_.acquire(512), .bytes = request.bytes, .request = request};
      void* const space = source_.reserve(2 * MiB);
      const Physical physical = source_.create(2 * MiB);
      source_.map(space, 2 * MiB, physical, 0);
      return {
          .data = space, .bytes = request.bytes, .cookie = reinterpret_cast<void*>(physical.value), .request = request};
    }
    void deallocate(const Block& block, StreamRef) noexcept override {
      if (block.cookie == nullptr) return source_.release(block.data, 512);
      source_.unmap(block.data, 2 * MiB);
      source_.destroy({reinterpret_cast<std::uintptr_t>(block.cookie)}, 2 * MiB);
      source_.unreserve(block.data, 2 * MiB);
    }

   private:
    MemorySource& source_;
  };
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "mixed", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                     return std::make_unique<Mixed>(context.source);
                   }};
  const auto stack = AllocatorStack::make(source, config);
  const auto history = std::make_shared<tenon::History>();
  stack->attach_history(history);
  history->start({});
  std::vector<Block> blocks;
  for (const std::uint64_t stream : {4, 5, 6}) {
    blocks.push_back(stack->allocate({.bytes = 100, .stream = {stream}}));
    blocks.push_back(stack->allocate({.bytes = 101, .stream = {stream}}));
  }
  for (const Block& block : blocks) stack->deallocate(block);
  // Their addresses serve other streams now.
  const Block again = stack->allocate({.bytes = 101, .stream = {9}});
  stack->deallocate(again);
  std::vector<std::string> segments;
  for (const HistoryEvent& event : history->events())
    if (takes_memory(event.action) || gives_memory(event.action))
      segments.push_back(fmt::format("{} {} on {}", name_of(event.action), event.bytes, event.stream.id));
  std::vector<std::string> wanted;
  for (const int stream : {4, 5, 6}) {
    wanted.push_back(fmt::format("segment_map 2097152 on {}", stream));
    wanted.push_back(fmt::format("segment_alloc 512 on {}", stream));
  }
  for (const int stream : {4, 5, 6}) {
    wanted.push_back(fmt::format("segment_unmap 2097152 on {}", stream));
    wanted.push_back(fmt::format("segment_free 512 on {}", stream));
  }
  wanted.emplace_back("segment_alloc 512 on 9");
  wanted.emplace_back("segment_free 512 on 9");
  EXPECT_EQ(segments, wanted);
  const std::size_t told = history->events().size();
  stack->attach_history(nullptr);
  stack->deallocate(stack->allocate({.bytes = 7}));
  EXPECT_EQ(history->events().size(), told) << "nobody is told any more";
}

}  // namespace
}  // namespace tenon
