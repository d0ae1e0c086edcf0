// Series of live bytes by the stack that allocated them; those that grow are looked for in the graph of holders.
#include <tenon/autograd/leaks/leak_causes.h>
#include <tenon/autograd/leaks/leak_watch.h>

#include <tenon/core/units.h>
#include <tenon/memory/history/growth.h>
#include <tenon/tensor/live_tensors.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tenon::memory {

namespace {

constexpr std::size_t kKeptSteps = 64;  ///< of a series

}  // namespace

std::string_view name_of(LeakKind kind) {
  constexpr std::string_view kNames[] = {"held", "kept graph", "hook", "alias", "retained gradient", "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

class LeakWatch::Impl {
 public:
  Impl(Device device, std::size_t warmup_steps)
      : recording_(device), warmup_steps_(warmup_steps), next_look_(warmup_steps + kLeastStepsOfGrowth) {}
  void step();
  LeakReport report() const;

 private:
  using Group = std::tuple<StackId, Purpose, std::uint16_t>;  ///< and label
  /// Ends of steps, and what lived at them: the last ones, or the whole time in stretches.
  struct Window {
    std::size_t stretch = 1;                             ///< steps from one end to the next
    std::uint64_t before = 0;                            ///< what is older than this is older than the window
    std::vector<std::uint64_t> ends;                     ///< numbers of the youngest block
    std::map<Group, std::vector<std::uint64_t>> levels;  ///< bytes
    std::map<Group, std::uint64_t> highest_before;       ///< bytes, at ends that were dropped
    std::vector<std::uint64_t> nodes;                    ///< of the graph
    void add(const std::map<Group, std::uint64_t>& sums, std::uint64_t last, std::uint64_t node_count);
    void drop_first();
    void drop_every_second();
    /// Bytes a step, of a group whose live blocks are given; empty where it does not grow, and where as much lived
    /// before the window: what rises and falls is somewhere on its way up.
    std::optional<double> growth_of(const Group& group, const std::vector<LiveBlock>& live) const;
  };
  static Group group_of(const LiveBlock& block) { return {block.stack, block.purpose, block.label}; }

  LiveRecording recording_;
  std::size_t warmup_steps_;
  std::size_t steps_ = 0;
  std::uint64_t last_of_warmup_ = 0;  ///< blocks with larger numbers are younger
  Window recent_, whole_;
  std::size_t next_look_ = 0;  ///< after so many steps
  struct Found {
    Leak leak;
    std::size_t looks = 0;       ///< how often it was found
    std::size_t last_steps = 0;  ///< when it was found last
  };
  void look();
  static void note(std::vector<Found>& found, std::vector<Leak> leaks, std::size_t steps);
  std::vector<Leak> leaks_now() const;
  std::vector<Found> found_;
};

void LeakWatch::Impl::step() {
  const Mark now = mark({}, recording_.device());
  if (++steps_ <= warmup_steps_) {
    if (!now.blocks.empty()) last_of_warmup_ = recent_.before = whole_.before = now.blocks.back().number;
    return;
  }
  std::map<Group, std::uint64_t> sums;
  for (const LiveBlock& block : now.blocks)
    if (block.number > last_of_warmup_) sums[group_of(block)] += block.bytes;
  const std::uint64_t last = now.blocks.empty() ? last_of_warmup_ : now.blocks.back().number;
  const std::uint64_t nodes = listed_node_count();
  recent_.add(sums, last, nodes);
  if (recent_.ends.size() > kKeptSteps) recent_.drop_first();
  const std::size_t seen = steps_ - warmup_steps_;
  if (seen % whole_.stretch == 0) whole_.add(sums, last, nodes);
  if (whole_.ends.size() > 2 * kKeptSteps) whole_.drop_every_second();
  if (steps_ < next_look_) return;
  look();
  next_look_ = warmup_steps_ + (steps_ - warmup_steps_) * 3 / 2;
}

void LeakWatch::Impl::Window::add(const std::map<Group, std::uint64_t>& sums, std::uint64_t last,
                                  std::uint64_t node_count) {
  for (const auto& [group, bytes] : sums) levels.try_emplace(group, std::vector<std::uint64_t>(ends.size(), 0));
  ends.push_back(last);
  for (auto& [group, values] : levels) {
    const auto found = sums.find(group);
    values.push_back(found == sums.end() ? 0 : found->second);
  }
  nodes.push_back(node_count);
}

void LeakWatch::Impl::Window::drop_first() {
  before = ends.front();
  ends.erase(ends.begin());
  nodes.erase(nodes.begin());
  for (auto& [group, values] : levels) {
    std::uint64_t& highest = highest_before[group];
    highest = std::max(highest, values.front());
    values.erase(values.begin());
  }
}

void LeakWatch::Impl::Window::drop_every_second() {
  // The first of two: what it made is the second's then.
  const auto halve = [](std::vector<std::uint64_t>& values) {
    std::vector<std::uint64_t> kept;
    for (std::size_t i = 1; i < values.size(); i += 2) kept.push_back(values[i]);
    values = std::move(kept);
  };
  halve(ends);
  halve(nodes);
  for (auto& [group, values] : levels) halve(values);
  stretch *= 2;
}

std::optional<double> LeakWatch::Impl::Window::growth_of(const Group& group, const std::vector<LiveBlock>& live) const {
  const auto found = levels.find(group);
  if (found == levels.end()) return std::nullopt;
  const auto highest = highest_before.find(group);
  if (highest != highest_before.end() && found->second.back() <= highest->second) return std::nullopt;
  std::vector<std::uint64_t> survivors(ends.size(), 0);
  for (const LiveBlock& block : live) {
    const auto end = std::ranges::lower_bound(ends, block.number);
    if (block.number > before && end != ends.end())
      survivors[static_cast<std::size_t>(end - ends.begin())] += block.bytes;
  }
  const std::optional<double> slope = growth_per_step(found->second, survivors);
  return slope ? std::optional(*slope / static_cast<double>(stretch)) : std::nullopt;
}

std::vector<Leak> LeakWatch::Impl::leaks_now() const {
  std::map<Group, std::vector<LiveBlock>> live;
  for (const LiveBlock& block : mark({}, recording_.device()).blocks)
    if (block.number > last_of_warmup_) live[group_of(block)].push_back(block);
  std::vector<GrowingBlocks> growing;
  for (auto& [group, blocks] : live) {
    std::optional<double> slope = recent_.growth_of(group, blocks);
    if (!slope) slope = whole_.growth_of(group, blocks);
    if (slope) growing.push_back({.bytes_per_step = *slope, .blocks = std::move(blocks)});
  }
  std::optional<double> nodes = growth_per_step(recent_.nodes);
  if (!nodes) nodes = growth_per_step(whole_.nodes);
  return causes_of(growing, nodes.value_or(0), recording_.device());
}

/// The same leak may be found again with more bytes.
void LeakWatch::Impl::note(std::vector<Found>& found, std::vector<Leak> leaks, std::size_t steps) {
  for (Leak& leak : leaks) {
    auto same = std::ranges::find_if(found, [&](const Found& other) {
      return other.leak.kind == leak.kind && other.leak.grows == leak.grows && other.leak.site == leak.site;
    });
    if (same == found.end()) same = found.insert(found.end(), Found{});
    if (leak.bytes >= same->leak.bytes) same->leak = std::move(leak);
    ++same->looks;
    same->last_steps = steps;
  }
}

void LeakWatch::Impl::look() { note(found_, leaks_now(), steps_); }

LeakReport LeakWatch::Impl::report() const {
  LeakReport report{.steps = steps_ - std::min(steps_, warmup_steps_), .leaks = {}};
  if (report.steps < kLeastStepsOfGrowth) return report;
  std::vector<Found> found = found_;
  note(found, leaks_now(), steps_ + 1);
  for (Found& one : found) {
    // What does not grow any more at the last look was filled, as a buffer is; what is no growth may be seen at the end
    // of any step that is not quite over.
    const bool is_last = one.last_steps > steps_;
    if (one.leak.grows ? is_last : one.looks > 1) report.leaks.push_back(std::move(one.leak));
  }
  std::ranges::stable_sort(report.leaks, std::ranges::greater(), [](const Leak& leak) {
    return std::tuple(leak.bytes_per_step, leak.nodes_per_step, leak.bytes);
  });
  return report;
}

LeakWatch::LeakWatch(Device device, std::size_t warmup_steps) : impl_(std::make_unique<Impl>(device, warmup_steps)) {}
LeakWatch::~LeakWatch() = default;

void LeakWatch::step() { impl_->step(); }
LeakReport LeakWatch::report() const { return impl_->report(); }

std::string LeakReport::text() const {
  if (steps < kLeastStepsOfGrowth)
    return fmt::format("nothing can be said of {} step{}: at least {} are needed after the first ones\n", steps,
                       steps == 1 ? "" : "s", kLeastStepsOfGrowth);
  if (leaks.empty()) return fmt::format("nothing grows in {} steps\n", steps);
  std::string text;
  for (const Leak& leak : leaks) {
    const std::string what = fmt::format("{}{}", name_of(leak.purpose), leak.label.empty() ? "" : ", " + leak.label);
    const std::string nodes = fmt::format("{:.0f} nodes of history a step, {}\n", leak.nodes_per_step, leak.site);
    text += leak.nodes_per_step > 0 ? nodes
            : leak.grows
                ? fmt::format("{} a step: {} in {} blocks ({}), {}\n",
                              format_bytes(static_cast<std::size_t>(std::llround(leak.bytes_per_step))),
                              format_bytes(leak.bytes), leak.blocks, what, leak.site)
                : fmt::format("{} at the end of each step ({}), {}\n", format_bytes(leak.bytes), what, leak.site);
    text += "  " + leak.sentence + "\n";
    for (const std::string& link : leak.chain) text += "    " + link + "\n";
  }
  return text;
}

}  // namespace tenon::memory
