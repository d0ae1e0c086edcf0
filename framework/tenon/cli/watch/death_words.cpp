// The sentences.
#include <tenon/cli/watch/death_words.h>

#include <fmt/format.h>

namespace tenon::cli {

std::string titled(const std::string& allocator, const std::string& file) {
  return file.empty() ? allocator : fmt::format("{} ({})", allocator, file);
}

std::string hang_sentence(const std::string& allocator, const std::string& call, double seconds,
                          const std::string& during) {
  return fmt::format("{} did not come back from {} within {:.3g} s (--deadline){}", allocator, call, seconds, during);
}

std::string crash_sentence(const std::string& what, const std::string& allocator, const std::string& call,
                           const std::string& cause, const std::string& during) {
  return call.empty() ? fmt::format("{} crashed{}, in no call of {}: {}", what, during, allocator, cause)
                      : fmt::format("{} crashed in {}{}: {}", allocator, call, during, cause);
}

}  // namespace tenon::cli
