// dup and dup2; a program that is started from here does not get the kept one.
#include <tenon/core/process/standard_output.h>

#include <fcntl.h>
#include <unistd.h>

namespace tenon {

namespace {
int kept = STDOUT_FILENO;
}  // namespace

void keep_standard_output() noexcept {
  if (kept != STDOUT_FILENO || ::fcntl(STDERR_FILENO, F_GETFD) < 0) return;
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) return;
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    ::close(copy);
    return;
  }
  kept = copy;
}

int standard_output() noexcept { return kept; }

std::string path_of_output(const std::string& path) {
  const bool is_output = path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
  return is_output && kept != STDOUT_FILENO ? "/proc/self/fd/" + std::to_string(kept) : path;
}

}  // namespace tenon
