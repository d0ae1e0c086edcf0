// Bins by rule and counts; the figures are NumPy's (numpy.histogram_bin_edges) and PyTorch's (make_histogram).
#include "support/message_of.h"

#include <tenon/tensorboard/histogram.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenon::test {
namespace {

using tensorboard::Histogram;
using tensorboard::histogram_of;

/// 0, 1, 4, 9 … 361.
std::vector<double> squares() {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back(i * i);
  return values;
}

TEST(HistogramBins, RulesGiveNumPysNumberOfBins) {
  // python3 -c 'import numpy as n; v = n.arange(20.) ** 2
  // for r in ("auto", "fd", "scott", "rice", "sturges", "sqrt"): print(r, len(n.histogram_bin_edges(v, r)) - 1)'
  const std::vector<std::pair<const char*, std::size_t>> expected = {{"auto", 6}, {"fd", 3},      {"scott", 3},
                                                                     {"rice", 6}, {"sturges", 6}, {"sqrt", 5}};
  for (const auto& [rule, bins] : expected) {
    const std::vector<double> edges = HistogramBins(rule).edges(squares());
    EXPECT_EQ(edges.size() - 1, bins) << rule;
    EXPECT_EQ(edges.front(), 0) << rule;
    EXPECT_EQ(edges.back(), 361) << rule;
  }
}

TEST(HistogramBins, TheAutomaticRuleIsHeldToTheSquareRootAsInNumPy) {
  // NumPy 2.4.6: len(numpy.histogram_bin_edges(values, "auto")) - 1
  std::vector<double> one_far_away, mostly_zeros(90, 0.0);
  for (int i = 0; i < 100; ++i) one_far_away.push_back(i);
  one_far_away.push_back(1e4);
  for (int i = 0; i < 10; ++i) mostly_zeros.push_back(i);
  EXPECT_EQ(HistogramBins("auto").edges(one_far_away).size() - 1, 21u) << "the quartiles alone make 466";
  EXPECT_EQ(HistogramBins("auto").edges(mostly_zeros).size() - 1, 20u) << "the quartiles are equal";
  one_far_away.back() = 1e15;
  EXPECT_EQ(HistogramBins("auto").edges(one_far_away).size() - 1, 21u);
}

TEST(HistogramBins, DoanesAndStonesRulesGiveNumPysNumberOfBins) {
  // NumPy 2.4.6: len(numpy.histogram_bin_edges(values, rule)) - 1
  std::vector<double> sawtooth, two_heaps, cubes;
  for (int i = 0; i < 500; ++i) sawtooth.push_back(i * 7919 % 1009 / 1009.0);
  for (int i = 0; i < 300; ++i) two_heaps.push_back(i * i % 97 + (i % 3 == 0 ? 1000 : 0));
  for (int i = 0; i < 60; ++i) cubes.push_back(static_cast<double>(i) * i * i);
  struct Row {
    std::vector<double> values;
    std::size_t doane, stone;
  };
  for (const Row& row :
       {Row{squares(), 7, 2}, Row{sawtooth, 11, 1}, Row{two_heaps, 12, 91}, Row{cubes, 10, 93}, Row{{1, 2}, 1, 1},
        Row{{0, 1, 1, 1, 1}, 6, 100}, Row{{0, 0, 0, 0, 1}, 6, 100}, Row{{3, 3, 3, 3, 3}, 1, 1}}) {
    EXPECT_EQ(HistogramBins("doane").edges(row.values).size() - 1, row.doane) << row.values.size();
    EXPECT_EQ(HistogramBins("stone").edges(row.values).size() - 1, row.stone) << row.values.size();
  }
}

TEST(HistogramBins, FixedOnesAreThoseOfTensorFlow) {
  const std::vector<double> edges = HistogramBins("tensorflow").edges({1});
  EXPECT_EQ(edges.size(), 1549u);
  EXPECT_EQ(edges[774], 0);
  EXPECT_EQ(edges[775], 1e-12);
  EXPECT_EQ(edges[773], -1e-12);
  EXPECT_LT(edges.back(), 1e20);
}

TEST(HistogramBins, EqualValuesAreInTheMiddleOfOneBin) {
  EXPECT_THAT(HistogramBins("auto").edges({3, 3, 3}), testing::ElementsAre(2.5, 3.5));
}

TEST(HistogramBins, AValueFarAwayMakesNoBillionsOfBins) {
  std::vector<double> values(1000, 0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) / 1000;
  values.push_back(1e9);
  EXPECT_THROW(HistogramBins("fd").edges(values), Error);
}

TEST(HistogramBins, AMillionOfARuleAreAllowedAndOneMoreIsRefusedWithWhatMakesThem) {
  const auto of_width_3_5 = [](double last) { return HistogramBins("fd").edges({0, 1, 2, 3, 4, 5, 6, last}); };
  EXPECT_EQ(of_width_3_5(3.5e6).size(), 1'000'001u);
  EXPECT_EQ(message_of([&] { of_width_3_5(3.5e6 + 1); }),
            "a width of 3.5 for values from 0 to 3500001 makes 1000001 bins of a histogram, more than 1000000: bins "
            "\"tensorflow\" or a list of edges have no such limit");
}

TEST(HistogramBins, WhatIsNoneIsRefused) {
  EXPECT_EQ(message_of([] { HistogramBins("auto "); }),
            "unknown bins 'auto ' of a histogram; there are tensorflow, auto, fd, scott, doane, stone, rice, sturges, "
            "sqrt, or a list of edges");
  EXPECT_EQ(message_of([] { HistogramBins(std::vector<double>{1}); }),
            "the bins of a histogram need at least 2 edges, got 1");
  EXPECT_EQ(message_of([] {
              HistogramBins(std::vector<double>{0, 2, 1});
            }),
            "the edges of a histogram's bins have to rise, but edge 1 is 2 and edge 2 is 1");
  EXPECT_EQ(HistogramBins(std::vector<double>{1, 1}).edges({}).size(), 2u);
  EXPECT_EQ(message_of([] {
              HistogramBins("auto").edges({INFINITY, NAN});
            }),
            "a histogram with bins by a rule needs a finite value; \"tensorflow\" does not");
}

TEST(Histograms, ABinHoldsItsLowerEdgeAndTheLastOneItsUpperToo) {
  const Histogram histogram = histogram_of({0, 1, 1, 2}, std::vector<double>{0, 1, 2});
  EXPECT_THAT(histogram.limits, testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(histogram.counts, testing::ElementsAre(0, 1, 3));
}

TEST(Histograms, ValuesOfBothSignsAreCountedInFixedBins) {
  const Histogram histogram = histogram_of({-1, 0, 0, 1, 2.5}, "tensorflow");
  double count = 0;
  for (const double one : histogram.counts) count += one;
  EXPECT_EQ(count, 5);
  EXPECT_EQ(histogram.limits.size(), histogram.counts.size());
  EXPECT_EQ(histogram.counts.front(), 0);
  EXPECT_GT(histogram.counts.back(), 0);
  EXPECT_LE(histogram.limits.front(), -1);
  EXPECT_GT(histogram.limits.back(), 2.5);
}

TEST(Histograms, WhatLiesOutsideIsInNoBinAndInTheSums) {
  const Histogram histogram = histogram_of({-5, 0.5, 7}, std::vector<double>{0, 1});
  EXPECT_THAT(histogram.counts, testing::ElementsAre(0, 1));
  EXPECT_EQ(histogram.count, 3);
  EXPECT_EQ(histogram.min, -5);
  EXPECT_EQ(histogram.max, 7);
}

TEST(Histograms, NaNIsInNoBinAndIsSeenInTheEnds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Histogram histogram = histogram_of({1, nan, 2}, "tensorflow");
  double count = 0;
  for (const double one : histogram.counts) count += one;
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(std::isnan(histogram.min));
  EXPECT_TRUE(std::isnan(histogram.max));
}

TEST(Histograms, NoValuesOrNoneWithinTheBinsAreRefused) {
  EXPECT_EQ(message_of([] { histogram_of({}, "tensorflow"); }), "a histogram needs values, got none");
  EXPECT_EQ(message_of([] {
              histogram_of({5, 6}, std::vector<double>{0, 2, 3});
            }),
            "none of the 2 values of a histogram lies within its bins, from 0 to 3");
}

}  // namespace
}  // namespace tenon::test
