// InputFile: how far a compressed file may grow, to the byte, and reads that fail or are interrupted.
#include "replay/support.h"

#include <tenon/core/units.h>

#include <gmock/gmock.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace tenon::replay {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kBufferBytes = 256 * KiB;  // handed out at a time
constexpr std::uint64_t kMaxExpansion = 400, kExpansionFree = 64 * MiB;

/// So many zeros, compressed about a thousand times.
std::string zeros_gz(const std::string& name, std::uint64_t bytes) {
  const std::string path = scratch(name);
  const gzFile file = ::gzopen(path.c_str(), "wb6");
  const std::string block(MiB, '\0');
  for (std::uint64_t left = bytes; left != 0; left -= std::min<std::uint64_t>(left, MiB))
    ::gzwrite(file, block.data(), static_cast<unsigned>(std::min<std::uint64_t>(left, MiB)));
  ::gzclose(file);
  return path;
}

/// How many bytes a file holds, or why it is refused.
std::string read_whole(const std::string& path) {
  try {
    InputFile input(path);
    while (!input.available().empty()) input.consume(input.available().size());
    return std::to_string(input.position());
  } catch (const TraceError& error) {
    return error.what();
  }
}

TEST(InputFile, AFileOfUpTo64MiBMayHaveCompressedAsWellAsItLikes) {
  for (const std::uint64_t bytes : {16 * MiB, kExpansionFree}) {
    const std::string path = zeros_gz("free.gz", bytes);
    ASSERT_LT(std::filesystem::file_size(path), bytes / kMaxExpansion) << "what is tried here";
    EXPECT_EQ(read_whole(path), std::to_string(bytes));
    std::filesystem::remove(path);
  }
}

TEST(InputFile, ALargerOneMayBeFourHundredTimesItsFileAndNotMore) {
  constexpr std::uint64_t kBytes = kExpansionFree + 4 * kBufferBytes;
  const std::string path = zeros_gz("grows.gz", kBytes);
  std::filesystem::resize_file(path, kBytes / kMaxExpansion);  // zeros behind the stream, as on a tape
  EXPECT_EQ(read_whole(path), std::to_string(kBytes));
  std::filesystem::resize_file(path, kBytes / kMaxExpansion - 1);
  EXPECT_THAT(read_whole(path), HasSubstr("byte " + std::to_string(kBytes) + ": decompresses to more than 400 times"));
  std::filesystem::remove(path);
}

TEST(InputFile, AReadThatFailsIsToldAndNotRepeated) {
  // Nothing is mapped at address 0.
  EXPECT_THAT(read_whole("/proc/self/mem"), HasSubstr("/proc/self/mem: cannot be read: Input/output error"));
}

std::atomic<int> signals = 0;

/// Until that thread waits in read(2), or `is_over`.
void wait_until_it_reads(const std::atomic<pid_t>& thread, const std::atomic<bool>& is_over) {
  const std::string reads = std::to_string(SYS_read) + " ";
  while (!is_over) {
    if (thread != 0 && content("/proc/self/task/" + std::to_string(thread) + "/syscall").starts_with(reads)) return;
    std::this_thread::yield();
  }
}

TEST(InputFile, AReadThatASignalInterruptsGoesOn) {
  const std::string path = scratch("pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int pipe = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct sigaction counted {
  }, before{};
  counted.sa_handler = [](int) { ++signals; };  // without SA_RESTART
  ::sigaction(SIGUSR1, &counted, &before);
  std::atomic<pid_t> id = 0;
  std::atomic<bool> is_over = false;
  std::string said;
  std::thread reader([&] {
    id = static_cast<pid_t>(::syscall(SYS_gettid));
    said = read_whole(path);
    is_over = true;
  });
  wait_until_it_reads(id, is_over);
  ::pthread_kill(reader.native_handle(), SIGUSR1);
  while (signals == 0 && !is_over) std::this_thread::yield();
  wait_until_it_reads(id, is_over);
  EXPECT_EQ(::write(pipe, "a line\n", 7), 7);
  ::close(pipe);
  reader.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(said, "7");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon::replay
