// Recorder: writes down what a run asks for, and at its end a plan of that.
#pragma once

#include <tenon/memory/allocator.h>
#include <tenon/memory/packing/plan_file.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::planned {

class Recorder {
 public:
  /// Throws Error where the file cannot be written: before the run, not after it.
  explicit Recorder(std::string file);

  const std::string& file() const { return file_; }
  bool is_on() const { return !file_.empty(); }
  /// Returns the number of the request.
  std::uint64_t requested(const Request& request);
  /// Its block is free, with all work on it done.
  void freed(std::uint64_t number) noexcept;
  /// Packs what was recorded for at most that long and writes the plan. Throws Error.
  void write(double seconds) const;

 private:
  const std::string file_;
  std::map<std::uint64_t, std::uint32_t> streams_;
  std::vector<packing::RecordedRequest> requests_;
};

}  // namespace tenon::planned
