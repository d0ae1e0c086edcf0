// A launcher ends all ranks when the first one ends badly. If that were another one than rank 0, rank 0 might be ended
// before it has spoken: so they wait, and a rank that alone meets an error says it late.
#include <tenon/cli/process/first_rank.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace tenon::cli {

namespace {

constexpr std::chrono::seconds kTimeOfRank0{10};
constexpr std::chrono::milliseconds kPause{20};

}  // namespace

std::string said_after_rank_0(const std::string& message) {
  RankEnvironment own;
  try {
    own = rank_environment();
  } catch (const ConfigError&) {  // of which the message is
  }
  if (own.rank == 0) return message;
  const auto until = std::chrono::steady_clock::now() + kTimeOfRank0;
  while (std::chrono::steady_clock::now() < until) {
    if (interrupt_signal() != 0) return {};
    std::this_thread::sleep_for(kPause);
  }
  return with_rank(message, own.rank, own.size);
}

std::string with_rank(std::string_view message, int rank, int size) {
  std::string prefix = fmt::format("rank {} of {}: ", rank, size);
  if (message.starts_with(prefix)) prefix.clear();
  return prefix.append(message);
}

}  // namespace tenon::cli
