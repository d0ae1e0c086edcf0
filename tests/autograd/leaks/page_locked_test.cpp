// Page-locked memory belongs to the host: what lives there is watched as the rest of the host's memory is.
#include <tenon/memory/history/history.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace page_locked_program {

using tenon::Tensor;

const tenon::Device kDevice{tenon::kSimulated, 0};

int line_of_batch = 0;
tenon::memory::LeakReport batches_kept() {
  tenon::device_state(kDevice);
  tenon::memory::LeakWatch watch;
  std::vector<Tensor> kept;
  for (int step = 0; step < 12; ++step) {
    line_of_batch = __LINE__ + 1;
    const Tensor batch = tenon::rand({100, 100}).pin_memory();
    kept.push_back(batch);
    batch.to(kDevice, /*non_blocking=*/true).mul(2).sum().item();
    watch.step();
  }
  return watch.report();
}

/// A batch and its page-locked copy are made, and kept, by one line.
tenon::memory::LeakReport batches_kept_with_their_copies() {
  tenon::device_state(kDevice);
  tenon::memory::LeakWatch watch;
  std::vector<Tensor> kept;
  for (int step = 0; step < 12; ++step) {
    for (const bool is_pinned : {false, true})
      kept.push_back(tenon::empty({1000}, tenon::TensorOptions(tenon::kFloat).pinned_memory(is_pinned)));
    watch.step();
  }
  return watch.report();
}

/// One of fifty, of more than an allocator takes to notice that one thread uses it.
tenon::memory::LeakReport many_batches_kept() {
  tenon::device_state(kDevice);
  tenon::memory::LeakWatch watch;
  std::vector<Tensor> kept;
  for (int step = 0; step < 500; ++step) {
    const Tensor batch = tenon::empty({100}, tenon::TensorOptions(tenon::kFloat).pinned_memory(true));
    if (step % 50 == 10) kept.push_back(batch);
    watch.step();
  }
  return watch.report();
}

int line_of_late_batch = 0;
tenon::memory::LeakReport batches_kept_at_the_end() {
  tenon::device_state(kDevice);
  tenon::memory::LeakWatch watch;
  std::vector<Tensor> kept;
  for (int step = 0; step < 40; ++step) {
    line_of_late_batch = __LINE__ + 1;
    const Tensor batch = tenon::rand({100, 100}).pin_memory();
    if (step >= 36) kept.push_back(batch);
    watch.step();
  }
  return watch.report();
}

struct Rows : tenon::data::datasets::Dataset<Rows> {
  tenon::data::Example<> get(std::size_t index) override {
    return {tenon::full({300}, static_cast<double>(index)), tenon::zeros({})};
  }
  std::optional<std::size_t> size() const override { return 80; }
};

/// `most` batches are kept at once. Two passes: at the end of one alone the last batches have been made ahead.
tenon::memory::LeakReport a_loader_whose_batches_are_kept(std::size_t most, std::size_t workers) {
  tenon::device_state(kDevice);
  auto loader = tenon::data::make_data_loader<tenon::data::samplers::SequentialSampler>(
      Rows().map(tenon::data::transforms::Stack<>()),
      tenon::data::DataLoaderOptions(4).workers(workers).pin_memory(true));
  tenon::memory::LeakWatch watch;
  std::deque<Tensor> kept;
  for (int pass = 0; pass < 2; ++pass) {
    for (auto& batch : *loader) {
      kept.push_back(batch.data);
      if (kept.size() > most) kept.pop_front();
      watch.step();
    }
  }
  return watch.report();
}

}  // namespace page_locked_program

namespace tenon::test {
namespace {

using memory::Leak;
using memory::LeakKind;
using memory::LeakReport;
using memory::LiveRecording;
using memory::Mark;
using page_locked_program::kDevice;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string at(int line) { return "(page_locked_test.cpp:" + std::to_string(line) + ")"; }

TEST(PageLockedLeaks, BatchesThatAreKeptAreNamedWithTheirLine) {
  const LeakReport report = page_locked_program::batches_kept();
  ASSERT_THAT(report.leaks, SizeIs(1)) << report.text();
  const Leak& leak = report.leaks.front();
  EXPECT_EQ(leak.kind, LeakKind::kHeld);
  EXPECT_TRUE(leak.page_locked);
  EXPECT_THAT(leak.site, HasSubstr(at(page_locked_program::line_of_batch)));
  EXPECT_THAT(leak.allocated_at, HasSubstr(at(page_locked_program::line_of_batch)));
  EXPECT_EQ(leak.bytes_per_step, 40000);
  EXPECT_THAT(report.text(), HasSubstr(", page-locked), "));
}

TEST(PageLockedLeaks, OfALineThatMakesOtherMemoryTooArePartOfItsLeakAndSaidToBe) {
  const LeakReport report = page_locked_program::batches_kept_with_their_copies();
  ASSERT_THAT(report.leaks, SizeIs(1)) << report.text();
  EXPECT_EQ(report.leaks.front().bytes_per_step, 8000);
  EXPECT_FALSE(report.leaks.front().page_locked) << "half of it is";
  EXPECT_THAT(report.leaks.front().sentence, HasSubstr("; 39.1 KiB of it are page-locked"));
}

TEST(PageLockedLeaks, AreOneWhateverWayTheAllocatorTook) {
  const LeakReport report = page_locked_program::many_batches_kept();
  ASSERT_THAT(report.leaks, SizeIs(1)) << report.text();
  EXPECT_EQ(report.leaks.front().blocks, 10u);
  EXPECT_EQ(report.leaks.front().bytes, 4000u);
  EXPECT_NEAR(report.leaks.front().bytes_per_step, 8, 1);
}

TEST(PageLockedLeaks, AFewOfTheLastStepsAreTooEarlyToTell) {
  const LeakReport report = page_locked_program::batches_kept_at_the_end();
  EXPECT_THAT(report.leaks, IsEmpty()) << report.text();
  ASSERT_THAT(report.late_rises, SizeIs(1));
  EXPECT_TRUE(report.late_rises.front().page_locked);
  EXPECT_EQ(report.late_rises.front().bytes, 4 * 40000u);
  EXPECT_THAT(report.text(),
              HasSubstr("too early to tell: 156.2 KiB more of the last 4 steps (activation, page-locked), "));
}

TEST(PageLockedLeaks, BatchesOfALoaderThatAreKeptAreFoundAndThoseOfOneStepAreNone) {
  for (const std::size_t workers : {0, 2}) {
    const LeakReport all = page_locked_program::a_loader_whose_batches_are_kept(100, workers);
    EXPECT_TRUE(std::ranges::any_of(all.leaks, &Leak::page_locked)) << workers << " workers\n" << all.text();
    const LeakReport one = page_locked_program::a_loader_whose_batches_are_kept(1, workers);
    EXPECT_THAT(one.leaks, IsEmpty()) << workers << " workers\n" << one.text();
  }
}

TEST(PageLockedMemory, IsInTheMarksOfTheHostAndInNoneOfTheDevice) {
  device_state(kDevice);
  const LiveRecording of_host, of_device(kDevice);
  const std::int64_t before_host = memory_allocated();
  const Mark host = memory::mark(), device = memory::mark({}, kDevice);
  const Tensor x = tenon::empty({1000}), pinned = tenon::empty({500}, TensorOptions(kFloat).pinned_memory(true));
  const Mark host_now = memory::mark(), device_now = memory::mark({}, kDevice);
  EXPECT_THAT(device_now.blocks, SizeIs(device.blocks.size()));
  ASSERT_THAT(host_now.blocks, SizeIs(host.blocks.size() + 2));
  const LiveBlock& youngest = host_now.blocks.back();
  EXPECT_TRUE(youngest.page_locked);
  EXPECT_EQ(youngest.bytes, 2000u);
  EXPECT_EQ(youngest.address, reinterpret_cast<std::uintptr_t>(pinned.data_ptr()));
  EXPECT_FALSE(host_now.blocks[host_now.blocks.size() - 2].page_locked);
  EXPECT_GE(memory_allocated() - before_host, 4000) << "the allocator of the host counts its own";

  const memory::MarkDiff grown = memory::diff(host, host_now);
  EXPECT_EQ(grown.bytes, 6000);
  ASSERT_THAT(grown.rows, SizeIs(2));
  EXPECT_FALSE(grown.rows[0].page_locked);
  EXPECT_TRUE(grown.rows[1].page_locked);
  EXPECT_THAT(grown.text(), HasSubstr("+1 x 1.95 KiB    activation, page-locked  "));
  EXPECT_THAT(memory::live_blocks_text(), HasSubstr(" blocks, 1.95 KiB of it page-locked\n"));
  for (const memory::LiveTensor& tensor : memory::live_tensors())
    EXPECT_EQ(tensor.page_locked, tensor.bytes == 2000) << tensor.bytes;
}

TEST(PageLockedMemory, IsSaidToBeInTheTableOfTensorsAndWhereOthersAre) {
  device_state(kDevice);
  const LiveRecording recording;
  const Tensor pinned = tenon::empty({500}, TensorOptions(kFloat).pinned_memory(true)), host = tenon::empty({400}),
               device = tenon::empty({300}, kDevice);
  const std::string text = memory::live_tensors_text();
  EXPECT_THAT(text, HasSubstr("[500] float32, activation, page-locked  "));
  EXPECT_THAT(text, HasSubstr("[400] float32, activation  "));
  EXPECT_THAT(text, HasSubstr("[300] float32, activation, on simulated:0  "));
}

TEST(PageLockedMemory, IsOneRowAndOtherMemoryOfItsLineAnother) {
  device_state(kDevice);
  const LiveRecording recording;
  const Mark before = memory::mark();
  std::vector<Tensor> kept;
  for (const bool is_pinned : {true, false, true})
    kept.push_back(tenon::empty({500}, TensorOptions(kFloat).pinned_memory(is_pinned)));
  std::vector<std::int64_t> page_locked, other;
  for (const memory::DiffRow& row : memory::diff(before, memory::mark()).rows)
    (row.page_locked ? page_locked : other).push_back(row.blocks);
  EXPECT_EQ(page_locked, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(other, (std::vector<std::int64_t>{1}));
}

TEST(PageLockedMemory, ThatWasTakenBeforeARecordingIsNotKnownAndItsEndHurtsNobody) {
  device_state(kDevice);
  Tensor early = tenon::empty({500}, TensorOptions(kFloat).pinned_memory(true));
  {
    const LiveRecording recording;
    EXPECT_THAT(memory::mark().blocks, Each(Field(&LiveBlock::page_locked, false)));
    early = Tensor();
  }
  Tensor kept;
  {
    const LiveRecording recording;
    kept = tenon::empty({500}, TensorOptions(kFloat).pinned_memory(true));
  }
  kept = Tensor();
  const LiveRecording again;
  EXPECT_THAT(memory::mark().blocks, IsEmpty());
}

TEST(PageLockedMemory, IsNoEventOfTheHostsHistory) {
  device_state(kDevice);
  record_memory_history({.stacks = StackContext::kAll});
  {
    const LiveRecording recording;
    const Tensor pinned = tenon::empty({500}, TensorOptions(kFloat).pinned_memory(true));
    EXPECT_THAT(device_state(kCPU).history().live_blocks(), SizeIs(1));
    EXPECT_THAT(device_state(kCPU).history().events(), IsEmpty());
  }
  const Tensor pinned = tenon::empty({700}, TensorOptions(kFloat).pinned_memory(true));
  EXPECT_EQ(device_state(kCPU).history().live_stack(reinterpret_cast<std::uintptr_t>(pinned.data_ptr())), 0u);
  EXPECT_THAT(device_state(kCPU).history().events(), IsEmpty());
  stop_memory_history();
}

}  // namespace
}  // namespace tenon::test
