// Writing beside, fsync, rename.
#include <tenon/core/atomic_file.h>

#include <tenon/core/error.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <system_error>

namespace tenon {

namespace {

constexpr std::string_view kPartial = ".partial-";
constexpr mode_t kMode = 0666;  // less the user's umask

/// The process that writes a file of that name; 0 where the name is no such one.
pid_t writer_of(const std::string& name) {
  const std::size_t at = name.rfind(kPartial);
  if (at == std::string::npos) return 0;
  const char* const first = name.data() + at + kPartial.size();
  const char* const last = name.data() + name.size();
  pid_t writer = 0;
  const auto [end, problem] = std::from_chars(first, last, writer);
  return problem == std::errc() && end == last && writer > 0 ? writer : 0;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), partial_(path_) {
  partial_ += std::string(kPartial) + std::to_string(::getpid());
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (descriptor_ < 0) fail();
}

AtomicFile::~AtomicFile() { drop(); }

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(descriptor_, next, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail();
    next += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

void AtomicFile::commit() {
  // Some file systems cannot flush; there is nothing more that one could do.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail();
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 || ::rename(partial_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(partial_.c_str());
    errno = reason;
    fail();
  }
}

void AtomicFile::fail() {
  const int reason = errno;
  drop();
  throw Error("cannot write " + path_.string() + ": " + std::strerror(reason));
}

void AtomicFile::drop() noexcept {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
  descriptor_ = -1;
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void remove_dead_partials(const std::filesystem::path& folder) noexcept {
  try {
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
      const pid_t writer = writer_of(entry.path().filename().string());
      const bool is_dead = writer != 0 && ::kill(writer, 0) != 0 && errno == ESRCH;
      if (is_dead && entry.is_regular_file(problem)) std::filesystem::remove(entry.path(), problem);
    }
  } catch (const std::exception&) {  // what cannot be listed stays
  }
}

}  // namespace tenon
