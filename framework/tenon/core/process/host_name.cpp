// The system's answer as a string.
#include <tenon/core/process/host_name.h>

#include <unistd.h>

namespace tenon {

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace tenon
