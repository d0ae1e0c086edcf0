// Requests of a served model, drawn from a seed: who comes when, with how long a prompt, and how much each is given.
// The same on every machine.
#include <tenon/core/options.h>
#include <tenon/train/input/split_mix.h>
#include <tenon/train/run_experiment.h>
#include <tenon/train/serve/schedule.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using train::ServedRequest;
using Settings = std::vector<std::pair<std::string, std::string>>;

Options serve_section(const Settings& settings) {
  for (const SectionSpec& section : training_sections()) {
    if (section.name != "serve") continue;
    Options options(section.options);
    for (const auto& [name, value] : settings) options.set_text(name, value);
    return options;
  }
  throw Error("there is no section [serve]");
}

/// The generator of the draws as Steele et al., 2014, have it.
class DrawsOfSeed {
 public:
  explicit DrawsOfSeed(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double uniform() { return std::ldexp(static_cast<double>(next() >> 11), -53); }

 private:
  std::uint64_t state_;
};

TEST(SplitMix, GivesThePublishedNumbers) {
  train::SplitMix zero(0), other(1234567);
  EXPECT_EQ(zero.next(), 0xe220a8397b1dcdafU);
  EXPECT_EQ(zero.next(), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(zero.next(), 0x06c45d188009454fU);
  for (const std::uint64_t number : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U})
    EXPECT_EQ(other.next(), number);
  train::SplitMix parts(0);
  EXPECT_EQ(parts.uniform(), static_cast<double>(0xe220a8397b1dcdafU >> 11) / 9007199254740992.0);
  DrawsOfSeed draws(99);
  train::SplitMix same(99);
  for (int i = 0; i < 100; ++i) {
    const double drawn = same.uniform();
    EXPECT_EQ(drawn, draws.uniform());
    EXPECT_LT(drawn, 1);
  }
}

// Of each request the length of its prompt, how much it is given, its prompt, and when the next one comes, in this
// order.
TEST(DrawnRequests, FollowTheFormulasOfTheirRanges) {
  for (const std::string lengths : {"uniform", "log-uniform"}) {
    const std::int64_t least = 3, most = 40, fewest = 2, largest = 9, vocabulary = 11;
    const double arrivals = 0.25;
    const auto requests = train::draw_requests(serve_section({{"requests", "200"},
                                                              {"arrivals", "0.25"},
                                                              {"lengths", lengths},
                                                              {"prompt_min", "3"},
                                                              {"prompt_max", "40"},
                                                              {"output_min", "2"},
                                                              {"output_max", "9"},
                                                              {"seed", "6"}}),
                                               vocabulary);
    ASSERT_EQ(requests.size(), 200U);
    DrawsOfSeed draws(6);
    const auto length = [&](std::int64_t low, std::int64_t high) {
      const double u = draws.uniform(), from = static_cast<double>(low), to = static_cast<double>(high + 1);
      const double drawn = lengths == "uniform" ? from + u * (to - from) : from * std::pow(to / from, u);
      return static_cast<std::int64_t>(drawn);
    };
    double now = 0;
    for (const ServedRequest& request : requests) {
      ASSERT_EQ(request.arrival, now) << lengths;
      ASSERT_EQ(static_cast<std::int64_t>(request.prompt.size()), length(least, most));
      ASSERT_EQ(request.output_symbols, length(fewest, largest));
      for (const std::int64_t symbol : request.prompt)
        ASSERT_EQ(symbol, static_cast<std::int64_t>(draws.next() % static_cast<std::uint64_t>(vocabulary)));
      now += -std::log(1 - draws.uniform()) / arrivals;
    }
  }
}

TEST(DrawnRequests, ComeAsOftenAsIsSaidWithLengthsOfTheWholeRange) {
  const auto requests = train::draw_requests(
      serve_section({{"requests", "2000"}, {"arrivals", "4"}, {"prompt_min", "1"}, {"prompt_max", "3"}}), 256);
  EXPECT_EQ(requests.front().arrival, 0) << "the first one waits for nobody";
  EXPECT_NEAR(requests.back().arrival, 2000 / 4.0, 40);
  EXPECT_TRUE(std::ranges::is_sorted(requests, {}, &ServedRequest::arrival));
  // Evenly in their logarithm, from 1 to below 4: half of them are 1.
  std::vector<double> share(4);
  for (const ServedRequest& request : requests) share.at(request.prompt.size()) += 1.0 / 2000;
  EXPECT_NEAR(share[1], std::log(2) / std::log(4), 0.04);
  EXPECT_NEAR(share[2], std::log(1.5) / std::log(4), 0.04);
  EXPECT_NEAR(share[3], std::log(4 / 3.0) / std::log(4), 0.04);
}

TEST(DrawnRequests, OfOneLengthHaveIt) {
  for (const std::string lengths : {"uniform", "log-uniform"})
    for (const ServedRequest& request : train::draw_requests(serve_section({{"requests", "50"},
                                                                            {"lengths", lengths},
                                                                            {"prompt_min", "5"},
                                                                            {"prompt_max", "5"},
                                                                            {"output_min", "1"},
                                                                            {"output_max", "1"}}),
                                                             7)) {
      EXPECT_EQ(request.prompt.size(), 5U);
      EXPECT_EQ(request.output_symbols, 1);
    }
}

}  // namespace
}  // namespace tenon::test
