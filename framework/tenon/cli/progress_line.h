// A progress line with an estimate of what is left.
#pragma once

#include <tenon/cli/status_line.h>

#include <cstddef>
#include <string>

namespace tenon::cli {

class ProgressLine {
 public:
  /// `what`: "replaying", "searching".
  ProgressLine(std::string what, bool quiet) : what_(std::move(what)), line_(quiet) {}
  void update(std::size_t done, std::size_t total);

 private:
  std::string what_;
  StatusLine line_;
};

}  // namespace tenon::cli
