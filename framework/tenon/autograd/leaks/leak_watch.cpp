// Series of live bytes by the stack that allocated them; those that grow are looked for in the graph of holders.
#include <tenon/autograd/leaks/leak_causes.h>
#include <tenon/autograd/leaks/leak_watch.h>
#include <tenon/autograd/leaks/site_names.h>

#include <tenon/core/scope/scope.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/memory/history/growth.h>
#include <tenon/tensor/live_tensors.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace tenon::memory {

namespace {

constexpr std::size_t kKeptSteps = 64;  ///< of a series

/// At how many ends there is something.
std::ptrdiff_t rise_count(const std::vector<std::uint64_t>& survivors) {
  return std::ranges::count_if(survivors, [](std::uint64_t bytes) { return bytes != 0; });
}

/// As rising_end(), also of what has rested since for a quarter of that time at most: the last batches of a pass have
/// been made by the workers of a loader when the ones before them are kept.
std::size_t rising_until_lately(std::span<const std::uint64_t> levels, std::span<const std::uint64_t> survivors) {
  std::size_t rose = survivors.size();
  while (rose > 0 && survivors[rose - 1] == 0) --rose;
  const std::size_t rest = survivors.size() - rose, steps = rising_end(levels.first(rose), survivors.first(rose));
  return steps < 3 * rest || steps == 0 ? 0 : steps + rest;
}

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
  using Group = std::tuple<StackId, Purpose, std::uint16_t, bool>;  ///< and label, and whether it is page-locked
  /// Live blocks of a group, or of some that are looked at together.
  struct Blocks {
    std::vector<Group> groups;
    std::vector<LiveBlock> live;
  };
  /// At the ends of a window.
  struct Series {
    std::vector<std::uint64_t> levels;     ///< bytes that lived
    std::vector<std::uint64_t> survivors;  ///< of those since the end before, bytes that live now
    std::uint64_t highest_before = 0;      ///< bytes, before the window
  };
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
    Series series_of(const Blocks& blocks) const;
    /// Bytes a step; empty where they do not grow, and where as much lived before the window: what rises and falls is
    /// somewhere on its way up.
    std::optional<double> growth_of(const Series& series) const;
  };
  static Group group_of(const LiveBlock& block) { return {block.stack, block.purpose, block.label, block.page_locked}; }

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
  struct Look {
    std::vector<Leak> leaks;
    std::vector<LateRise> late_rises;
  };
  std::uint32_t thread_ = 0;  ///< that steps
  std::vector<Blocks> live_groups() const;
  Look look_now() const;
  std::vector<Found> found_;
};

void LeakWatch::Impl::step() {
  thread_ = scopes::thread_number();
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

LeakWatch::Impl::Series LeakWatch::Impl::Window::series_of(const Blocks& blocks) const {
  Series series{.levels = std::vector<std::uint64_t>(ends.size(), 0),
                .survivors = std::vector<std::uint64_t>(ends.size(), 0)};
  for (const Group& group : blocks.groups) {
    if (const auto found = levels.find(group); found != levels.end())
      std::ranges::transform(series.levels, found->second, series.levels.begin(), std::plus());
    if (const auto found = highest_before.find(group); found != highest_before.end())
      series.highest_before += found->second;
  }
  for (const LiveBlock& block : blocks.live) {
    const auto end = std::ranges::lower_bound(ends, block.number);
    if (block.number > before && end != ends.end())
      series.survivors[static_cast<std::size_t>(end - ends.begin())] += block.bytes;
  }
  return series;
}

std::optional<double> LeakWatch::Impl::Window::growth_of(const Series& series) const {
  if (series.levels.empty() || series.levels.back() <= series.highest_before) return std::nullopt;
  const std::optional<double> slope = growth_per_step(series.levels, series.survivors);
  return slope ? std::optional(*slope / static_cast<double>(stretch)) : std::nullopt;
}

std::vector<LeakWatch::Impl::Blocks> LeakWatch::Impl::live_groups() const {
  std::map<Group, Blocks> groups;
  for (const LiveBlock& block : mark({}, recording_.device()).blocks) {
    if (block.number <= last_of_warmup_) continue;
    Blocks& own = groups[group_of(block)];
    if (own.live.empty()) own.groups.push_back(group_of(block));
    own.live.push_back(block);
  }
  std::vector<Blocks> all;
  for (auto& [group, blocks] : groups) all.push_back(std::move(blocks));
  return all;
}

LeakWatch::Impl::Look LeakWatch::Impl::look_now() const {
  std::vector<GrowingBlocks> growing;
  const auto add_if_growing = [&](const Blocks& blocks, const Series& recent, const Series& whole) {
    std::optional<double> slope = recent_.growth_of(recent);
    if (!slope) slope = whole_.growth_of(whole);
    if (slope) growing.push_back({.bytes_per_step = *slope, .blocks = blocks.live});
    return slope.has_value();
  };
  using Place = std::tuple<std::string, Purpose, std::uint16_t, bool>;
  SiteNames names(recording_.device());
  const auto join = [](Blocks& all, const Blocks& some) {
    all.groups.insert(all.groups.end(), some.groups.begin(), some.groups.end());
    all.live.insert(all.live.end(), some.live.begin(), some.live.end());
  };
  // Stacks may differ inside of the library alone: an allocator takes another way once one thread has used it for long.
  struct Site {
    Blocks all;
    std::vector<Blocks> stacks;
  };
  std::map<Place, Site> sites;
  for (const Blocks& blocks : live_groups()) {
    const Series recent = recent_.series_of(blocks), whole = whole_.series_of(blocks);
    if (rise_count(whole.survivors) < 2 && rise_count(recent.survivors) < 2) {
      add_if_growing(blocks, recent, whole);
      continue;
    }
    const auto& [stack, purpose, label, page_locked] = blocks.groups.front();
    Site& site = sites[{names.of_block(stack), purpose, label, page_locked}];
    join(site.all, blocks);
    site.stacks.push_back(blocks);
  }
  // A line that is called from several loops: what each call leaves may begin late or end early.
  std::map<Place, Blocks> lines;
  for (const auto& [place, site] : sites) {
    if (add_if_growing(site.all, recent_.series_of(site.all), whole_.series_of(site.all))) continue;
    for (const Blocks& blocks : site.stacks) {
      if (site.stacks.size() > 1 && add_if_growing(blocks, recent_.series_of(blocks), whole_.series_of(blocks)))
        continue;
      const auto& [stack, purpose, label, page_locked] = blocks.groups.front();
      join(lines[{names.line_of_block(stack), purpose, label, page_locked}], blocks);
    }
  }
  Look look;
  for (const auto& [key, blocks] : lines) {
    const Series series = recent_.series_of(blocks);
    if (blocks.groups.size() > 1 && add_if_growing(blocks, series, whole_.series_of(blocks))) continue;
    if (series.levels.empty() || series.levels.back() <= series.highest_before) continue;
    const std::size_t steps = rising_until_lately(series.levels, series.survivors);
    if (steps == 0) continue;
    const auto last = std::span(series.survivors).last(steps);
    const auto& [stack, purpose, label, page_locked] = blocks.groups.back();
    look.late_rises.push_back({.site = names.of_block(stack),
                               .steps = steps,
                               .bytes = std::accumulate(last.begin(), last.end(), std::size_t{0}),
                               .purpose = purpose,
                               .label = label_name(label),
                               .page_locked = page_locked});
  }
  std::optional<double> nodes = growth_per_step(recent_.nodes);
  if (!nodes) nodes = growth_per_step(whole_.nodes);
  look.leaks = causes_of(growing, nodes.value_or(0), recording_.device(), thread_);
  return look;
}

/// The same leak may be found again: what grows is told as it is now, what stays with the most that it kept.
void LeakWatch::Impl::note(std::vector<Found>& found, std::vector<Leak> leaks, std::size_t steps) {
  for (Leak& leak : leaks) {
    auto same = std::ranges::find_if(found, [&](const Found& other) {
      return other.leak.kind == leak.kind && other.leak.grows == leak.grows && other.leak.site == leak.site;
    });
    if (same == found.end()) same = found.insert(found.end(), Found{});
    if (leak.grows || leak.bytes >= same->leak.bytes) same->leak = std::move(leak);
    ++same->looks;
    same->last_steps = steps;
  }
}

void LeakWatch::Impl::look() { note(found_, look_now().leaks, steps_); }

LeakReport LeakWatch::Impl::report() const {
  LeakReport report{.steps = steps_ - std::min(steps_, warmup_steps_)};
  if (report.steps < kLeastStepsOfGrowth) return report;
  std::vector<Found> found = found_;
  Look last = look_now();
  note(found, std::move(last.leaks), steps_ + 1);
  report.late_rises = std::move(last.late_rises);
  std::ranges::stable_sort(report.late_rises, std::ranges::greater(), &LateRise::bytes);
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

namespace {

/// "data, page-locked": what one kind of memory is for.
std::string described(Purpose purpose, const std::string& label, bool page_locked) {
  return fmt::format("{}{}{}", name_of(purpose), label.empty() ? "" : ", " + label, page_locked ? ", page-locked" : "");
}

}  // namespace

std::string LeakReport::text() const {
  if (steps < kLeastStepsOfGrowth)
    return fmt::format("nothing can be said of {}: at least {} are needed after the first ones\n",
                       counted(steps, "step"), kLeastStepsOfGrowth);
  std::string text = leaks.empty() ? fmt::format("nothing grows in {} steps\n", steps) : "";
  for (const Leak& leak : leaks) {
    const std::string what = described(leak.purpose, leak.label, leak.page_locked);
    const std::string nodes = fmt::format("{:.0f} nodes of history a step, {}\n", leak.nodes_per_step, leak.site);
    text += leak.nodes_per_step > 0 ? nodes
            : leak.grows
                ? fmt::format("{} a step: {} in {} ({}), {}\n",
                              format_bytes(static_cast<std::size_t>(std::llround(leak.bytes_per_step))),
                              format_bytes(leak.bytes), counted(leak.blocks, "block"), what, leak.site)
                : fmt::format("{} at the end of each step ({}), {}\n", format_bytes(leak.bytes), what, leak.site);
    text += "  " + leak.sentence + "\n";
    for (const std::string& link : leak.chain) text += "    " + link + "\n";
  }
  for (const LateRise& rise : late_rises)
    text += fmt::format("too early to tell: {} more of the last {} steps ({}), {}\n", format_bytes(rise.bytes),
                        rise.steps, described(rise.purpose, rise.label, rise.page_locked), rise.site);
  return text;
}

}  // namespace tenon::memory
