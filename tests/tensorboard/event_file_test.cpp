// Event files: records and checksums, held against figures from the formats' documents.
#include "support/message_of.h"
#include "support/scratch_folder.h"
#include "tensorboard/file_limit.h"
#include "tensorboard/read_events.h"

#include <tenon/core/error.h>
#include <tenon/tensorboard/event_file.h>

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace {
bool files_cannot_be_cut = false;
}  // namespace

// In place of the C library's.
extern "C" [[gnu::visibility("default")]] int ftruncate(int descriptor, off_t length) noexcept {
  if (files_cannot_be_cut) {
    errno = EPERM;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, length));
}

namespace tenon::test {
namespace {

using tensorboard::EventFile;
using tensorboard::masked_crc32c;

class EventFiles : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = scratch_folder() + "tensorboard";
};

TEST_F(EventFiles, TheChecksumIsMaskedCrc32c) {
  // RFC 3720, B.4: 32 bytes of zeros give 8a9136aa, of ones 62a8ab43; "123456789" gives e3069283.
  const auto unmasked = [](std::string_view text) {
    const std::uint32_t masked = masked_crc32c(text) - 0xa282ead8U;
    return std::rotl(masked, 15);
  };
  EXPECT_EQ(unmasked(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(unmasked(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(unmasked("123456789"), 0xe3069283U);
}

TEST_F(EventFiles, AFileBeginsWithItsVersionAndHoldsEventsInTheirOrder) {
  EventFile file(folder_);
  file.add("a", 7, 1234.5);
  file.add("b", 300);
  file.add("c", -1);
  file.flush();
  const std::vector<std::string> events = records(content_of(file.path()));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(inside(events[0], 3), "brain.Event:2");
  EXPECT_EQ(double_in(events[1], 1), 1234.5);
  EXPECT_EQ(number_in(events[1], 2), 7u);
  EXPECT_EQ(inside(events[1], 5), "a");
  EXPECT_EQ(number_in(events[2], 2), 300u);
  EXPECT_EQ(static_cast<std::int64_t>(number_in(events[3], 2)), -1);
}

TEST_F(EventFiles, ARestartVoidsLaterSteps) {
  EventFile file(folder_);
  file.add_restart(5);
  file.flush();
  const std::vector<std::string> events = records(content_of(file.path()));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(number_in(events[1], 2), 5u);
  EXPECT_EQ(number_in(inside(events[1], 7), 1), 1u) << "the session log says START";
}

TEST_F(EventFiles, TheNameIsOneThatTensorboardLooksForAndThatNoOtherFileHas) {
  const EventFile first(folder_), second(folder_, ".suffix");
  EXPECT_NE(first.path().find("/events.out.tfevents."), std::string::npos);
  EXPECT_NE(first.path(), second.path());
  EXPECT_TRUE(second.path().ends_with(".suffix"));
}

TEST_F(EventFiles, WhatWasFlushedSurvivesAKillAndIsWhole) {
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    EventFile file(folder_);
    for (int step = 0; step < 100; ++step) {
      file.add(std::string(5000, 'x'), step);
      if (step == 70) file.flush();
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string file = content_of(entry.path().string());
    const std::vector<std::string> events = records(file);
    EXPECT_GE(events.size(), 72u);
    std::size_t bytes = 0;
    for (const std::string& event : events) bytes += 16 + event.size();
    EXPECT_EQ(bytes, file.size()) << "there is a part of a record";
  }
}

TEST_F(EventFiles, WhatFollowsARecordThatHadNoRoomIsReadable) {
  EventFile file(folder_);
  file.add(std::string(1000, 'a'), 1);
  file.flush();
  {
    const FileLimit limit(1500);
    file.add(std::string(1000, 'b'), 2);
    EXPECT_EQ(message_of([&] { file.flush(); }), "cannot write " + file.path() + ": File too large");
    EXPECT_EQ(file.waiting(), 0u);
  }
  file.add("c", 3);
  file.flush();
  const std::vector<std::string> events = records(content_of(file.path()));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(number_in(events[1], 2), 1u);
  EXPECT_EQ(number_in(events[2], 2), 3u);
}

TEST_F(EventFiles, AFileThatTookNothingNeedsNotBeCut) {
  EventFile file(folder_);
  files_cannot_be_cut = true;
  {
    const FileLimit limit(std::filesystem::file_size(file.path()));
    file.add("a", 1);
    EXPECT_EQ(message_of([&] { file.flush(); }), "cannot write " + file.path() + ": File too large");
  }
  files_cannot_be_cut = false;
  file.add("b", 2);
  file.flush();
  const std::vector<std::string> events = records(content_of(file.path()));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(number_in(events[1], 2), 2u);
}

TEST_F(EventFiles, AFileThatCannotBeCutBackIsClosedAndStaysAsItIs) {
  EventFile file(folder_);
  file.add("a", 1);
  file.flush();
  files_cannot_be_cut = true;
  {
    const FileLimit limit(1500);
    file.add(std::string(2000, 'b'), 2);
    EXPECT_EQ(message_of([&] { file.flush(); }), "cannot write " + file.path() +
                                                     ": File too large; it ends with a part of a record, and stays as "
                                                     "it is");
  }
  files_cannot_be_cut = false;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    EXPECT_NE(std::filesystem::read_symlink(open, gone), file.path());
  }
  file.add("c", 3);
  EXPECT_TRUE(message_of([&] { file.flush(); }).starts_with("cannot write " + file.path() + ": "));
  const std::string content = content_of(file.path());
  EXPECT_EQ(content.size(), 1500u);
  EXPECT_EQ(records(content).size(), 2u);
}

TEST_F(EventFiles, EveryEventHasTheTimeOfItsAddingUnlessOneIsGiven) {
  const double before = tensorboard::wall_time_now();
  EXPECT_GT(before, 1.6e9) << "seconds since 1970";
  EventFile file(folder_);
  file.add("a", 1);
  file.add_restart(5);
  file.add("a", 1, 0.0);
  file.flush();
  const double after = tensorboard::wall_time_now();
  const std::vector<std::string> events = records(content_of(file.path()));
  ASSERT_EQ(events.size(), 4u);
  double last = before;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(double_in(events[i], 1), last) << i;
    last = double_in(events[i], 1);
  }
  EXPECT_LE(last, after);
  EXPECT_EQ(double_in(events[3], 1), 0);
}

TEST_F(EventFiles, AFullBufferIsWrittenWithoutAFlush) {
  EventFile file(folder_);
  const auto size = [&] { return std::filesystem::file_size(file.path()); };
  const auto empty = size();
  file.add(std::string(60'000, 'a'), 1);
  EXPECT_EQ(size(), empty);
  EXPECT_EQ(file.waiting(), 1u);
  file.add(std::string(6'000, 'b'), 2);
  EXPECT_GT(size(), empty + 66'000);
  EXPECT_EQ(file.waiting(), 0u);
}

TEST_F(EventFiles, AFolderThatCannotBeMadeIsSaid) { EXPECT_THROW(EventFile("/proc/no/such"), Error); }

}  // namespace
}  // namespace tenon::test
