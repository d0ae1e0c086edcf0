// Edges by rule, and counting. Rules and conventions are those of numpy.histogram_bin_edges and of PyTorch's
// make_histogram, so that the same values give the same message.
#include <tenon/core/error.h>
#include <tenon/tensorboard/histogram.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>

namespace tenon {

namespace {

/// Values of which a width of bins is made: sorted, at least one, without a NaN.
using Sorted = std::span<const double>;

double range_of(Sorted values) { return values.back() - values.front(); }
double count_of(Sorted values) { return static_cast<double>(values.size()); }

double deviation_of(Sorted values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / count_of(values));
}

/// Between two values where it falls between them.
double quantile_of(Sorted values, double part) {
  const double place = part * (count_of(values) - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - std::floor(place));
}

double sturges(Sorted values) { return range_of(values) / (std::log2(count_of(values)) + 1); }
double square_root(Sorted values) { return range_of(values) / std::sqrt(count_of(values)); }
double rice(Sorted values) { return range_of(values) / (2 * std::cbrt(count_of(values))); }
double scott(Sorted values) {
  return std::cbrt(24 * std::sqrt(std::numbers::pi) / count_of(values)) * deviation_of(values);
}
double freedman_diaconis(Sorted values) {
  return 2 * (quantile_of(values, 0.75) - quantile_of(values, 0.25)) / std::cbrt(count_of(values));
}
/// At most twice as many bins as the square root of the count, however far away one value lies.
double automatic(Sorted values) {
  return std::min(std::max(freedman_diaconis(values), square_root(values) / 2), sturges(values));
}

/// Doane, Aesthetic frequency classifications (1976): more bins for what is skewed.
double doane(Sorted values) {
  const double n = count_of(values), deviation = deviation_of(values);
  if (values.size() <= 2 || deviation <= 0) return 0;
  const double usual = std::sqrt(6 * (n - 2) / ((n + 1) * (n + 3)));
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double skew = 0;
  for (const double value : values) skew += std::pow((value - mean) / deviation, 3);
  return range_of(values) / (1 + std::log2(n) + std::log2(1 + std::abs(skew / n) / usual));
}

/// Stone, An asymptotically optimal histogram selection rule (1984): the count of bins of least cross-validated loss.
double stone(Sorted values) {
  const double n = count_of(values), range = range_of(values);
  if (values.size() <= 1 || range == 0) return 0;
  const auto most = std::max<std::size_t>(100, static_cast<std::size_t>(std::sqrt(n)));
  const auto loss = [&](std::size_t bins) {
    const double width = range / static_cast<double>(bins);
    double squares = 0;
    auto from = values.begin();
    for (std::size_t bin = 0; bin < bins; ++bin) {
      const double edge = values.front() + static_cast<double>(bin + 1) * width;
      const auto to = bin + 1 == bins ? values.end() : std::lower_bound(from, values.end(), edge);
      const double part = static_cast<double>(to - from) / n;
      squares += part * part;
      from = to;
    }
    return (2 - (n + 1) * squares) / width;
  };
  std::size_t best = 1;
  double least = loss(1);
  for (std::size_t bins = 2; bins <= most; ++bins)
    if (const double its = loss(bins); its < least) least = its, best = bins;
  return range / static_cast<double>(best);
}

struct Rule {
  std::string_view name;
  double (*width)(Sorted);
};
constexpr std::array<Rule, 8> kRules = {{{"auto", automatic},
                                         {"fd", freedman_diaconis},
                                         {"scott", scott},
                                         {"doane", doane},
                                         {"stone", stone},
                                         {"rice", rice},
                                         {"sturges", sturges},
                                         {"sqrt", square_root}}};
constexpr std::string_view kFixed = "tensorflow";
constexpr double kMostBins = 1e6;  // one value far away makes many of a small width

const Rule* find_rule(std::string_view name) {
  const auto* found = std::ranges::find(kRules, name, &Rule::name);
  return found == kRules.end() ? nullptr : found;
}

std::vector<double> fixed_edges() {
  std::vector<double> up;
  for (double edge = 1e-12; edge < 1e20; edge *= 1.1) up.push_back(edge);
  std::vector<double> edges;
  for (auto edge = up.rbegin(); edge != up.rend(); ++edge) edges.push_back(-*edge);
  edges.push_back(0);
  edges.insert(edges.end(), up.begin(), up.end());
  return edges;
}

std::vector<double> edges_of_width(double (*width_of)(Sorted), const std::vector<double>& values) {
  std::vector<double> sorted;
  std::ranges::copy_if(values, std::back_inserter(sorted), [](double value) { return std::isfinite(value); });
  if (sorted.empty()) throw Error("a histogram with bins by a rule needs a finite value; \"tensorflow\" does not");
  std::ranges::sort(sorted);
  double first = sorted.front(), last = sorted.back();
  const double width = width_of(sorted);
  double bins = width > 0 ? std::ceil((last - first) / width) : 1;
  if (first == last) {
    first -= 0.5;
    last += 0.5;
    bins = 1;
  }
  if (bins > kMostBins) {
    throw Error(
        fmt::format("a width of {} for values from {} to {} makes {:.0f} bins of a histogram, more than {:.0f}: "
                    "bins \"tensorflow\" or a list of edges have no such limit",
                    width, first, last, bins, kMostBins));
  }
  std::vector<double> edges;
  const double step = (last - first) / bins;
  for (double i = 0; i < bins; ++i) edges.push_back(first + i * step);
  edges.push_back(last);
  return edges;
}

}  // namespace

HistogramBins::HistogramBins(const char* rule) : rule_(rule) {
  if (rule_ == kFixed || find_rule(rule_)) return;
  std::vector<std::string_view> names = {kFixed};
  for (const Rule& known : kRules) names.push_back(known.name);
  throw Error(
      fmt::format("unknown bins '{}' of a histogram; there are {}, or a list of edges", rule_, fmt::join(names, ", ")));
}

HistogramBins::HistogramBins(std::vector<double> edges) : edges_(std::move(edges)) {
  if (edges_.size() < 2)
    throw Error(fmt::format("the bins of a histogram need at least 2 edges, got {}", edges_.size()));
  for (std::size_t i = 1; i < edges_.size(); ++i) {
    if (!(edges_[i - 1] <= edges_[i])) {
      throw Error(fmt::format("the edges of a histogram's bins have to rise, but edge {} is {} and edge {} is {}",
                              i - 1, edges_[i - 1], i, edges_[i]));
    }
  }
}

std::vector<double> HistogramBins::edges(const std::vector<double>& values) const {
  if (rule_.empty()) return edges_;
  const Rule* const rule = find_rule(rule_);
  return rule ? edges_of_width(rule->width, values) : fixed_edges();
}

namespace tensorboard {

Histogram histogram_of(const std::vector<double>& values, const HistogramBins& bins) {
  if (values.empty()) throw Error("a histogram needs values, got none");
  const std::vector<double> edges = bins.edges(values);
  std::vector<double> counts(edges.size() - 1, 0.0);
  Histogram histogram{.min = values[0], .max = values[0], .count = static_cast<double>(values.size())};
  for (const double value : values) {
    histogram.sum += value;
    histogram.sum_of_squares += value * value;
    if (std::isnan(value)) histogram.min = histogram.max = value;
    histogram.min = std::min(histogram.min, value);
    histogram.max = std::max(histogram.max, value);
    if (!(value >= edges.front() && value <= edges.back())) continue;
    const auto above = std::upper_bound(edges.begin(), edges.end(), value);
    const auto bin = static_cast<std::size_t>(above - edges.begin()) - 1;
    ++counts[std::min(bin, counts.size() - 1)];
  }
  const auto has_some = [](double count) { return count > 0; };
  const auto first = std::ranges::find_if(counts, has_some);
  if (first == counts.end()) {
    throw Error(fmt::format("none of the {} values of a histogram lies within its bins, from {} to {}", values.size(),
                            edges.front(), edges.back()));
  }
  const auto start = static_cast<std::size_t>(first - counts.begin());
  const auto end =
      static_cast<std::size_t>(std::find_if(counts.rbegin(), counts.rend(), has_some).base() - counts.begin());
  // Only upper limits are told: an empty bin in front says where the first one begins.
  histogram.limits.assign(edges.begin() + static_cast<std::ptrdiff_t>(start),
                          edges.begin() + static_cast<std::ptrdiff_t>(end) + 1);
  histogram.counts.push_back(0);
  histogram.counts.insert(histogram.counts.end(), first, counts.begin() + static_cast<std::ptrdiff_t>(end));
  return histogram;
}

}  // namespace tensorboard

}  // namespace tenon
