// Writing beside, fsync, rename. A writer holds a lock on what it writes: the kernel takes that from a process that is
// gone, whereas a process number may be another's by now, or that of a zombie, or of another container.
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/files/write_all.h>

#include <tenon/core/error.h>
#include <tenon/core/process/standard_output.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

namespace tenon {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial-";
constexpr mode_t kMode = 0666;  // less the user's umask

/// The end of every chain of links; the path itself where it leads to something that is not a regular file, for the
/// link /dev/stdout names a pipe by no path.
fs::path followed(const fs::path& given) {
  fs::path path = path_of_output(given.string());
  constexpr int kMaxLinks = 40;
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) return path;
  fs::path real = path;
  std::error_code ignored;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(real, ignored); ++i)
    real = real.parent_path() / fs::read_symlink(real, ignored);
  return real;
}

bool is_name_of_partial(const std::string& name) {
  const std::size_t at = name.rfind(kPartial);
  if (at == std::string::npos) return false;
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const std::string_view writer = std::string_view(name).substr(at + kPartial.size());
  const std::size_t dash = std::min(writer.find('-'), writer.size());
  return is_number(writer.substr(0, dash)) && (dash == writer.size() || is_number(writer.substr(dash + 1)));
}

bool lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

/// Removes the file unless somebody writes it; false if somebody does. Its name is gone before the lock is.
bool remove_unless_written(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return true;
  const bool is_free = lock(descriptor);
  const bool is_written = !is_free && errno == EWOULDBLOCK;
  struct stat there {};
  if (is_free && ::fstat(descriptor, &there) == 0 && S_ISREG(there.st_mode)) ::unlink(path.c_str());
  ::close(descriptor);
  return !is_written;
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), target_(followed(path_)) { open(); }

AtomicFile::~AtomicFile() { drop(); }

void AtomicFile::open() {
  struct stat there {};
  const bool exists = ::stat(target_.c_str(), &there) == 0;
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail();
  if (!exists || S_ISREG(there.st_mode)) open_partial(exists);
  if (descriptor_ >= 0 && exists) static_cast<void>(::fchmod(descriptor_, there.st_mode & 07777));
  if (descriptor_ < 0 && exists) descriptor_ = ::open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (descriptor_ < 0) fail();
}

/// Leaves descriptor_ at -1 where the folder takes no new file.
void AtomicFile::open_partial(bool exists) {
  const std::string stem = target_.string() + std::string(kPartial) + std::to_string(::getpid());
  for (int n = 1; descriptor_ < 0;) {
    partial_ = n == 1 ? stem : stem + "-" + std::to_string(n);
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kMode);
    if (descriptor_ < 0) {
      const int reason = errno;
      partial_.clear();
      errno = reason;
      return;
    }
    struct stat ours {};
    const bool is_ours = lock(descriptor_) || errno != EWOULDBLOCK;  // a file system without locks has one writer
    const bool is_there = ::fstat(descriptor_, &ours) == 0 && ours.st_nlink > 0;
    if (is_ours && is_there) {
      if (::ftruncate(descriptor_, 0) != 0) fail();
      return;
    }
    if (!is_ours) ++n;  // the same process writes the same file a second time
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  if (!write_all(descriptor_, {static_cast<const char*>(data), bytes})) fail();
}

void AtomicFile::commit(Durable durable) {
  // Some file systems, and no pipe, can flush; there is nothing more that one could do.
  if (durable == Durable::kYes && ::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail();
  // The name comes before the lock goes: until then nobody takes the file for one that was left behind.
  if (!partial_.empty() && ::rename(partial_.c_str(), target_.c_str()) != 0) fail();
  partial_.clear();
  const int descriptor = descriptor_;
  descriptor_ = -1;
  ::close(descriptor);
}

void AtomicFile::fail() {
  const int reason = errno;
  drop();
  throw Error("cannot write " + path_.string() + ": " + std::strerror(reason));
}

void AtomicFile::drop() noexcept {
  if (!partial_.empty()) ::unlink(partial_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
  partial_.clear();
  descriptor_ = -1;
}

void write_atomically(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void remove_dead_partials(const fs::path& folder) noexcept {
  constexpr auto kPatience = std::chrono::milliseconds(500);  // in which the kernel ends a process that was killed
  constexpr auto kPause = std::chrono::milliseconds(5);
  try {
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    std::error_code problem;
    for (const auto& entry : fs::directory_iterator(folder, problem)) {
      if (!is_name_of_partial(entry.path().filename().string())) continue;
      while (!remove_unless_written(entry.path()) && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(kPause);
    }
  } catch (const std::exception&) {  // what cannot be listed stays
  }
}

}  // namespace tenon
