// Standard error of a child process: to its parent, or to nobody.
#pragma once

#include <string>

namespace tenon::conformance {

class ChildStderr {
 public:
  /// `said`: where it goes, at most 16 KiB of it; null: nowhere. Throws Error where the system has no pipe left.
  explicit ChildStderr(std::string* said);
  ~ChildStderr();
  ChildStderr(const ChildStderr&) = delete;
  ChildStderr& operator=(const ChildStderr&) = delete;

  /// In the child, before its work.
  void begin() const noexcept;
  /// In the parent: takes what there is, without waiting.
  void take();
  /// In the parent: of a pipe that is full the child waits for this one; -1: there is none.
  int descriptor() const { return read_end_; }

 private:
  std::string* const said_;
  int read_end_ = -1, write_end_ = -1;
};

}  // namespace tenon::conformance
