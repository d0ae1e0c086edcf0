// The table, which was made by trying mutants: an allocator with only the first fault of a row shows the failures
// behind it, too.
#include <tenon/conformance/findings/consequences.h>

#include <tenon/conformance/finding.h>

#include <algorithm>
#include <initializer_list>

namespace tenon::conformance {

namespace {

struct Consequences {
  std::string_view earlier;
  std::initializer_list<std::string_view> failures;  ///< "*": whatever there is; "signal 6*": what begins so
};

const Consequences kTable[] = {
    // Two owners of one byte: nothing that comes later can be trusted.
    {cause::kOverlap, {"*"}},
    {cause::kOutside, {"*"}},
    {cause::kBytes,
     {cause::kOverlap, cause::kOutside, cause::kStreams, cause::kLayout, cause::kFigures, cause::kReport,
      "keeps_payloads", "refuses_huge_sizes", "survives_out_of_memory"}},
    {cause::kAlignment, {cause::kOverlap, cause::kOutside, cause::kLayout}},
    {cause::kMisuse, {cause::kFigures, cause::kReport, cause::kLeak, cause::kTrim, "trims"}},
    {cause::kThrow, {"signal 6*"}},  // out of a thread, or of a function that may not throw
    // Memory that stays taken is missed elsewhere.
    {"reuses_memory",
     {"trims", "survives_out_of_memory", "retries_before_out_of_memory", "needs_no_growing_memory", cause::kReport}},
    {"trims", {"survives_out_of_memory", "retries_before_out_of_memory"}},
    // What goes wrong in one refused request goes wrong in all of them.
    {"refuses_huge_sizes", {cause::kFigures, cause::kLayout, "survives_out_of_memory", "survives_a_small_device"}},
    {"survives_out_of_memory", {cause::kFigures, cause::kLayout, "survives_a_small_device"}},
    {"retries_before_out_of_memory", {cause::kLeak, "survives_a_small_device"}},
};

bool matches(std::string_view failure, std::string_view pattern) {
  if (!pattern.ends_with('*')) return failure == pattern;
  pattern.remove_suffix(1);
  return failure.starts_with(pattern);
}

}  // namespace

std::string failure_key(std::string_view check, std::string_view cause) {
  return std::string(cause.empty() ? check : cause);
}

bool may_come_of(std::string_view failure, std::string_view earlier) {
  return std::ranges::any_of(kTable, [&](const Consequences& row) {
    return row.earlier == earlier &&
           std::ranges::any_of(row.failures, [&](std::string_view one) { return matches(failure, one); });
  });
}

}  // namespace tenon::conformance
