// Requests drawn from a seed.
#include <tenon/train/input/split_mix.h>
#include <tenon/train/serve/schedule.h>

#include <algorithm>
#include <cmath>

namespace tenon::train {

std::vector<ServedRequest> draw_requests(const Options& serve, std::int64_t vocabulary) {
  SplitMix random(static_cast<std::uint64_t>(serve.integer("seed")));
  const bool is_even = serve.text("lengths") == "uniform";
  const auto length = [&](const char* least, const char* most) {
    const auto low = static_cast<double>(serve.integer(least)), high = static_cast<double>(serve.integer(most));
    const double u = random.uniform();
    const double drawn = is_even ? low + u * (high + 1 - low) : low * std::pow((high + 1) / low, u);
    return std::min(static_cast<std::int64_t>(drawn), serve.integer(most));
  };
  std::vector<ServedRequest> requests;
  double now = 0;
  for (std::int64_t i = 0; i < serve.integer("requests"); ++i) {
    ServedRequest request{.arrival = now};
    const std::int64_t prompt = length("prompt_min", "prompt_max");
    request.output_symbols = length("output_min", "output_max");
    for (std::int64_t j = 0; j < prompt; ++j)
      request.prompt.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(vocabulary)));
    requests.push_back(std::move(request));
    now -= std::log(1 - random.uniform()) / serve.real("arrivals");
  }
  return requests;
}

}  // namespace tenon::train
