// What a call of a kernel does besides: who listens is told around it, a device with a cost model queues it, one
// without bytes rehearses its workspace, and what waits for a kernel runs behind it.
#include <tenon/core/scope/scope.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/dispatch/after_kernel.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/rehearsal.h>
#include <tenon/memory/purpose.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <device/fake_driver.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Views = std::span<const TensorView>;

std::vector<std::string> lines;
std::size_t wanted_scratch = 0;
bool fails = false;
const void* given[3] = {};

void noted_kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  lines.emplace_back("kernel");
  given[0] = outputs.empty() ? nullptr : outputs[0].data;
  given[1] = inputs.empty() ? nullptr : inputs[0].data;
  given[2] = attributes;
  if (wanted_scratch > 0) context.scratch(wanted_scratch);
  if (fails) throw std::runtime_error("within");
}
void noted_workspace(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  noted_kernel(context, outputs, inputs, attributes);
  lines.back() = "workspace on " + std::to_string(context.stream().id);
}

/// Writes down what it is told.
class Told final : public scopes::Listener {
 public:
  explicit Told(std::uint32_t wants) { scopes::add_listener(*this, wants); }
  ~Told() override { scopes::remove_listener(*this); }
  void kernel_begins(const scopes::KernelCall& call) noexcept override {
    lines.emplace_back("begins");
    calls.push_back(call);
  }
  void kernel_ends(const scopes::KernelCall& call) noexcept override {
    lines.emplace_back("ends");
    EXPECT_EQ(call.name, calls.back().name);
  }
  void allocated(const scopes::MemoryCall& call) noexcept override { blocks.push_back(call); }
  void freed(const scopes::MemoryCall& call) noexcept override { freed_bytes.push_back(call.bytes); }
  std::vector<scopes::KernelCall> calls;
  std::vector<std::size_t> freed_bytes;
  std::vector<scopes::MemoryCall> blocks;
};

class ToldKernels : public ::testing::Test {
 protected:
  ToldKernels() {
    register_kernel(kind_, "told_test", &noted_kernel);
    register_kernel(kind_, "told_test.workspace", &noted_workspace);
    register_kernel(kind_, "told_test_without_form", &noted_kernel);
    lines.clear();
    std::fill(std::begin(given), std::end(given), nullptr);
    written_.data = &of_output_;
    read_.data = &of_input_;
  }
  ~ToldKernels() override {
    rehearse_workspace(kind_, false);
    test::FakeDriver::computes() = true;
    wanted_scratch = 0;
    fails = false;
  }
  DeviceState& state() { return device_state(test::fake()); }
  std::int64_t live_bytes() { return state().allocator().stats().allocated_bytes.current; }
  void call() { call_kernel(TENON_OP("told_test"), state(), {&written_, 1}, {&read_, 1}, &attributes_); }
  void expect_all_given() const {
    EXPECT_EQ(given[0], &of_output_);
    EXPECT_EQ(given[1], &of_input_);
    EXPECT_EQ(given[2], &attributes_);
  }

  const DeviceType kind_ = DeviceType::named("fake");
  const test::FakeDevices devices_;
  const std::int64_t size_ = 6, stride_ = 1;
  int of_output_ = 0, of_input_ = 0, attributes_ = 0;
  TensorView written_{nullptr, &size_, &stride_, 1, Dtype::kFloat32}, read_ = written_;
};

TEST_F(ToldKernels, AreToldBeforeAndBehindTheirCall) {
  Told told(scopes::kWantsKernels);
  const StreamGuard on(test::fake(), {3});
  call();
  EXPECT_THAT(lines, ElementsAre("begins", "kernel", "ends"));
  expect_all_given();
  ASSERT_EQ(told.calls.size(), 1u);
  EXPECT_EQ(told.calls[0].name, "told_test");
  EXPECT_EQ(told.calls[0].device, test::fake());
  EXPECT_EQ(told.calls[0].stream, 3u);
  EXPECT_EQ(told.calls[0].flops, 0) << "nobody wants to know";
  EXPECT_EQ(told.calls[0].bytes, 0u);
  EXPECT_FALSE(told.calls[0].has_virtual_time);
}

TEST_F(ToldKernels, AreToldWithTheirWorkWhereSomebodyWantsIt) {
  Told told(scopes::kWantsKernels | scopes::kWantsWork);
  const std::int64_t more = 9;
  read_.sizes = &more;
  call();
  ASSERT_EQ(told.calls.size(), 1u);
  EXPECT_EQ(told.calls[0].flops, 9);
  EXPECT_EQ(told.calls[0].bytes, 4u * (6 + 9));
  EXPECT_FALSE(told.calls[0].has_virtual_time);
  EXPECT_EQ(told.calls[0].virtual_us, 0);
  // Of a table that is looked up, what is written counts twice, and not the table.
  register_kernel(kind_, "gather", &noted_kernel);
  call_kernel(TENON_OP("gather"), state(), {&written_, 1}, {&read_, 1}, &attributes_);
  EXPECT_EQ(told.calls.back().flops, 6);
  EXPECT_EQ(told.calls.back().bytes, 4u * (6 + 6));
}

TEST_F(ToldKernels, AreNotToldToWhoWantsOtherThings) {
  Told told(scopes::kWantsScopes | scopes::kWantsWork);
  call();
  EXPECT_THAT(lines, ElementsAre("kernel"));
}

TEST_F(ToldKernels, EndAlsoWhereTheyThrowAndGiveTheirWorkspaceBack) {
  fails = true;
  wanted_scratch = 1000;
  EXPECT_THROW(call(), std::runtime_error);
  EXPECT_EQ(live_bytes(), 0);
  lines.clear();
  Told told(scopes::kWantsKernels);
  EXPECT_THROW(call(), std::runtime_error);
  EXPECT_THAT(lines, ElementsAre("begins", "kernel", "ends"));
  EXPECT_EQ(live_bytes(), 0);
}

TEST_F(ToldKernels, TakeAWorkspaceOfTheirStreamAndOfTheUsersLabel) {
  Told told(scopes::kWantsMemory);
  wanted_scratch = 1000;
  const StreamGuard on(test::fake(), {5});
  const LabelGuard label("told test");
  const PurposeGuard purpose(Purpose::kData);
  call();
  ASSERT_EQ(told.blocks.size(), 1u);
  EXPECT_GE(told.blocks[0].bytes, 1000u);
  EXPECT_EQ(told.blocks[0].stream, 5u);
  EXPECT_EQ(told.blocks[0].purpose, static_cast<std::uint8_t>(Purpose::kWorkspace));
  EXPECT_EQ(told.blocks[0].label, current_label());
}

TEST_F(ToldKernels, GiveTheirWorkspaceBackLastFirst) {
  register_kernel(kind_, "told_test_pieces", [](KernelContext& context, Views, Views, const void*) {
    for (const std::size_t bytes : {3000, 1000, 2000}) context.scratch(bytes);
  });
  Told told(scopes::kWantsMemory);
  call_kernel(TENON_OP("told_test_pieces"), state(), {}, {}, nullptr);
  EXPECT_THAT(told.freed_bytes, ElementsAre(2000, 1000, 3000));
}

TEST_F(ToldKernels, WhoseWorkspaceDoesNotFitGiveBackWhatTheyHave) {
  static std::optional<int> pieces;
  register_kernel(kind_, "told_test_large", [](KernelContext& context, Views, Views, const void*) {
    for (pieces = 0;; ++*pieces) context.scratch(std::size_t{40} * 1024 * 1024);
  });
  EXPECT_THROW(call_kernel(TENON_OP("told_test_large"), state(), {}, {}, nullptr), OutOfMemory);
  EXPECT_EQ(pieces, 2) << "of 100 MiB";
  EXPECT_EQ(live_bytes(), 0);
}

TEST_F(ToldKernels, OfADeviceWithoutBytesRehearseTheirWorkspaceOnRequest) {
  test::FakeDriver::computes() = false;
  const StreamGuard on(test::fake(), {4});
  std::optional<Told> told;
  for (const bool is_told : {false, true}) {
    if (is_told) told.emplace(scopes::kWantsKernels);
    const auto around = [&](std::vector<std::string> want) {
      if (is_told) {
        want.insert(want.begin(), "begins");
        want.emplace_back("ends");
      }
      return want;
    };
    lines.clear();
    call();
    EXPECT_EQ(lines, around({})) << "off at first";
    lines.clear();
    rehearse_workspace(DeviceType::named("told_test_other"), true);
    call();
    EXPECT_EQ(lines, around({})) << "of another kind";
    lines.clear();
    rehearse_workspace(kind_, true);
    call();
    EXPECT_EQ(lines, around({"workspace on 4"}));
    expect_all_given();
    lines.clear();
    call_kernel(TENON_OP("told_test_without_form"), state(), {}, {}, nullptr);
    EXPECT_EQ(lines, around({}));
    wanted_scratch = 1000;
    call();
    EXPECT_EQ(live_bytes(), 0);
    wanted_scratch = 0;
    lines.clear();
    rehearse_workspace(kind_, false);
    call();
    EXPECT_EQ(lines, around({}));
  }
  told.reset();
  rehearse_workspace(kind_, true);
  test::FakeDriver::computes() = true;
  lines.clear();
  call();
  EXPECT_THAT(lines, ElementsAre("kernel")) << "what computes rehearses nothing";
}

TEST_F(ToldKernels, RunWhatWaitsForThemOnceAndBehindThem) {
  std::optional<Told> told;
  for (const bool computes : {true, false}) {
    test::FakeDriver::computes() = computes;
    for (const bool is_told : {false, true}) {
      if (is_told) told.emplace(scopes::kWantsKernels);
      std::vector<std::string> want;
      if (is_told) want.emplace_back("begins");
      if (computes) want.emplace_back("kernel");
      if (is_told) want.emplace_back("ends");
      std::vector<std::string> after = want;
      after.insert(after.end(), {"first", "second"});
      lines.clear();
      after_kernel([] { lines.emplace_back("first"); });
      after_kernel([] { lines.emplace_back("second"); });
      call();
      EXPECT_EQ(lines, after);
      lines.clear();
      call();
      EXPECT_EQ(lines, want) << "once";
      told.reset();
    }
  }
}

TEST_F(ToldKernels, RunWhatComesToWaitMeanwhileBehindTheNext) {
  after_kernel([] {
    lines.emplace_back("first");
    after_kernel([] { lines.emplace_back("second"); });
  });
  call();
  EXPECT_THAT(lines, ElementsAre("kernel", "first"));
  call();
  EXPECT_THAT(lines, ElementsAre("kernel", "first", "kernel", "second"));
}

TEST_F(ToldKernels, DoNotRunWhatAnotherThreadWaitsWith) {
  int runs = 0;
  std::thread([&] { after_kernel([&] { ++runs; }); }).join();
  call();
  EXPECT_EQ(runs, 0);
}

/// 5 us a kernel.
class TimedDriver final : public DeviceDriver, public KeepsVirtualTime {
 public:
  TimedDriver() : KeepsVirtualTime(true) {}
  DeviceProperties properties() const override { return {.name = "timed"}; }
  MemorySource& memory() override { return source_; }
  void copy(void*, const void*, std::size_t, CopyKind, StreamRef) override {}
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}
  void queue_kernel(StreamRef stream, const KernelWork& work) override {
    lines.push_back("queued on " + std::to_string(stream.id));
    queued.push_back(work);
    advance_virtual_time(virtual_time_us() + 3);
    activity_.kernel_us += 5;
  }
  DeviceActivity activity() override { return activity_; }
  void reset_activity() override { activity_ = {}; }
  std::vector<KernelWork> queued;

 private:
  AddressOnlySource source_;
  DeviceActivity activity_{.kernel_us = 100};
};

TEST_F(ToldKernels, AreQueuedWithTheirWorkOnADeviceWithACostModel) {
  TimedDriver driver;
  DeviceState timed(test::fake(2), driver);
  timed.swap_allocator(test::make_stack(driver.memory()));
  const auto call_timed = [&] { call_kernel(TENON_OP("told_test"), timed, {&written_, 1}, {&read_, 1}, &attributes_); };
  call_timed();
  EXPECT_THAT(lines, ElementsAre("queued on 0", "kernel"));
  Told told(scopes::kWantsKernels);
  lines.clear();
  const double host_us = virtual_time_us();
  call_timed();
  EXPECT_THAT(lines, ElementsAre("queued on 0", "begins", "kernel", "ends"));
  ASSERT_EQ(told.calls.size(), 1u);
  EXPECT_TRUE(told.calls[0].has_virtual_time);
  EXPECT_EQ(told.calls[0].virtual_host_us, host_us) << "when it is queued";
  EXPECT_EQ(told.calls[0].virtual_us, 5);
  EXPECT_EQ(told.calls[0].flops, 6) << "known as it is needed anyway";
  EXPECT_EQ(told.calls[0].bytes, 48u);
  ASSERT_EQ(driver.queued.size(), 2u);
  for (const KernelWork& work : driver.queued) {
    EXPECT_EQ(work.flops, 6);
    EXPECT_EQ(work.bytes, 48);
  }
}

}  // namespace
}  // namespace tenon
