// write() takes a part, or is interrupted by a signal.
#include <tenon/core/files/write_all.h>

#include <unistd.h>

#include <cerrno>

namespace tenon {

bool write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace tenon
