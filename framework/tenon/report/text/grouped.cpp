// A comma before each three digits from the right.
#include <tenon/report/text/grouped.h>

#include <cstddef>

namespace tenon {

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

}  // namespace tenon
