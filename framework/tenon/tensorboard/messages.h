// The messages that TensorBoard reads, encoded: Summary values of every kind. Fields and numbers are those of
// summary.proto, tensor.proto and of the plugins' own plugin_data.proto.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensorboard/hparam.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::tensorboard {

/// What HistogramProto has: counts by the upper limits of their buckets.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;  ///< of one length
};

/// An image as a file: PNG.
struct EncodedImage {
  int height = 0, width = 0, channels = 0;
  std::string png;
};

enum class SessionStatus : std::uint8_t { kSuccess = 1, kFailure = 2 };

/// Summaries, to be put into an event; what is no UTF-8 becomes U+FFFD in them. A summary of several values is one
/// after the other: messages concatenate.
std::string scalar_summary(std::string_view tag, double value);
std::string histogram_summary(std::string_view tag, const Histogram& histogram);
std::string image_summary(std::string_view tag, const EncodedImage& image);
/// Markdown, for the plugin "text".
std::string text_summary(std::string_view tag, std::string_view text);

// For the plugin "hparams": what an experiment varies and what it measures; what one run had; how it ended.

TENON_API std::string experiment_summary(const HParams& parameters, const std::vector<std::string>& metrics);
TENON_API std::string session_start_summary(const HParams& parameters);
TENON_API std::string session_end_summary(SessionStatus status);

}  // namespace tenon::tensorboard
