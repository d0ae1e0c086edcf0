// InputFile over zlib, which reads plain files as they are.
#include <tenon/core/units.h>
#include <tenon/replay/input_file.h>
#include <tenon/replay/trace.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tenon::replay {

namespace {
constexpr std::size_t kBufferBytes = 256 * KiB;
/// Text histories compress about 10 times, snapshots with repeated stacks about 60 times; deflate cannot exceed 1032.
constexpr std::uint64_t kMaxExpansion = 400;
constexpr std::uint64_t kExpansionFree = 64 * MiB;
constexpr std::size_t kMaxLineBytes = MiB;
}  // namespace

class InputFile::Source {
 public:
  explicit Source(const std::string& path) : buffer_(kBufferBytes) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw TraceError(path + ": cannot be opened: " + std::strerror(errno));
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || S_ISDIR(status.st_mode)) {
      ::close(descriptor);
      throw TraceError(path + ": is a directory, not a trace");
    }
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
    is_regular_ = S_ISREG(status.st_mode);
    file_ = ::gzdopen(descriptor, "rb");
    if (file_ == nullptr) {
      ::close(descriptor);
      throw TraceError(path + ": cannot be read: out of memory");
    }
    ::gzbuffer(file_, 128 * 1024);
  }
  ~Source() { ::gzclose(file_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::span<const std::uint8_t> next(const InputFile& owner, std::uint64_t position) {
    const int got = ::gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int code = Z_OK;
    const char* message = ::gzerror(file_, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      if (code == Z_BUF_ERROR)
        owner.fail_at(position + static_cast<std::uint64_t>(std::max(got, 0)), "the gz stream is truncated");
      std::string_view reason = code == Z_ERRNO ? std::strerror(errno) : message;
      if (reason.starts_with("<fd:")) reason.remove_prefix(std::min(reason.size(), reason.find(": ") + 2));
      owner.fail_at(position, "the gz stream is damaged: " + std::string(reason));
    }
    if (is_regular_ && position > kExpansionFree && position / kMaxExpansion > file_bytes_) {
      owner.fail_at(position, "decompresses to more than " + std::to_string(kMaxExpansion) + " times its " +
                                  std::to_string(file_bytes_) + " bytes: refused; gunzip it first if that is right");
    }
    return {buffer_.data(), static_cast<std::size_t>(got)};
  }

 private:
  std::vector<std::uint8_t> buffer_;
  gzFile file_ = nullptr;
  std::uint64_t file_bytes_ = 0;
  bool is_regular_ = true;
};

InputFile::InputFile(std::string path) : path_(std::move(path)), source_(std::make_unique<Source>(path_)) {}

InputFile::InputFile(std::string name, std::span<const std::uint8_t> bytes)
    : path_(std::move(name)), begin_(bytes.data()), next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

InputFile::~InputFile() = default;

bool InputFile::refill() {
  if (source_ == nullptr) return false;
  base_ += static_cast<std::uint64_t>(end_ - begin_);
  const auto bytes = source_->next(*this, base_);
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
      if (carry_.size() > kMaxLineBytes) fail_line("a line of more than a mebibyte: this is not a text trace");
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
  throw TraceError(path_ + ":" + std::to_string(line_number_) + ": " + reason);
}

void InputFile::fail_at(std::uint64_t offset, const std::string& reason) const {
  throw TraceError(path_ + ": byte " + std::to_string(offset) + ": " + reason);
}

}  // namespace tenon::replay
