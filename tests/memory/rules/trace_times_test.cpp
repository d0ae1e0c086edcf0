// When each event of a trace was: the times beside its records are those of the calls.
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/memory/history/event_time.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

struct Between {
  std::string record;
  std::int64_t before, after;
};

/// Calls `event` once the clock has moved on since the event before, and says when that was.
Between timed(std::string record, const std::function<void()>& event) {
  const std::int64_t last = microseconds_now();
  std::int64_t before = last;
  while (before == last) before = microseconds_now();
  event();
  return {std::move(record), before, microseconds_now()};
}

TEST(TraceTimes, AreThoseOfTheCallsThatTheirRecordsAreOf) {
  const std::string path = test::scratch_folder() + "trace_times.trace";
  AddressOnlySource device({.capacity_bytes = 8192});
  auto stack = test::make_stack(device, {{"trace", {{"file", path}}}});
  Block first, second;
  const std::vector<Between> events = {
      timed("a 0 1000 0", [&] { first = stack->allocate({.bytes = 1000}); }),
      timed("a 1 600 0", [&] { second = stack->allocate({.bytes = 600}); }),
      timed("u 0 4", [&] { stack->record_use(first, {4}); }),
      timed("f 0", [&] { stack->deallocate(first); }),
      timed("e", [&] { stack->trim(); }),
      timed("a 2 9000 2", [&] { EXPECT_THROW(stack->allocate({.bytes = 9000, .stream = {2}}), OutOfMemory); }),
      timed("f 1", [&] { stack->deallocate(second); })};
  stack.reset();
  std::ifstream file(path);
  std::int64_t time = 0;
  std::size_t next = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#t +")) {
      time += std::stoll(line.substr(4));
    } else if (line.starts_with("#t ")) {
      time = std::stoll(line.substr(3));
    } else if (next < events.size() && line == events[next].record) {
      EXPECT_GE(time, events[next].before) << line;
      // A failure is written with the event behind it, since the host may ask again.
      EXPECT_LE(time, events[std::min(next + 1, events.size() - 1)].after) << line;
      ++next;
    }
  }
  EXPECT_EQ(next, events.size());
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tenon
