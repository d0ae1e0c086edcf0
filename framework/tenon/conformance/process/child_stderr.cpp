// A pipe, which is read so that the child never waits for it, or the device that takes everything.
#include <tenon/conformance/process/child_stderr.h>

#include <tenon/core/error.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tenon::conformance {

namespace {
constexpr std::size_t kMost = 16 * 1024;
}  // namespace

ChildStderr::ChildStderr(std::string* said) : said_(said) {
  if (said == nullptr) {
    write_end_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    return;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Error(std::string("cannot make a pipe for a check: ") + std::strerror(errno));
  read_end_ = ends[0], write_end_ = ends[1];
  ::fcntl(write_end_, F_SETFL, 0);  // the child may wait, this process may not
}

ChildStderr::~ChildStderr() {
  for (const int descriptor : {read_end_, write_end_})
    if (descriptor >= 0) ::close(descriptor);
}

void ChildStderr::begin() const noexcept {
  if (write_end_ < 0) return;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(write_end_, descriptor);
}

void ChildStderr::take() {
  if (read_end_ < 0) return;
  char buffer[4096];
  for (ssize_t count; (count = ::read(read_end_, buffer, sizeof buffer)) > 0;) {
    const std::size_t room = kMost - std::min(kMost, said_->size());
    said_->append(buffer, std::min(room, static_cast<std::size_t>(count)));
  }
}

}  // namespace tenon::conformance
