// The profiler off: nothing is taken from the heap for it, and no context is made.
#include "profiler/small_model.h"

#include <tenon/core/export.h>
#include <tenon/core/scope/scope.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> heap_calls{0};
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// Of one kind with it, so that what a sort takes for a moment is given back as it was taken.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*none*/) noexcept {
  heap_calls.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

namespace tenon::test {
namespace {

/// Calls of the heap for an operator that has run before.
long calls_of_an_operator() {
  const NoGradGuard no_grad;
  const Tensor x = ones({4});
  for (int i = 0; i < 3; ++i) x.add(x);
  const long before = heap_calls.load();
  for (int i = 0; i < 100; ++i) x.add(x);
  return heap_calls.load() - before;
}

TEST(ProfilerOff, TakesNothingFromTheHeap) {
  const long without = calls_of_an_operator();
  if (!kIsSanitized) {
    EXPECT_EQ(without, 0) << "its objects are recycled";
  }
  {
    profiler::Profile profile({.profile_memory = true});
    profile.start();
    calls_of_an_operator();
    profile.stop();
  }
  EXPECT_EQ(calls_of_an_operator(), without) << "once it was on and is off again";
}

TEST(ProfilerOff, MakesNoContexts) {
  SmallTraining training;
  training.step();
  const std::uint32_t before = scopes::context_count();
  training.step();
  EXPECT_EQ(scopes::context_count(), before);
}

}  // namespace
}  // namespace tenon::test
