// Text through a string stream.
#include <tenon/core/streamed_text.h>

#include <sstream>

namespace tenon {

std::string streamed_text(const std::function<void(std::ostream&)>& write) {
  std::ostringstream stream;
  write(stream);
  return stream.str();
}

}  // namespace tenon
