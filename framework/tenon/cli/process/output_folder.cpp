// Folders of results, and their locks.
#include <tenon/cli/process/output_folder.h>

#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

ConfigError cannot_make(const fs::path& folder, const std::string& reason) {
  return ConfigError(fmt::format("cannot make the folder {}: {}; choose another with --out", folder.string(), reason));
}

/// Those of the folder and the ones that it lies in that are not there.
std::vector<fs::path> missing_folders(const fs::path& folder) {
  std::vector<fs::path> missing;
  fs::path path;
  for (const fs::path& part : folder) {
    path /= part;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) missing.push_back(path);
  }
  return missing;
}

/// A folder that was not there before, named after the experiment and the time.
fs::path new_folder(const std::string& name, std::vector<fs::path>& made) {
  const fs::path parent = "tenon-out";
  made = missing_folders(parent);
  const std::string stem =
      fmt::format("{}-{:%Y%m%d-%H%M%S}", plain_name(name, '-'), fmt::localtime(std::time(nullptr)));
  std::error_code problem;
  fs::create_directories(parent, problem);
  for (int n = 1;; ++n) {
    fs::path folder = parent / (n == 1 ? stem : fmt::format("{}-{}", stem, n));
    // Another run may take the name at this moment: whoever makes the folder has it.
    if (fs::create_directory(folder, problem)) {
      made.push_back(folder);
      return folder;
    }
    if (problem) throw cannot_make(folder, problem.message());
  }
}

/// Who has the lock, from the kernel's list: "process 4711"; empty where it does not say.
std::string holder_of(const struct stat& folder) {
  const std::string place = fmt::format("{:02x}:{:02x}:{}", major(folder.st_dev), minor(folder.st_dev), folder.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string number, kind, mode, access, process, where, rest;
       locks >> number >> kind >> mode >> access >> process >> where && std::getline(locks, rest);) {
    if (kind == "FLOCK" && where == place) return "process " + process;
  }
  return "another process";
}

}  // namespace

// Note [Locks and forks]
// A lock lasts until every process that has its descriptor closes it or ends. What a plugin starts may outlive the run,
// so that forks of this process close theirs at once; programs that are started do not get it (O_CLOEXEC).
static std::vector<int>& locked_descriptors() {
  static std::vector<int> all;
  return all;
}
static void close_in_fork() {
  for (const int descriptor : locked_descriptors()) ::close(descriptor);
}

OutputFolder::OutputFolder(const fs::path& wanted, const std::string& name, double patience_seconds)
    : path_(wanted.empty() ? new_folder(name, new_) : wanted) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_seconds);
  while (!lock()) {
    if (std::chrono::steady_clock::now() >= give_up) {
      struct stat there {};
      ::stat(path_.c_str(), &there);
      throw ConfigError(fmt::format("{} writes to {} at this moment; choose another folder with --out, or wait for it",
                                    holder_of(there), path_.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  remove_dead_partials(path_);
}

std::string writer_of(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const bool is_taken = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat there {};
  ::fstat(descriptor, &there);
  ::close(descriptor);
  return is_taken ? holder_of(there) : std::string();
}

OutputFolder::~OutputFolder() { unlock(); }

void OutputFolder::unlock() {
  if (descriptor_ < 0) return;
  std::erase(locked_descriptors(), descriptor_);
  ::close(descriptor_);
  descriptor_ = -1;
}

/// False when somebody else has it.
bool OutputFolder::lock() {
  std::error_code problem;
  const std::vector<fs::path> missing = missing_folders(path_);
  new_.insert(new_.end(), missing.begin(), missing.end());
  fs::create_directories(path_, problem);
  if (problem) throw cannot_make(path_, problem.message());
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw cannot_make(path_, std::strerror(errno));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor);
    return false;
  }
  // File systems without locks let everybody in, as they always did.
  unlock();
  descriptor_ = descriptor;
  static const int is_prepared = ::pthread_atfork(nullptr, nullptr, &close_in_fork);  // see Note [Locks and forks]
  static_cast<void>(is_prepared);
  locked_descriptors().push_back(descriptor);
  return true;
}

bool OutputFolder::restore() {
  struct stat ours {
  }, there{};
  const bool is_there = ::fstat(descriptor_, &ours) == 0 && ::stat(path_.c_str(), &there) == 0 &&
                        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  if (is_there) return false;
  if (!lock()) throw Error(fmt::format("{} was removed, and another process has taken its place", path_.string()));
  return true;
}

void OutputFolder::remove_new() {
  std::error_code ignored;
  for (auto folder = new_.rbegin(); folder != new_.rend(); ++folder) fs::remove(*folder, ignored);
}

std::string plain_name(const std::string& text, char instead) {
  std::string plain = text;
  for (char& c : plain) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!keep) c = instead;
  }
  return plain;
}

}  // namespace tenon::cli
