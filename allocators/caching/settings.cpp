// Options with PyTorch's names, and their rules.
#include "settings.h"

#include <tenon/core/error.h>
#include <tenon/memory/pytorch/conf.h>

#include <cmath>
#include <cstdlib>
#include <string>

namespace tenon::caching {

OptionSchema option_schema(bool expandable) {
  OptionSchema schema;
  schema.push_back(
      OptionSpec::size("max_split_size", 0, "blocks of this size and above are not split; 0 = no such limit"));
  schema.push_back(OptionSpec::size("max_non_split_rounding", 0,
                                    "how much larger an unsplit block may be than a request above max_split_size; "
                                    "0 = large_segment_size"));
  schema.push_back(
      OptionSpec::text("roundup_power2_divisions", "0",
                       "steps between powers of two that sizes are rounded to: N, or [MiB:N,...,>:N]; 0 = off"));
  schema.push_back(
      OptionSpec::real("garbage_collection_threshold", 0,
                       "share of the limit above which unused segments are freed; needs a fraction below 1")
          .range(0.0, 1.0));
  schema.push_back(OptionSpec::size("large_segment_size", pytorch::kLargeSegmentBytes,
                                    "taken from the device for requests of 1 to 10 MiB"));
  schema.push_back(
      OptionSpec::real("per_process_memory_fraction", 1, "share of the device that may be reserved").range(0.0, 1.0));
  schema.push_back(OptionSpec::boolean("throw_on_cudamalloc_oom", false,
                                       "what the device cannot give is out of memory at once: no flush, no retry"));
  if (expandable) {
    schema.push_back(OptionSpec::text("expandable_segments_reserve", "0",
                                      "length of an address range: a share of the device (0.5) or a size (40GiB), at "
                                      "most 9/8 of the device; 0 = 9/8 of it"));
  } else {
    schema.push_back(OptionSpec::text("compat", "2.x", "whose decisions are reproduced").one_of({"1.13", "2.x"}));
    schema.push_back(OptionSpec::text("ties", "registered",
                                      "of equal free blocks the one whose segment came first is taken (registered), "
                                      "or the one at the lowest address, as before May 2026 and in compat 1.13")
                         .one_of({"registered", "address"}));
    schema.push_back(OptionSpec::size("roundup_bypass_threshold", 0,
                                      "compat 1.13: larger requests skip roundup_power2_divisions; 0 = none"));
  }
  return schema;
}

AllocatorTraits traits(bool expandable) {
  return {.pytorch_conf = expandable ? "expandable_segments:True" : "",
          // Any other limit of PyTorch's is a share of the fraction's; who throws before the device is asked has looked
          // at its size, and so has who makes a range as long as a share of it.
          .depends_on_capacity =
              [expandable](const Options& options) {
                return options.real("per_process_memory_fraction") < 1 || options.boolean("throw_on_cudamalloc_oom") ||
                       (expandable && !options.is_default("expandable_segments_reserve"));
              },
          // PyTorch 1.13 with one division rounds nothing and cuts blocks anywhere.
          .alignment = [expandable](const Options& options) -> std::size_t {
            return !expandable && options.text("compat") == "1.13" ? 1 : kDefaultAlignment;
          }};
}

namespace {

/// "0.5" is a share of the device, "1GiB" a size; a number alone is a share, whatever it is.
void set_reserve(Settings& settings, const std::string& text) {
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0' && std::isfinite(share) && share >= 0) {
    settings.reserve_share = share;
  } else if (const auto bytes = try_parse_size(text); bytes && *bytes != 0) {
    settings.reserve_bytes = *bytes;
  } else {
    throw ConfigError("expandable_segments_reserve is a share of the device (0.5) or a size (40GiB), not '" + text +
                      "'");
  }
}

}  // namespace

Settings settings_from(const Options& options, bool expandable) {
  Settings settings;
  settings.expandable = expandable;
  if (!expandable && options.text("compat") == "1.13") settings.compat = Compat::k1_13;
  const bool old = settings.compat == Compat::k1_13;
  settings.lowest_of_equals = !expandable && options.text("ties") == "address";

  settings.large_segment_bytes = options.size("large_segment_size");
  // It is the page of expandable segments, and a device's pages are of 2 MiB.
  const std::size_t step = expandable ? pytorch::kSmallSegmentBytes : 1 * MiB;
  if (settings.large_segment_bytes % step != 0 || settings.large_segment_bytes <= pytorch::kMinOwnSegmentBytes)
    throw ConfigError("large_segment_size must be a multiple of " + format_size_exact(step) + " above 10MiB" +
                      (expandable ? " with expandable segments" : "") + ", not " +
                      format_size_exact(settings.large_segment_bytes));
  if (old && settings.large_segment_bytes != pytorch::kLargeSegmentBytes)
    throw ConfigError("large_segment_size is fixed at 20MiB in PyTorch 1.13: leave it out, or use compat = \"2.x\"");

  if (const std::size_t limit = options.size("max_split_size"); limit != 0) {
    if (old ? limit <= pytorch::kLargeSegmentBytes : limit < settings.large_segment_bytes)
      throw ConfigError("max_split_size must be " + std::string(old ? "above 20MiB" : "at least large_segment_size (") +
                        (old ? "" : format_size_exact(settings.large_segment_bytes) + ")") + ", not " +
                        format_size_exact(limit));
    settings.max_split_bytes = limit;
  }
  settings.max_non_split_rounding_bytes = settings.large_segment_bytes;
  if (const std::size_t slack = options.size("max_non_split_rounding"); slack != 0) {
    if (old && slack != pytorch::kLargeSegmentBytes)
      throw ConfigError(
          "max_non_split_rounding is fixed at 20MiB in PyTorch 1.13: leave it out, or use compat = \"2.x\"");
    if (slack < settings.large_segment_bytes)
      throw ConfigError("max_non_split_rounding must be at least large_segment_size (" +
                        format_size_exact(settings.large_segment_bytes) + "), not " + format_size_exact(slack));
    settings.max_non_split_rounding_bytes = slack;
  }
  settings.roundup_divisions = parse_roundup_divisions(options.text("roundup_power2_divisions"));
  if (old && options.text("roundup_power2_divisions").find('[') != std::string::npos)
    throw ConfigError("roundup_power2_divisions takes one number in PyTorch 1.13: a list needs compat = \"2.x\"");
  if (!expandable) {
    if (const std::size_t bypass = options.size("roundup_bypass_threshold"); bypass != 0) {
      if (!old)
        throw ConfigError("roundup_bypass_threshold exists in PyTorch 1.13 only: use compat = \"1.13\" with it");
      settings.roundup_bypass_bytes = bypass;
    }
  }
  settings.garbage_collection_threshold = options.real("garbage_collection_threshold");
  if (settings.garbage_collection_threshold >= 1.0)
    throw ConfigError("garbage_collection_threshold must be below 1.0; 0 turns it off");
  settings.memory_fraction = options.real("per_process_memory_fraction");
  settings.throws_before_device_oom = options.boolean("throw_on_cudamalloc_oom");
  if (old && settings.throws_before_device_oom)
    throw ConfigError("PyTorch 1.13 does not have throw_on_cudamalloc_oom: leave it out, or use compat = \"2.x\"");
  if (expandable) set_reserve(settings, options.text("expandable_segments_reserve"));
  return settings;
}

}  // namespace tenon::caching
