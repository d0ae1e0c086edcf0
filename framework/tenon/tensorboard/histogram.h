// Values as a histogram: counts by bins that are fixed, chosen by a rule from the values, or given.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensorboard/messages.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The bins of a histogram. As in NumPy each holds its lower edge, the last its upper one too, and what lies outside is
/// in none.
class TENON_API HistogramBins {
 public:
  /// "tensorflow": edges from 1e-12 to 1e20 and their negatives, each 1.1 times the one before; the same for all steps,
  /// so that these can be compared. "auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt": of one width,
  /// that NumPy's rule of that name gives for the values, at most a million. Throws Error for any other.
  HistogramBins(const char* rule);  // NOLINT: written as a plain name
  /// From edge to edge. Throws Error unless there are at least two, and they rise.
  HistogramBins(std::vector<double> edges);  // NOLINT: written as a list

  /// The edges for those values.
  std::vector<double> edges(const std::vector<double>& values) const;

 private:
  std::string rule_;  ///< empty: edges_ stand
  std::vector<double> edges_;
};

namespace tensorboard {

/// Of bins at both ends without values, one below and none above is kept, as TensorBoard wants them. Throws Error where
/// there are no values.
TENON_API Histogram histogram_of(const std::vector<double>& values, const HistogramBins& bins);

}  // namespace tensorboard

}  // namespace tenon
