// InputFile over read(2) and zlib, so that a complaint about a compressed file knows its byte.
#include <tenon/core/files/nearest_file.h>
#include <tenon/core/text/utf8.h>
#include <tenon/core/units.h>
#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/replay/trace/trace.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tenon::replay {

namespace {
constexpr std::size_t kBufferBytes = 256 * KiB;
/// Text histories compress about 10 times, snapshots with repeated stacks about 60 times; deflate cannot exceed 1032.
constexpr std::uint64_t kMaxExpansion = 400;
constexpr std::uint64_t kExpansionFree = 64 * MiB;
constexpr std::size_t kMaxLineBytes = MiB;
constexpr std::string_view kStandardInput = "-";

using Buffer = std::unique_ptr<std::uint8_t[]>;
Buffer new_buffer() { return std::make_unique_for_overwrite<std::uint8_t[]>(kBufferBytes); }
}  // namespace

/// The file's bytes, inflated where they are gz: one member or several, as gzip itself reads them.
class InputFile::Source {
 public:
  explicit Source(const std::string& path) : path_(path) {
    descriptor_ = path == kStandardInput ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0)
      throw TraceError(path + ": cannot be opened: " + std::strerror(errno) + nearest_file_hint(path));
    struct stat status {};
    const bool is_known = ::fstat(descriptor_, &status) == 0;
    if (!is_known || S_ISDIR(status.st_mode)) {
      const std::string reason = is_known ? "is a directory, not a history" : std::strerror(errno);
      close();
      throw TraceError(path + ": " + reason);
    }
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
    is_regular_ = S_ISREG(status.st_mode);
  }
  ~Source() {
    if (is_gz_) ::inflateEnd(&stream_);
    close();
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// `position`: what has been handed out so far.
  std::span<const std::uint8_t> next(std::uint64_t position) {
    if (!has_begun_) begin();
    if (!is_gz_) {
      while (unread().size() < kBufferBytes && fill()) {
      }
      const auto bytes = unread();
      raw_begin_ = raw_end_;
      return bytes;
    }
    const std::size_t got = inflate();
    if (is_regular_ && position > kExpansionFree && position / kMaxExpansion > file_bytes_) {
      throw TraceError(path_ + ": byte " + std::to_string(position) + ": decompresses to more than " +
                       std::to_string(kMaxExpansion) + " times its " + std::to_string(file_bytes_) +
                       " bytes: refused; gunzip it first if that is right");
    }
    return {inflated_.get(), got};
  }

 private:
  std::span<const std::uint8_t> unread() const { return {raw_.get() + raw_begin_, raw_end_ - raw_begin_}; }
  bool starts_member() const { return unread().size() >= 2 && unread()[0] == 0x1f && unread()[1] == 0x8b; }

  void close() {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }

  /// Reads more behind what is unread; false at the end of the file.
  bool fill() {
    std::memmove(raw_.get(), raw_.get() + raw_begin_, raw_end_ - raw_begin_);
    raw_offset_ += raw_begin_;
    raw_end_ -= raw_begin_;
    raw_begin_ = 0;
    ssize_t got = 0;
    do {
      got = ::read(descriptor_, raw_.get() + raw_end_, kBufferBytes - raw_end_);
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw TraceError(path_ + ": cannot be read: " + std::strerror(errno));
    raw_end_ += static_cast<std::size_t>(got);
    if (is_regular_ && file_bytes_ != 0)
      tell_work("reading " + path_, static_cast<double>(raw_offset_ + raw_end_) / static_cast<double>(file_bytes_));
    return got != 0;
  }

  void begin() {
    has_begun_ = true;
    while (unread().size() < 2 && fill()) {
    }
    is_gz_ = starts_member();
    if (!is_gz_) return;
    constexpr int kGzOnly = 16;
    if (::inflateInit2(&stream_, MAX_WBITS + kGzOnly) != Z_OK) {
      is_gz_ = false;
      throw TraceError(path_ + ": cannot be read: out of memory");
    }
    inflated_ = new_buffer();
  }

  /// As much as one buffer holds; 0 at the end.
  std::size_t inflate() {
    stream_.next_out = inflated_.get();
    stream_.avail_out = kBufferBytes;
    while (stream_.avail_out != 0 && !is_at_end_) {
      if (unread().empty() && !fill()) fail("the gz stream is truncated");
      const auto raw = unread();
      stream_.next_in = const_cast<std::uint8_t*>(raw.data());
      stream_.avail_in = static_cast<unsigned>(raw.size());
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      raw_begin_ += raw.size() - stream_.avail_in;
      if (code == Z_STREAM_END) {
        next_member();
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        fail(std::string("the gz stream is damaged: ") + (stream_.msg == nullptr ? "no reason given" : stream_.msg));
      }
    }
    return kBufferBytes - stream_.avail_out;
  }

  /// Behind a member: another one, the zeros of a tape's last block, or the end.
  void next_member() {
    while (unread().size() < 2 && fill()) {
    }
    if (starts_member()) {
      ::inflateReset(&stream_);
      return;
    }
    while (!unread().empty() || fill()) {
      const auto raw = unread();
      const auto odd = std::ranges::find_if(raw, [](std::uint8_t byte) { return byte != 0; });
      raw_begin_ += static_cast<std::size_t>(odd - raw.begin());
      if (odd != raw.end()) fail("the gz stream has ended, and something else follows");
    }
    is_at_end_ = true;
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw TraceError(path_ + ": byte " + std::to_string(raw_offset_ + raw_begin_) +
                     " of the compressed file: " + reason);
  }

  std::string path_;
  Buffer raw_ = new_buffer();  ///< as read from the file
  std::size_t raw_begin_ = 0;
  std::size_t raw_end_ = 0;
  std::uint64_t raw_offset_ = 0;  ///< in the file, of the buffer's first byte
  Buffer inflated_;
  z_stream stream_{};
  int descriptor_ = -1;
  std::uint64_t file_bytes_ = 0;
  bool is_regular_ = true;
  bool has_begun_ = false;
  bool is_gz_ = false;
  bool is_at_end_ = false;
};

InputFile::InputFile(std::string path) : path_(std::move(path)), source_(std::make_unique<Source>(path_)) {
  if (path_ == kStandardInput) path_ = "standard input";
}

InputFile::InputFile(std::string name, std::span<const std::uint8_t> bytes)
    : path_(std::move(name)), begin_(bytes.data()), next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

InputFile::~InputFile() = default;

bool InputFile::refill() {
  if (source_ == nullptr) return false;
  base_ += static_cast<std::uint64_t>(end_ - begin_);
  const auto bytes = source_->next(base_);
  begin_ = next_ = bytes.data();
  end_ = begin_ + bytes.size();
  return next_ != end_;
}

bool InputFile::read(void* out, std::size_t bytes) {
  auto* target = static_cast<char*>(out);
  while (bytes != 0) {
    const std::string_view piece = available().substr(0, bytes);
    if (piece.empty()) return false;
    std::memcpy(target, piece.data(), piece.size());
    consume(piece.size());
    target += piece.size();
    bytes -= piece.size();
  }
  return true;
}

std::string_view InputFile::head() { return available(); }

bool InputFile::line(std::string_view& line) {
  std::string_view rest = available();
  if (rest.empty()) return false;
  ++line_number_;
  const void* found = std::memchr(rest.data(), '\n', rest.size());
  if (found != nullptr) {  // the common case: the whole line lies in the buffer
    const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - rest.data());
    line = rest.substr(0, length);
    consume(length + 1);
  } else {
    carry_.clear();
    for (;;) {
      const std::size_t end = rest.find('\n');
      carry_.append(rest.substr(0, end));
      if (carry_.size() > kMaxLineBytes) fail_line("a line of more than a mebibyte: this is not a text history");
      consume(end == std::string_view::npos ? rest.size() : end + 1);
      if (end != std::string_view::npos) break;
      rest = available();
      if (rest.empty()) break;
    }
    line = carry_;
  }
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

void InputFile::fail_line(const std::string& reason) const {
  throw TraceError(path_ + ":" + std::to_string(line_number_) + ": " + printable(reason));
}

void InputFile::fail_at(std::uint64_t offset, const std::string& reason) const {
  throw TraceError(path_ + ": byte " + std::to_string(offset) + ": " + reason);
}

}  // namespace tenon::replay
