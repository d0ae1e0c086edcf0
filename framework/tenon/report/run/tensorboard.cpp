// Writing TFRecords of Event messages. Their six fields are written by hand: libprotobuf would need TensorFlow's
// schema, its compiler in the build and itself in every program.
#include <tenon/core/error.h>
#include <tenon/report/run/tensorboard.h>

#include <fcntl.h>
#include <unistd.h>

#include <boost/crc.hpp>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

namespace tenon {

namespace {

constexpr std::size_t kFlushBytes = 1 << 16;

// Little-endian, whatever the host.
template <class T>
void fixed(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}
void varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
/// Wire types of protobuf: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
void key(std::string& out, std::uint32_t field, std::uint32_t wire) { varint(out, field << 3 | wire); }
void bytes(std::string& out, std::uint32_t field, std::string_view value) {
  key(out, field, 2);
  varint(out, value.size());
  out.append(value);
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string event_head(double wall_time) {
  std::string event;
  key(event, 1, 1);
  fixed(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view text) {
  constexpr std::uint32_t kCastagnoli = 0x1edc6f41U, kOnes = 0xffffffffU;
  boost::crc_optimal<32, kCastagnoli, kOnes, kOnes, true, true> sum;
  sum.process_bytes(text.data(), text.size());
  return std::rotr(static_cast<std::uint32_t>(sum.checksum()), 15) + 0xa282ead8U;
}

TensorboardWriter::TensorboardWriter(const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  const double start = now();
  path_ = folder + "/events.out.tfevents." + std::to_string(static_cast<long long>(start)) + "." + host;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0666);
  if (descriptor_ < 0) throw Error("cannot write " + path_ + ": " + std::strerror(errno));
  std::string event = event_head(start);
  bytes(event, 3, "brain.Event:2");
  record(event);
  flush();
}

TensorboardWriter::~TensorboardWriter() {
  if (descriptor_ < 0) return;
  try {
    flush();
  } catch (const Error&) {  // nobody is left to be told
  }
  ::close(descriptor_);
}

void TensorboardWriter::add(std::int64_t step, const std::vector<std::pair<std::string, double>>& values,
                            double wall_time) {
  std::string event = event_head(wall_time == 0 ? now() : wall_time);
  key(event, 2, 0);
  varint(event, static_cast<std::uint64_t>(step));
  std::string summary;
  for (const auto& [tag, number] : values) {
    std::string value;
    bytes(value, 1, tag);
    key(value, 2, 5);
    fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    bytes(summary, 1, value);
  }
  bytes(event, 5, summary);
  record(event);
}

void TensorboardWriter::record(const std::string& event) {
  std::string length;
  fixed(length, static_cast<std::uint64_t>(event.size()));
  buffer_ += length;
  fixed(buffer_, masked_crc32c(length));
  buffer_ += event;
  fixed(buffer_, masked_crc32c(event));
  if (buffer_.size() >= kFlushBytes) flush();
}

void TensorboardWriter::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      buffer_.clear();
      throw Error("cannot write " + path_ + ": " + std::strerror(errno));
    }
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
}

}  // namespace tenon
