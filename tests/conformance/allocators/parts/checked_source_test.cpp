// The source that checks its caller: what it finds, what it refuses on demand, and what it knows of the memory it gave.
#include <tenon/conformance/checked_source.h>

#include "support/expect_error.h"

#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace tenon::conformance {
namespace {

using test::expect_error;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kPage = 2 * MiB;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "%#zx", static_cast<std::size_t>(number(address)));
  return text;
}

class Checked : public testing::Test {
 protected:
  AddressOnlySource device_{{.device = "checked", .capacity_bytes = 64 * MiB}};
  CheckedSource source_{device_};

  /// Two pages of addresses with two pages of memory mapped there, one by one.
  struct Mapped {
    char* range;
    Physical first, second;
  };
  Mapped two_pages() {
    Mapped made{static_cast<char*>(source_.reserve(2 * kPage)), source_.create(kPage), source_.create(kPage)};
    source_.map(made.range, kPage, made.first, 0);
    source_.map(made.range + kPage, kPage, made.second, 0);
    return made;
  }
};

TEST_F(Checked, FindsNothingWhereAllComesBackAsItWasTaken) {
  void* const acquired = source_.acquire(1000);
  const Mapped pages = two_pages();
  EXPECT_EQ(source_.reserved_bytes(), 1000 + 2 * kPage);
  source_.unmap(pages.range, 2 * kPage);
  source_.destroy(pages.first, kPage);
  source_.destroy(pages.second, kPage);
  source_.unreserve(pages.range, 2 * kPage);
  source_.release(acquired, 1000);
  EXPECT_EQ(source_.misuse(), "");
  EXPECT_EQ(source_.leftovers(), "");
  EXPECT_EQ(source_.reserved_bytes(), 0U);
  EXPECT_EQ(device_.usage().free_bytes, 64 * MiB);
  EXPECT_EQ(source_.refusals(), 0);
}

TEST_F(Checked, AReleaseOfWhatWasNotAcquiredIsAMisuse) {
  void* const address = source_.acquire(1000);
  source_.release(address, 1000);
  source_.release(address, 1000);
  EXPECT_EQ(source_.misuse(), "release(" + hex(address) + "): never acquired, or released before");
  EXPECT_EQ(source_.reserved_bytes(), 0U) << "it is not taken off twice";
}

TEST_F(Checked, AReleaseOfAnotherSizeIsAMisuseAndGoesBackAsItWasTaken) {
  void* const address = source_.acquire(4096);
  source_.release(address, 512);
  EXPECT_EQ(source_.misuse(), "release(" + hex(address) + ", 512): it was acquired with 4096 bytes");
  EXPECT_EQ(device_.usage().free_bytes, 64 * MiB);
  EXPECT_EQ(source_.leftovers(), "");
}

TEST_F(Checked, TheFirstMisuseIsKeptAndEachIsTold) {
  std::vector<std::string> told;
  source_.when_misused([&](const std::string& what) { told.push_back(what); });
  static_cast<void>(source_.acquire(0));
  source_.destroy({77}, 512);
  EXPECT_EQ(source_.misuse(), "acquire(0): the source was asked for nothing");
  EXPECT_THAT(told,
              ElementsAre("acquire(0): the source was asked for nothing", "destroy(77, 512): no such physical memory"));
}

TEST_F(Checked, PhysicalMemoryGoesBackWholeAndOnce) {
  const Physical physical = source_.create(2 * kPage);
  source_.destroy(physical, kPage);
  EXPECT_THAT(source_.misuse(), HasSubstr("no such physical memory"));
  EXPECT_EQ(source_.reserved_bytes(), 2 * kPage) << "nothing went back";
  source_.destroy(physical, 2 * kPage);
  EXPECT_EQ(source_.reserved_bytes(), 0U);
}

TEST_F(Checked, ARangeGoesBackWithItsSizeAndEmpty) {
  auto* const range = static_cast<char*>(source_.reserve(2 * kPage));
  source_.unreserve(range, kPage);
  EXPECT_EQ(source_.misuse(), "unreserve(" + hex(range) + ", 2097152): no such reservation");
  CheckedSource other(device_);
  auto* const mapped = static_cast<char*>(other.reserve(2 * kPage));
  const Physical physical = other.create(kPage);
  other.map(mapped + kPage, kPage, physical, 0);
  other.unreserve(mapped, 2 * kPage);
  EXPECT_EQ(other.misuse(), "unreserve(" + hex(mapped) + "): something is still mapped there");
}

TEST_F(Checked, MemoryIsMappedIntoReservedPlacesThatAreFree) {
  auto* const range = static_cast<char*>(source_.reserve(3 * kPage));
  const Physical physical = source_.create(2 * kPage);
  source_.map(range, 2 * kPage, physical, 0);
  EXPECT_EQ(source_.misuse(), "");
  struct Wrong {
    char* at;
    std::size_t bytes, offset;
    const char* words;
  };
  for (const Wrong& wrong : {Wrong{range + 2 * kPage, 2 * kPage, 0, "outside of every reservation"},
                             Wrong{range - kPage, kPage, 0, "outside of every reservation"},
                             Wrong{range + kPage, 2 * kPage, 0, "something is mapped there already"},
                             Wrong{range, kPage, 0, "something is mapped there already"},
                             Wrong{range + 2 * kPage, kPage, 2 * kPage, "no such physical memory"}}) {
    CheckedSource fresh(device_);
    auto* const own = static_cast<char*>(fresh.reserve(3 * kPage));
    const Physical memory = fresh.create(2 * kPage);
    fresh.map(own, 2 * kPage, memory, 0);
    try {
      fresh.map(own + (wrong.at - range), wrong.bytes, memory, wrong.offset);
    } catch (const Error&) {  // the device below may refuse it as well
    }
    EXPECT_THAT(fresh.misuse(), AllOf(HasSubstr("map("), HasSubstr(wrong.words)));
  }
}

TEST_F(Checked, WhatIsUnmappedIsWhatWasMapped) {
  const Mapped pages = two_pages();
  source_.unmap(pages.range, kPage);
  source_.unmap(pages.range + kPage, kPage);
  EXPECT_EQ(source_.misuse(), "") << "one by one";
  source_.map(pages.range, kPage, pages.first, 0);
  source_.map(pages.range + kPage, kPage, pages.second, 0);
  source_.unmap(pages.range, 2 * kPage);
  EXPECT_EQ(source_.misuse(), "") << "or together";
  source_.map(pages.range, kPage, pages.first, 0);
  source_.unmap(pages.range, kPage / 2);
  EXPECT_THAT(source_.misuse(), HasSubstr("not what was mapped there")) << "not a part";
  CheckedSource other(device_);
  auto* const range = static_cast<char*>(other.reserve(kPage));
  other.unmap(range, kPage);
  EXPECT_EQ(other.misuse(), "unmap(" + hex(range) + ", 2097152): not what was mapped there");
}

TEST_F(Checked, LeftoversAreCountedByTheirKind) {
  static_cast<void>(source_.acquire(1000));
  EXPECT_EQ(source_.leftovers(), "1000 bytes were not given back to the device: 1 segment");
  static_cast<void>(source_.acquire(24));
  const Mapped pages = two_pages();
  EXPECT_EQ(source_.leftovers(), std::to_string(1024 + 2 * kPage) +
                                     " bytes were not given back to the device: 2 segments, 2 pieces of physical "
                                     "memory, 2 mappings, 1 range of addresses");
  source_.unmap(pages.range, 2 * kPage);
  source_.destroy(pages.second, kPage);
  static_cast<void>(source_.reserve(kPage));
  EXPECT_EQ(source_.leftovers(), std::to_string(1024 + kPage) +
                                     " bytes were not given back to the device: 2 segments, 1 piece of physical "
                                     "memory, 2 ranges of addresses");
}

TEST_F(Checked, EachKindOfLeftoverIsToldByItself) {
  void* const range = source_.reserve(kPage);
  EXPECT_EQ(source_.leftovers(), "0 bytes were not given back to the device: 1 range of addresses");
  source_.unreserve(range, kPage);
  const Physical physical = source_.create(kPage);
  EXPECT_EQ(source_.leftovers(), "2097152 bytes were not given back to the device: 1 piece of physical memory");
  source_.destroy(physical, kPage);
  EXPECT_EQ(source_.leftovers(), "");
}

TEST_F(Checked, CoversWhatItGaveAndNoByteMore) {
  const std::uintptr_t acquired = number(source_.acquire(4096));
  EXPECT_TRUE(source_.covers(acquired, 4096));
  EXPECT_TRUE(source_.covers(acquired + 4095, 1));
  EXPECT_FALSE(source_.covers(acquired, 4097));
  EXPECT_FALSE(source_.covers(acquired - 1, 2));
  EXPECT_FALSE(source_.covers(acquired - 1, 1));
  EXPECT_FALSE(source_.covers(acquired + 4096, 1));
  const Mapped pages = two_pages();
  const std::uintptr_t range = number(pages.range);
  EXPECT_TRUE(source_.covers(range, 2 * kPage)) << "over two mappings";
  EXPECT_TRUE(source_.covers(range + kPage - 1, 2));
  source_.unmap(pages.range, kPage);
  EXPECT_FALSE(source_.covers(range, 1)) << "addresses without memory";
  EXPECT_FALSE(source_.covers(range + kPage - 1, 2));
  EXPECT_TRUE(source_.covers(range + kPage, kPage));
}

TEST_F(Checked, KnowsThePhysicalMemoryBehindAddresses) {
  auto* const range = static_cast<char*>(source_.reserve(4 * kPage));
  const Physical first = source_.create(2 * kPage), second = source_.create(kPage);
  source_.map(range, kPage, first, kPage);
  source_.map(range + kPage, kPage, second, 0);
  source_.map(range + 2 * kPage, kPage, first, 0);
  const std::uintptr_t at = number(range);
  const auto behind = [&](std::uintptr_t from, std::size_t bytes) {
    std::vector<std::vector<std::size_t>> extents;
    for (const PhysicalExtent& extent : source_.behind(from, bytes)) extents.push_back({extent.begin, extent.end});
    return extents;
  };
  using Extent = std::vector<std::size_t>;
  EXPECT_THAT(behind(at, kPage), ElementsAre(Extent{kPage, 2 * kPage}));
  EXPECT_THAT(behind(at, 2 * kPage), ElementsAre(Extent{kPage, 3 * kPage})) << "which goes on behind it";
  EXPECT_THAT(behind(at, 4 * kPage), ElementsAre(Extent{kPage, 3 * kPage}, Extent{0, kPage}));
  EXPECT_THAT(behind(at + 100, 50), ElementsAre(Extent{kPage + 100, kPage + 150}));
  EXPECT_THAT(behind(at + kPage - 10, 30), ElementsAre(Extent{2 * kPage - 10, 2 * kPage + 20}));
  EXPECT_THAT(behind(at + 3 * kPage, kPage), ElementsAre());
  EXPECT_THAT(behind(at + 3 * kPage - 1, kPage), ElementsAre(Extent{kPage - 1, kPage}));
  EXPECT_THAT(behind(number(source_.acquire(512)), 512), ElementsAre()) << "of acquired memory nothing is known";
}

TEST_F(Checked, MemoryThatGoesBackWhileItIsUsedIsFoundFirst) {
  std::vector<std::size_t> asked;
  source_.watch_releases([&](std::uintptr_t, std::size_t bytes) {
    asked.push_back(bytes);
    return bytes == 512 ? std::string() : "used: " + std::to_string(bytes);
  });
  source_.release(source_.acquire(512), 512);
  EXPECT_EQ(source_.early_release(), "");
  source_.release(source_.acquire(1024), 1024);
  const Mapped pages = two_pages();
  source_.unmap(pages.range, 2 * kPage);
  EXPECT_EQ(source_.early_release(), "used: 1024");
  EXPECT_EQ(asked.front(), 512U);
}

TEST_F(Checked, MemoryThatIsUnmappedWhileItIsUsedWentBackTooSoon) {
  std::vector<std::uintptr_t> asked;
  source_.watch_releases([&](std::uintptr_t address, std::size_t bytes) {
    asked.push_back(address);
    return "used: " + std::to_string(bytes);
  });
  const Mapped pages = two_pages();
  source_.unmap(pages.range + kPage, kPage);
  EXPECT_THAT(asked, ElementsAre(number(pages.range + kPage)));
  EXPECT_EQ(source_.early_release(), "used: 2097152");
}

TEST(CheckedFaults, OneCallFailsOrItAndEveryLaterOne) {
  for (const bool from_then_on : {false, true}) {
    AddressOnlySource device({.device = "faulty", .capacity_bytes = 64 * MiB});
    CheckedSource source(device, {.index = 2, .from_then_on = from_then_on});
    EXPECT_NE(source.acquire(512), nullptr);                  // 0
    EXPECT_TRUE(source.create(kPage));                        // 1
    EXPECT_EQ(source.reserve(kPage), nullptr);                // 2
    EXPECT_EQ(source.acquire(512) == nullptr, from_then_on);  // 3
    EXPECT_EQ(source.fallible_calls(), 4);
    EXPECT_NO_THROW(source.mark({1})) << "a device that is there answers";
    EXPECT_NO_THROW(source.synchronize());
    EXPECT_EQ(source.fallible_calls(), 4);
    EXPECT_EQ(source.refusals(), 0) << "the device below refused nothing";
    source.stop_faults();
    EXPECT_NE(source.acquire(512), nullptr);
  }
}

TEST(CheckedFaults, EveryKindOfCallCanFail) {
  AddressOnlySource device({.device = "faulty", .capacity_bytes = 64 * MiB});
  {
    CheckedSource source(device, {.index = 0, .from_then_on = true});
    EXPECT_EQ(source.acquire(512), nullptr);
    EXPECT_EQ(source.reserve(kPage), nullptr);
    EXPECT_FALSE(source.create(kPage));
    expect_error([&] { source.map(nullptr, kPage, {}, 0); }, "injected: the device refused to map");
    EXPECT_EQ(source.misuse(), "");
    EXPECT_EQ(source.reserved_bytes(), 0U);
  }
  CheckedSource lost(device, {.index = 1, .from_then_on = true, .order_calls_too = true});
  const Ticket ticket = lost.mark({1});
  expect_error([&] { lost.mark({1}); }, "injected: the device refused to mark a stream");
  expect_error([&] { lost.reached(ticket); }, "injected: the device does not say whether a mark was reached");
  expect_error([&] { lost.wait(ticket); }, "injected: the device failed while it was waited for");
  expect_error([&] { lost.synchronize(); }, "injected: the device failed while it was waited for");
  EXPECT_EQ(lost.fallible_calls(), 5);
  lost.watch_releases([](std::uintptr_t, std::size_t) { return std::string("used"); });
  lost.stop_faults();
  lost.release(lost.acquire(512), 512);
  EXPECT_EQ(lost.early_release(), "used");
}

TEST(CheckedFaults, ADeviceThatIsLostCompletesNothingSoThatMemoryMayGoBack) {
  AddressOnlySource device({.device = "lost", .capacity_bytes = 64 * MiB});
  CheckedSource source(device, {.index = 1, .order_calls_too = true});
  source.watch_releases([](std::uintptr_t, std::size_t) { return std::string("used"); });
  source.release(source.acquire(512), 512);
  EXPECT_EQ(source.early_release(), "");
}

TEST(CheckedFaults, WhatTheDeviceRefusesIsCounted) {
  AddressOnlySource device({.device = "small", .capacity_bytes = 4 * MiB});
  CheckedSource source(device);
  EXPECT_EQ(source.acquire(8 * MiB), nullptr);
  EXPECT_FALSE(source.create(8 * MiB));
  EXPECT_EQ(source.refusals(), 2);
  EXPECT_EQ(source.reserved_bytes(), 0U);
  EXPECT_EQ(source.make_driver_pool({}), nullptr);
}

}  // namespace
}  // namespace tenon::conformance
