// Who held what at the peak, and which of a stack's functions are the program's own.
#include "replay/support.h"

#include <tenon/replay/results/holders.h>
#include <tenon/replay/results/own_frames.h>
#include <tenon/replay/trace/trace_builder.h>

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Allocations of stack 1, 2, 1 and 3; the peak is reached twice.
Trace held() {
  TraceBuilder builder("held");
  builder.meant_for(Purpose::kParameter);
  const std::uint32_t a = builder.allocate(100, 0);
  builder.meant_for(Purpose::kActivation);
  const std::uint32_t b = builder.allocate(50, 0);
  builder.use(b, 3);
  builder.free(a);
  builder.meant_for(Purpose::kGradient);
  builder.allocate(60, 0);
  builder.allocate(60, 0);  // 170 live: the peak
  builder.free(b);
  builder.allocate(50, 0);  // 170 again
  Trace trace = std::move(builder).finish();
  trace.stack_of_allocation = {1, 2, 1, 3, 2};
  return trace;
}

TEST(Holders, AreThoseOfTheFirstPeakTheLargestFirst) {
  const std::vector<Holder> holders = holders_at_peak(held());
  ASSERT_EQ(holders.size(), 3u);
  EXPECT_EQ(holders[0].stack, 1u) << "of equal ones in the order of their stacks";
  EXPECT_EQ(holders[0].bytes, 60u);
  EXPECT_EQ(holders[0].blocks, 1u);
  EXPECT_EQ(holders[1].stack, 3u);
  EXPECT_EQ(holders[1].bytes, 60u);
  EXPECT_EQ(holders[2].stack, 2u);
  EXPECT_EQ(holders[2].bytes, 50u);
}

TEST(Holders, OfAStackAllLiveBlocksAreAddedUp) {
  Trace trace = held();
  trace.stack_of_allocation = {1, 2, 2, 2, 1};
  const std::vector<Holder> holders = holders_at_peak(trace);
  ASSERT_EQ(holders.size(), 1u) << "who holds nothing at the peak is left out";
  EXPECT_EQ(holders[0].stack, 2u);
  EXPECT_EQ(holders[0].bytes, 170u);
  EXPECT_EQ(holders[0].blocks, 3u);
}

TEST(Holders, AreUnknownWithoutStacks) {
  Trace trace = held();
  trace.stack_of_allocation.clear();
  EXPECT_THAT(holders_at_peak(trace), IsEmpty());
}

TEST(PurposesAtPeak, AreTheBytesOfEachAtTheFirstPeak) {
  EXPECT_THAT(purposes_at_peak(held()), ElementsAre(0, 0, 120, 50, 0, 0, 0, 0, 0));
  Trace trace = held();
  trace.columns.purposes.clear();
  EXPECT_THAT(purposes_at_peak(trace), IsEmpty());
}

Trace with_stack(const std::vector<StackFrame>& innermost_first) {
  Trace trace;
  trace.stacks.frames = innermost_first;
  std::vector<std::uint32_t> stack;
  for (std::uint32_t i = 0; i < innermost_first.size(); ++i) stack.push_back(i);
  trace.stacks.stacks = {{}, stack};
  return trace;
}

TEST(OwnFrames, LeaveOutLibrariesAndTheMachine) {
  const Trace trace = with_stack({{"c10::cuda::malloc", "/build/c10/cuda.cpp", 1},
                                  {"at::empty", "empty.cpp", 2},
                                  {"linear", "/usr/lib/python3/site-packages/torch/nn/linear.py", 3},
                                  {"forward", "/mine/model.py", 4},
                                  {"unknown", "??", 5},
                                  {"step", "/mine/train.py", 6},
                                  {"_PyEval", "/src/Python/ceval.c", 7},
                                  {"PyMine", "/mine/Py.py", 8}});
  EXPECT_THAT(own_frames(trace, 1), ElementsAre(3, 5, 7)) << "a file of Python is the program's own by its place";
  EXPECT_EQ(call_site(trace, 1), "forward (model.py:4) < step (train.py:6) < PyMine (Py.py:8)");
}

TEST(OwnFrames, AtMostThreeAreNamedUnlessAllAreAskedFor) {
  const Trace trace = with_stack({{"a", "/m/a.py", 1}, {"b", "/m/b.py", 0}, {"c", "/m/c.py", 3}, {"d", "d.py", 4}});
  EXPECT_EQ(call_site(trace, 1), "a (a.py:1) < b (b.py) < c (c.py:3)");
  EXPECT_EQ(call_site(trace, 1, true), "a (a.py:1) < b (b.py) < c (c.py:3) < d (d.py:4)");
  EXPECT_EQ(call_site(trace, 0), "[no stack]");
}

TEST(OwnFrames, OfAnExperimentAreTenonsOwnButNotItsMachinery) {
  const Trace trace = with_stack({{"tenon::AllocatorStack::allocate(unsigned long)", "libtenon.so.1", 0},
                                  {"tenon::Tensor tenon::ops::relu<float>(int)", "libtenon.so.1", 0},
                                  {"tenon::(anonymous namespace)::helper()", "libtenon.so.1", 0},
                                  {"tenon::autograd::(anonymous namespace)::enter_node(int)", "libtenon.so.1", 0},
                                  {"tenon::autograd::GraphTask::call(int)", "libtenon.so.1", 0},
                                  {"tenon::nn::AnyValue tenon::nn::AnyModuleContent<tenon::nn::LinearImpl, "
                                   "tenon::Tensor const&>::call<0ul>(tenon::Tensor)",
                                   "libtenon.so.1", 0},
                                  {"tenon::nn::LinearImpl::forward(tenon::Tensor)", "/usr/bin/tenon", 0},
                                  {"tenon::train::Training::compute()", "tenon", 0},
                                  {"main", "/usr/bin/tenon", 0}});
  EXPECT_THAT(own_frames(trace, 1), ElementsAre(1, 6));
  EXPECT_THAT(call_site(trace, 1), testing::EndsWith(" < tenon::nn::LinearImpl::forward (tenon)"));
}

TEST(OwnFrames, OfAStackWithoutAnyTheOperatorIsNamedElseTheInnermost) {
  EXPECT_THAT(own_frames(with_stack({{"c10::alloc", "a.cpp", 1},
                                     {"at::_ops::mul::call", "b.cpp", 2},
                                     {"torch::autograd::generated::MulBackward0::apply", "c.cpp", 3},
                                     {"torch::autograd::Engine::run", "d.cpp", 4}}),
                         1),
              ElementsAre(2))
      << "the outermost that says what it does";
  EXPECT_THAT(own_frames(with_stack({{"c10::alloc", "a.cpp", 1}, {"std::thread", "b.cpp", 2}}), 1), ElementsAre(0));
  EXPECT_THAT(own_frames(with_stack({}), 1), IsEmpty());
}

TEST(OwnFrames, LeaveOutWhereThreadsBegin) {
  EXPECT_THAT(own_frames(with_stack({{"mine::work()", "/m/a.cc", 3},
                                     {"execute_native_thread_routine", "libstdc++.so.6", 0},
                                     {"??", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 0},
                                     {"start_thread", "./nptl/pthread_create.c", 442},
                                     {"clone3", "./misc/../sysdeps/unix/sysv/linux/x86_64/clone3.S", 81}}),
                         1),
              ElementsAre(0));
}

TEST(OwnFrames, LeaveOutASanitizerAroundThem) {
  EXPECT_THAT(
      own_frames(with_stack({{"__interceptor_malloc", "../../../../src/libsanitizer/asan/asan_malloc_linux.cpp", 69},
                             {"mine::work()", "/m/a.cc", 3},
                             {"__tsan_thread_start_func",
                              "../../../../src/libsanitizer/tsan/tsan_interceptors_posix.cpp", 991},
                             {"__interceptor_pthread_create", "/m/program", 0},
                             {"asan_thread_start(void*)", "/llvm/compiler-rt/lib/asan/asan_interceptors.cpp", 226},
                             {"??", "/usr/lib/x86_64-linux-gnu/libtsan.so.2", 0},
                             {"??", "/usr/lib/x86_64-linux-gnu/libasan.so.8", 0}}),
                 1),
      ElementsAre(1));
}

TEST(CallSite, DropsParametersAndUnnamedNamespacesAndKeepsOperators) {
  const auto site = [](const std::string& name) { return call_site(with_stack({{name, "/m/a.cc", 0}}), 1); };
  EXPECT_EQ(site("mine::run(int, char const*)"), "mine::run (a.cc)");
  EXPECT_EQ(site("mine::(anonymous namespace)::run(int)"), "mine::run (a.cc)");
  EXPECT_EQ(site("mine::Call::operator()(int)"), "mine::Call::operator() (a.cc)");
  EXPECT_EQ(site("(closure)"), "(closure) (a.cc)");
  EXPECT_EQ(site("main::{lambda(int)#1}::operator()(int) const"), "main::{lambda(int)#1}::operator() (a.cc)");
  EXPECT_EQ(site("mine::run(int)::Local::call(char)"), "mine::run::Local::call (a.cc)");
  EXPECT_EQ(site("void mine::run<int (*)(char)>(int (*)(char))"), "void mine::run<int (*)(char)> (a.cc)");
  EXPECT_EQ(site("mine::Box::operator<<(int)"), "mine::Box::operator<< (a.cc)");
  EXPECT_EQ(site("mine::Box::operator bool() const"), "mine::Box::operator bool (a.cc)");
  EXPECT_EQ(site("mine::operator new(unsigned long)"), "mine::operator new (a.cc)");
  EXPECT_EQ(site("std::function<void ()>::operator()() const"), "std::function<void ()>::operator() (a.cc)");
  EXPECT_EQ(site("mine::cooperator(int)"), "mine::cooperator (a.cc)");
  EXPECT_EQ(site("operator"), "operator (a.cc)");
  EXPECT_EQ(site("broken(int"), "broken (a.cc)");
}

}  // namespace
}  // namespace tenon::replay
