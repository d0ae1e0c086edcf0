// Finding: what a check found wrong, and its cause, so that one cause is told once however many checks meet it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tenon::conformance {

// Causes that several checks may meet. A finding without one is its check's own.
namespace cause {
inline constexpr std::string_view kOverlap = "overlap", kOutside = "outside", kStreams = "streams", kBytes = "bytes",
                                  kAlignment = "alignment", kRequest = "request", kMisuse = "misuse", kLeak = "leak",
                                  kTrim = "trim", kFigures = "figures", kReport = "report", kLayout = "layout",
                                  kThrow = "throw";
/// Nothing is wrong: the allocator does not do what the check is about, and the text says so.
inline constexpr std::string_view kNotApplicable = "not applicable";
}  // namespace cause

struct Finding {
  std::string text;              ///< empty: nothing is wrong
  std::string cause;             ///< empty: of this check alone
  bool is_of_a_history = false;  ///< the journal holds the operations that led there

  Finding() = default;
  Finding(std::string what) : text(std::move(what)) {}  // checks return what they found as words
  Finding(const char* what) : text(what) {}
  Finding(std::string_view why, std::string what) : text(std::move(what)), cause(why) {}
  bool empty() const { return text.empty(); }
};

/// Thrown through a check by what stands between it and the allocator.
class BrokenPromise : public std::exception {
 public:
  explicit BrokenPromise(Finding finding) : finding_(std::move(finding)) {}
  const Finding& finding() const { return finding_; }
  const char* what() const noexcept override { return finding_.text.c_str(); }

 private:
  Finding finding_;
};

}  // namespace tenon::conformance
