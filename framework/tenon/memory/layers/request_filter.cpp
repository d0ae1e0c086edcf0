// The options of a request filter, and reading them.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/layers/request_filter.h>
#include <tenon/memory/purpose_named.h>

#include <fmt/format.h>

namespace tenon {

/// Words for an option that names a purpose: "any" and every purpose.
static std::vector<std::string> purpose_choices() {
  std::vector<std::string> words{"any"};
  for (int i = 0; i < kPurposeCount; ++i) words.emplace_back(name_of(static_cast<Purpose>(i)));
  return words;
}

OptionSchema RequestFilter::options() {
  return {
      OptionSpec::size("min_size", 0, "only requests of at least this many bytes"),
      OptionSpec::size("max_size", 0, "only requests of at most this many bytes; 0 = no upper bound"),
      OptionSpec::text("purpose", "any", "only requests of this purpose").one_of(purpose_choices()),
      OptionSpec::integer("stream", -1, "only requests on this stream; -1 = every stream")
          .range(std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()),
  };
}

RequestFilter::RequestFilter(const Options& options)
    : min_bytes_(options.size("min_size")),
      max_bytes_(options.size("max_size")),
      purpose_(purpose_named(options.text("purpose"))) {  // empty: any
  if (max_bytes_ == 0) max_bytes_ = std::numeric_limits<std::size_t>::max();
  if (max_bytes_ < min_bytes_) {
    throw ConfigError(fmt::format("max_size = {} is below min_size = {}: no request would match",
                                  format_size_exact(max_bytes_), format_size_exact(min_bytes_)));
  }
  if (const std::int64_t stream = options.integer("stream"); stream >= 0) stream_ = static_cast<std::uint64_t>(stream);
}

}  // namespace tenon
