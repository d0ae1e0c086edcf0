// Records of Event messages, and the file they are in.
#include <tenon/core/error.h>
#include <tenon/core/process/host_name.h>
#include <tenon/tensorboard/event_file.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <protozero/pbf_writer.hpp>

#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tenon::tensorboard {

namespace {

constexpr std::size_t kFlushBytes = 1 << 16;

/// Fields of Event and of SessionLog.
enum Field : protozero::pbf_tag_type { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
constexpr protozero::pbf_tag_type kSessionStatus = 1;
constexpr std::int32_t kSessionStarts = 1;

// Little-endian, whatever the host.
template <class T>
void append_fixed(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

/// Counts the files of this process: several may be begun within a second.
std::atomic<unsigned> files{0};

}  // namespace

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::uint32_t masked_crc32c(std::string_view text) {
  constexpr std::uint32_t kCastagnoli = 0x1edc6f41U, kOnes = 0xffffffffU;
  boost::crc_optimal<32, kCastagnoli, kOnes, kOnes, true, true> sum;
  sum.process_bytes(text.data(), text.size());
  return std::rotr(static_cast<std::uint32_t>(sum.checksum()), 15) + 0xa282ead8U;
}

EventFile::EventFile(const std::string& folder, std::string_view suffix) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  const double start = wall_time_now();
  path_ = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}{}", folder, static_cast<std::int64_t>(start), host_name(),
                      ::getpid(), files++, suffix);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0666);
  if (descriptor_ < 0) {
    const std::string reason = problem ? problem.message() : std::strerror(errno);
    throw Error("cannot write " + path_ + ": " + reason);
  }
  std::string event;
  protozero::pbf_writer message(event);
  message.add_double(kWallTime, start);
  message.add_string(kFileVersion, "brain.Event:2");
  record(event);
  flush();
}

EventFile::~EventFile() {
  if (descriptor_ < 0) return;
  try {
    flush();
  } catch (const Error&) {  // nobody is left to be told
  }
  ::close(descriptor_);
}

void EventFile::add(std::string_view summary, std::int64_t step, std::optional<double> wall_time) {
  std::string event;
  protozero::pbf_writer message(event);
  message.add_double(kWallTime, wall_time ? *wall_time : wall_time_now());
  message.add_int64(kStep, step);
  message.add_message(kSummary, summary.data(), summary.size());
  record(event);
}

void EventFile::add_restart(std::int64_t step) {
  std::string event;
  protozero::pbf_writer message(event);
  message.add_double(kWallTime, wall_time_now());
  message.add_int64(kStep, step);
  protozero::pbf_writer session(message, kSessionLog);
  session.add_enum(kSessionStatus, kSessionStarts);
  session.commit();
  record(event);
}

void EventFile::record(std::string_view event) {
  std::string length;
  append_fixed(length, static_cast<std::uint64_t>(event.size()));
  buffer_ += length;
  append_fixed(buffer_, masked_crc32c(length));
  buffer_ += event;
  append_fixed(buffer_, masked_crc32c(event));
  ++waiting_;
  if (buffer_.size() >= kFlushBytes) flush();
}

void EventFile::flush() {
  std::size_t done = 0;
  waiting_ = 0;
  // A record that an earlier flush has left in part would hide all that follows it.
  const auto keep_whole_records = [this] { return ::ftruncate(descriptor_, whole_bytes_) == 0; };
  while (done < buffer_.size()) {
    const ssize_t written = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const std::string reason = std::strerror(errno);
      buffer_.clear();
      if (done > 0 && !keep_whole_records()) {
        ::close(std::exchange(descriptor_, -1));
        throw Error("cannot write " + path_ + ": " + reason + "; it ends with a part of a record, and stays as it is");
      }
      throw Error("cannot write " + path_ + ": " + reason);
    }
    done += static_cast<std::size_t>(written);
  }
  whole_bytes_ += static_cast<std::int64_t>(buffer_.size());
  buffer_.clear();
}

}  // namespace tenon::tensorboard
