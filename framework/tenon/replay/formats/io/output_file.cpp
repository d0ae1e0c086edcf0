// OutputFile over zlib, which writes plain files too.
#include <tenon/core/error.h>
#include <tenon/replay/formats/io/output_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace tenon::replay {

namespace {
constexpr mode_t kMode = 0666;  // less the user's umask

std::string followed(const std::string& path) {
  constexpr int kMaxLinks = 40;
  struct stat there {};
  // The link of /dev/stdout names a pipe by no path.
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) return path;
  std::filesystem::path real = path;
  std::error_code ignored;
  for (int i = 0; i < kMaxLinks && std::filesystem::is_symlink(real, ignored); ++i)
    real = real.parent_path() / std::filesystem::read_symlink(real, ignored);
  return real.string();
}
}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), target_(followed(path_)) {
  const bool is_standard_output = path_ == "-";
  if (is_standard_output) path_ = "standard output";
  const int descriptor = is_standard_output ? ::dup(STDOUT_FILENO) : open_target();
  if (descriptor < 0) fail();
  file_ = ::gzdopen(descriptor, path_.ends_with(".gz") ? "wb6" : "wbT");
  if (file_ == nullptr) {
    ::close(descriptor);
    throw Error(path_ + ": cannot be written: out of memory");
  }
  buffer_.reserve(kBufferBytes + 4096);
}

int OutputFile::open_target() {
  struct stat there {};
  const bool exists = ::stat(target_.c_str(), &there) == 0;
  if (exists && ::access(target_.c_str(), W_OK) != 0) return -1;
  int descriptor = -1;
  if (!exists || S_ISREG(there.st_mode)) {
    partial_ = target_ + ".partial-" + std::to_string(::getpid());
    descriptor = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
    if (descriptor >= 0 && exists) static_cast<void>(::fchmod(descriptor, there.st_mode & 07777));
    if (descriptor < 0) partial_.clear();
  }
  // A file that may be written in a folder that may not, too.
  if (descriptor < 0 && exists) descriptor = ::open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  return descriptor;
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  ::gzclose(static_cast<gzFile>(file_));
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void OutputFile::fail() const { throw Error(path_ + ": cannot be written: " + std::strerror(errno)); }

void OutputFile::number(std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  buffer_.append(digits, end);
}

void OutputFile::flush() {
  if (buffer_.empty()) return;
  const int written = ::gzwrite(static_cast<gzFile>(file_), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  if (written != static_cast<int>(buffer_.size())) fail();
  buffer_.clear();
}

void OutputFile::close() {
  flush();
  const int code = ::gzclose(static_cast<gzFile>(file_));
  file_ = nullptr;
  if (partial_.empty() && code == Z_OK) return;
  if (code != Z_OK || ::rename(partial_.c_str(), target_.c_str()) != 0) {
    const int reason = errno;
    if (!partial_.empty()) ::unlink(partial_.c_str());
    errno = reason;
    fail();
  }
}

}  // namespace tenon::replay
