// The leaks that guides teach to avoid, as small programs: each is found, and named with its line.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <support/meant_leaks.h>

#include <sys/uio.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

// Outside of tenon's namespace, as a user's program is.
namespace program {

using tenon::Tensor;
using tenon::memory::LeakReport;
using tenon::memory::LeakWatch;

constexpr int kSteps = 12;

struct Net {
  tenon::nn::Linear first{32, 64}, second{64, 1};
  Tensor forward(const Tensor& x) { return second->forward(tenon::relu(first->forward(x))); }
  void zero_grad() {
    first->zero_grad();
    second->zero_grad();
  }
};

Tensor loss_of(Net& net, const Tensor& x) { return net.forward(x).pow(2).mean(); }

int line_of_sum = 0;
LeakReport accumulated_loss() {
  Net net;
  LeakWatch watch;
  Tensor total_loss = tenon::zeros({});
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    const Tensor loss = loss_of(net, tenon::randn({16, 32}));
    loss.backward();
    line_of_sum = __LINE__ + 1;
    total_loss += loss;
    watch.step();
  }
  return watch.report();
}

int line_of_validation = 0;
LeakReport accumulated_loss_of_a_validation() {
  Net net;
  LeakWatch watch;
  Tensor total_loss = tenon::zeros({});
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x = tenon::randn({16, 32});
    line_of_validation = __LINE__ + 1;
    total_loss = total_loss + loss_of(net, x);
    watch.step();
  }
  return watch.report();
}

int line_of_kept_loss = 0;
LeakReport losses_kept_in_a_list() {
  Net net;
  LeakWatch watch;
  std::vector<Tensor> losses;
  for (int step = 0; step < kSteps; ++step) {
    line_of_kept_loss = __LINE__ + 1;
    losses.push_back(net.forward(tenon::randn({16, 32})).mean());
    watch.step();
  }
  return watch.report();
}

LeakReport losses_kept_behind_their_backward() {
  Net net;
  LeakWatch watch;
  std::vector<Tensor> losses;
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    losses.push_back(net.forward(tenon::randn({16, 32})).mean());
    losses.back().backward();
    watch.step();
  }
  return watch.report();
}

int line_of_hidden = 0;
LeakReport retained_gradients() {
  Net net;
  LeakWatch watch;
  std::vector<Tensor> looked_at;
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    line_of_hidden = __LINE__ + 1;
    Tensor hidden = tenon::relu(net.first->forward(tenon::randn({16, 32})));
    hidden.retain_grad();
    net.second->forward(hidden).mean().backward();
    looked_at.push_back(hidden);
    watch.step();
  }
  return watch.report();
}

int line_of_retained = 0;
LeakReport retained_graph() {
  Net net;
  LeakWatch watch;
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    const Tensor x = tenon::randn({16, 32});
    const Tensor hidden = tenon::relu(net.first->forward(x));
    line_of_retained = __LINE__ + 1;
    const Tensor loss = net.second->forward(hidden).mean();
    loss.backward({}, /*retain_graph=*/true);
    watch.step();
  }
  return watch.report();
}

int line_of_alias = 0;
LeakReport detached_alias() {
  Net net;
  LeakWatch watch;
  std::vector<Tensor> firsts;
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    const Tensor out = net.first->forward(tenon::randn({64, 32}));
    out.mean().backward();
    const Tensor detached = out.detach();
    line_of_alias = __LINE__ + 1;
    firsts.push_back(detached.narrow(0, 0, 1));
    watch.step();
  }
  return watch.report();
}

int line_of_hook = 0;
LeakReport captured_hook() {
  const tenon::test::MeantLeaks meant;
  Net net;
  LeakWatch watch;
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    const Tensor hidden = net.first->forward(tenon::randn({16, 32}));
    line_of_hook = __LINE__ + 1;
    hidden.register_hook([hidden](const Tensor& gradient) { return gradient * hidden.sign(); });
    net.second->forward(hidden).mean().backward();
    watch.step();
  }
  return watch.report();
}

/// What a hook needs, with the tensor that it hangs on.
struct State {
  double scale = 2;
  std::vector<Tensor> looked_at;
};
int line_of_shared_hook = 0;
LeakReport hook_with_shared_state() {
  Net net;
  LeakWatch watch;
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    const Tensor hidden = net.first->forward(tenon::randn({16, 32}));
    const auto state = std::make_shared<State>();
    state->looked_at.push_back(hidden);
    line_of_shared_hook = __LINE__ + 1;
    hidden.register_hook([state](const Tensor& gradient) { return gradient * state->scale; });
    net.second->forward(hidden).mean().backward();
    watch.step();
  }
  return watch.report();
}

int line_of_batch = 0;
/// Keeps every batch that it has given out.
struct Loader {
  std::vector<Tensor> given;
  Tensor next() {
    const tenon::PurposeGuard purpose(tenon::Purpose::kData);
    line_of_batch = __LINE__ + 1;
    given.push_back(tenon::randn({16, 32}));
    return given.back();
  }
};
LeakReport growing_loader() {
  Net net;
  Loader loader;
  LeakWatch watch;
  for (int step = 0; step < kSteps; ++step) {
    net.zero_grad();
    loss_of(net, loader.next()).backward();
    watch.step();
  }
  return watch.report();
}

int line_of_mask = 0;
LeakReport cache_keyed_by_shape() {
  LeakWatch watch;
  std::map<std::int64_t, Tensor> masks;
  const auto mask = [&](std::int64_t length) {
    line_of_mask = __LINE__ + 1;
    if (!masks.contains(length)) masks[length] = tenon::ones({length, length});
    return masks[length];
  };
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t length = 16 + (step * step) % 29;
    (tenon::randn({length, length}) * mask(length)).sum();
    watch.step();
  }
  return watch.report();
}

}  // namespace program

namespace tenon::test {
namespace {

using memory::Leak;
using memory::LeakKind;
using memory::LeakReport;

std::string at_line(int line) { return "(guides_leaks_test.cpp:" + std::to_string(line) + ")"; }

/// The leak that is named with that line first.
const Leak* named(const LeakReport& report, LeakKind kind, int line) {
  for (const Leak& leak : report.leaks) {
    const std::string first = leak.site.substr(0, leak.site.find(" < "));
    if (leak.kind == kind && first.ends_with(at_line(line))) return &leak;
  }
  return nullptr;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(GuidesLeaks, AnAccumulatedLossIsNamedWithTheLineOfTheSumAndTheChainThatHoldsTheGraph) {
  const LeakReport report = program::accumulated_loss();
  ASSERT_FALSE(report.leaks.empty());
  EXPECT_EQ(&report.leaks.front(), named(report, LeakKind::kKeptGraph, program::line_of_sum)) << report.text();
  const Leak& leak = report.leaks.front();
  EXPECT_TRUE(leak.grows);
  EXPECT_EQ(leak.nodes_per_step, 8) << "two linear layers of two nodes each, relu, pow, mean and the sum";
  const std::string chain = joined(leak.chain);
  EXPECT_NE(chain.find("tensor [] float32, made at program::accumulated_loss"), std::string::npos) << chain;
  EXPECT_NE(chain.find("AddBackward0, recorded at program::accumulated_loss " + at_line(program::line_of_sum)),
            std::string::npos)
      << chain;
  EXPECT_NE(leak.sentence.find("loss.item()"), std::string::npos);
}

TEST(GuidesLeaks, AnAccumulatedLossWithoutBackwardKeepsWhatEachStepSaved) {
  const LeakReport report = program::accumulated_loss_of_a_validation();
  ASSERT_FALSE(report.leaks.empty());
  EXPECT_EQ(&report.leaks.front(), named(report, LeakKind::kKeptGraph, program::line_of_validation)) << report.text();
  EXPECT_GE(report.leaks.front().bytes_per_step, 16 * (64 + 32) * 4) << report.text();
}

TEST(GuidesLeaks, LossesInAListKeepTheirGraphs) {
  const LeakReport report = program::losses_kept_in_a_list();
  const Leak* leak = named(report, LeakKind::kKeptGraph, program::line_of_kept_loss);
  ASSERT_NE(leak, nullptr) << report.text();
  // What each step saved: relu's result for two layers (16 x 64), the batch (16 x 32).
  EXPECT_GE(leak->bytes_per_step, 16 * (64 + 32) * 4) << report.text();
}

TEST(GuidesLeaks, LossesInAListBehindTheirBackwardAreNamedWithTheNodesThatTheyKeep) {
  const LeakReport report = program::losses_kept_behind_their_backward();
  ASSERT_FALSE(report.leaks.empty());
  EXPECT_EQ(report.leaks.front().kind, LeakKind::kHeld) << report.text();
  EXPECT_NE(report.leaks.front().sentence.find(" nodes, lives as long: keep item() or detach()"), std::string::npos)
      << report.text();
}

TEST(GuidesLeaks, RetainedGradientsAreNamedWithTheResultThatKeepsThem) {
  const LeakReport report = program::retained_gradients();
  const Leak* leak = named(report, LeakKind::kRetainedGradient, program::line_of_hidden);
  ASSERT_NE(leak, nullptr) << report.text();
  EXPECT_EQ(report.leaks.size(), 1U) << "the results in the list are of the same line: " << report.text();
  EXPECT_NEAR(leak->bytes_per_step, 2 * 16 * 64 * 4, 1) << report.text();
  EXPECT_NE(leak->sentence.find("the results, which the program holds, are "), std::string::npos) << leak->sentence;
}

TEST(GuidesLeaks, AGraphThatBackwardRetainedIsFoundThoughNothingGrows) {
  const LeakReport report = program::retained_graph();
  const Leak* leak = named(report, LeakKind::kKeptGraph, program::line_of_retained);
  ASSERT_NE(leak, nullptr) << report.text();
  EXPECT_FALSE(leak->grows);
  EXPECT_NE(leak->sentence.find("retain_graph"), std::string::npos);
}

TEST(GuidesLeaks, ADetachedAliasIsNamedWithWhatItUsesOfItsStorage) {
  const LeakReport report = program::detached_alias();
  const Leak* leak = named(report, LeakKind::kAlias, program::line_of_alias);
  ASSERT_NE(leak, nullptr) << report.text();
  EXPECT_NEAR(leak->bytes_per_step, 64 * 64 * 4, 1);
  EXPECT_NE(leak->sentence.find("uses 256 B of a storage of 16.0 KiB"), std::string::npos) << leak->sentence;
  EXPECT_NE(leak->sentence.find("clone()"), std::string::npos);
}

TEST(GuidesLeaks, AHookThatCapturedItsTensorIsNamedWithTheLineThatHungItThere) {
  const LeakReport report = program::captured_hook();
  const Leak* leak = named(report, LeakKind::kHook, program::line_of_hook);
  ASSERT_NE(leak, nullptr) << report.text();
  EXPECT_NEAR(leak->bytes_per_step, 16 * 64 * 4, 1);
  EXPECT_EQ(report.leaks.size(), 1U) << report.text();
}

TEST(GuidesLeaks, TheNodesThatAHookKeepsAreNotLaidToALongHistoryThatGrowsNoMore) {
  const memory::LiveRecording recording;  // so that the history is known
  Tensor total = tenon::zeros({}).requires_grad_();
  for (int i = 0; i < 40; ++i) total = total + 1;
  const LeakReport report = program::captured_hook();
  EXPECT_NE(named(report, LeakKind::kHook, program::line_of_hook), nullptr);
  EXPECT_EQ(report.leaks.size(), 1U) << report.text();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their heaps have other blocks
TEST(GuidesLeaks, AHookThatKeepsItsTensorBehindASharedPointerIsNamedToo) {
  int word = 0, copy = 0;
  const iovec from{.iov_base = &word, .iov_len = sizeof word}, to{.iov_base = &copy, .iov_len = sizeof copy};
  if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) < 0)
    GTEST_SKIP() << "this machine's rules forbid a process to read its own memory through the kernel";
  const LeakReport report = program::hook_with_shared_state();
  const Leak* leak = named(report, LeakKind::kHook, program::line_of_shared_hook);
  ASSERT_NE(leak, nullptr) << report.text();
  EXPECT_NEAR(leak->bytes_per_step, 16 * 64 * 4, 1);
  EXPECT_EQ(report.leaks.size(), 1U) << report.text();
}
#endif

TEST(GuidesLeaks, ALoaderThatKeepsItsBatchesIsNamed) {
  const LeakReport report = program::growing_loader();
  const Leak* leak = named(report, LeakKind::kHeld, program::line_of_batch);
  ASSERT_NE(leak, nullptr) << report.text();
  EXPECT_EQ(leak->purpose, Purpose::kData);
  EXPECT_NEAR(leak->bytes_per_step, 16 * 32 * 4, 1);
}

TEST(GuidesLeaks, ACacheKeyedByShapeIsNamedAsOne) {
  const LeakReport report = program::cache_keyed_by_shape();
  const Leak* leak = named(report, LeakKind::kHeld, program::line_of_mask);
  ASSERT_NE(leak, nullptr) << report.text();
  EXPECT_NE(leak->sentence.find("a cache keyed by shape"), std::string::npos) << leak->sentence;
}

}  // namespace
}  // namespace tenon::test
