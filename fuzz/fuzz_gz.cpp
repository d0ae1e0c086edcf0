// Fuzzes the reading of files, gz or not: the bytes are a file of their own, which any reader may then take.
#include <tenon/replay/formats/readers.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  const int descriptor = ::memfd_create("input", MFD_CLOEXEC);
  if (descriptor < 0 || ::write(descriptor, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    replay::read_traces("/proc/self/fd/" + std::to_string(descriptor));
  } catch (const replay::TraceError&) {
  }
  ::close(descriptor);
  return 0;
}
