// Keeping, printing and throwing what layers found wrong.
#include <tenon/core/error.h>
#include <tenon/memory/layers/fault_log.h>

#include <fmt/format.h>

#include <cstdio>

namespace tenon {

namespace {
constexpr std::size_t kKept = 16;
}

OptionSpec FaultLog::option() {
  return OptionSpec::text("on_error", "report",
                          "report: print a fault and go on; throw: also fail the next allocation with it")
      .one_of({"report", "throw"});
}

FaultLog::FaultLog(std::string layer, const Options& options)
    : layer_(std::move(layer)), throws_(options.text("on_error") == "throw") {}

void FaultLog::add(std::string message) noexcept {
  std::lock_guard lock(mutex_);
  ++count_;
  if (messages_.size() >= kKept) return;
  std::fprintf(stderr, "tenon: %s: %s\n", layer_.c_str(), message.c_str());
  try {
    messages_.push_back(std::move(message));
  } catch (...) {  // Printed and counted: that has to do.
  }
}

std::uint64_t FaultLog::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

std::vector<std::string> FaultLog::messages() const {
  std::lock_guard lock(mutex_);
  return messages_;
}

void FaultLog::throw_pending() {
  if (!throws_) return;
  std::lock_guard lock(mutex_);
  if (thrown_ == count_) return;
  const std::string first = thrown_ < messages_.size() ? messages_[thrown_] : "further faults";
  thrown_ = count_;
  throw Error(fmt::format("{}: {}", layer_, first));
}

void FaultLog::throw_first() const {
  std::lock_guard lock(mutex_);
  if (count_ != 0) throw Error(fmt::format("{}: {}", layer_, messages_.empty() ? "a fault" : messages_.front()));
}

void FaultLog::summarize(std::vector<std::pair<std::string, std::string>>& entries) const {
  std::lock_guard lock(mutex_);
  entries.emplace_back("faults", fmt::format("{}", count_));
  for (const std::string& message : messages_) entries.emplace_back("fault", message);
}

}  // namespace tenon
