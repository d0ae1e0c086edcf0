// A progress line on stderr with an estimate of what is left: for work of more than two seconds, on a terminal only.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tenon::cli {

class ProgressLine {
 public:
  /// `what`: "replaying", "searching".
  ProgressLine(std::string what, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::size_t done, std::size_t total);

 private:
  std::string what_;
  bool is_on_;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tenon::cli
