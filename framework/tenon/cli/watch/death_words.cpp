// The sentences.
#include <tenon/cli/watch/death_words.h>

#include <tenon/core/units.h>
#include <tenon/train/progress.h>

#include <fmt/format.h>

#include <cmath>

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

std::string exit_sentence(const std::string& what, const std::string& allocator, const std::string& call, int code,
                          const std::string& during) {
  const std::string ended = code < 0 ? "ended" : fmt::format("ended with code {}", code);
  const std::string where = call.empty() ? "in no call of " + allocator : fmt::format("in {} of {}", call, allocator);
  return fmt::format("the process of {} {} before it was done, {}{}", what, ended, where, during);
}

std::string finished_sentence(const ExperimentResult& result) {
  if (result.steps == 0) return "no step was finished";
  // A device that computes nothing has none from the first step on.
  const bool has_losses = !result.losses.empty() && !std::isnan(result.losses.front());
  return fmt::format("finished: {} of {} steps{}, peak reserved {}", result.steps, result.planned_steps,
                     has_losses ? ", loss " + loss_text(result.losses.back()) : "",
                     format_bytes(static_cast<std::size_t>(result.memory.reserved_bytes.peak)));
}

}  // namespace tenon::cli
