// Series by site. What grows in them is told by memory/history/growth.h.
#include <tenon/replay/results/site_series.h>

#include <tenon/core/units.h>
#include <tenon/memory/history/growth.h>
#include <tenon/replay/results/own_frames.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <span>

namespace tenon::replay {

namespace {

std::string site_name(const Trace& trace, const Request& request, bool names_all) {
  const StackId stack = std::get<0>(request);
  return stack != 0 ? call_site(trace, stack, names_all) : blocks_of(trace, request);
}

/// 4 KiB to 8 KiB, the end not included.
std::uint64_t size_class(std::uint64_t bytes) { return std::bit_floor(bytes); }

void add(std::vector<std::uint64_t>& sums, const std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) sums[i + sums.size() - values.size()] += values[i];
}

}  // namespace

StackId stack_of(const Trace& trace, std::size_t allocation) {
  return trace.stack_of_allocation.empty() ? 0 : trace.stack_of_allocation[allocation];
}

Request request_of(const Trace& trace, const TraceEvent& entry, std::size_t allocation) {
  return {stack_of(trace, allocation), entry.bytes, entry.stream};
}

std::string blocks_of(const Trace& trace, const Request& request) {
  return fmt::format("blocks of {} on stream {}", format_bytes(std::get<1>(request)),
                     trace.streams[std::get<2>(request)]);
}

SiteSeries::SiteSeries(const Trace& trace, bool names_all)
    : trace_(trace), names_all_(names_all), slots_(trace.slot_count) {}

void SiteSeries::take(const TraceEvent& entry, std::size_t allocation) {
  if (entry.kind == EventKind::kAllocate) {
    const std::size_t place = site_of(entry, allocation);
    slots_[entry.slot] = {.site = place, .step = ends_, .bytes = entry.bytes};
    sites_[place].bytes += entry.bytes;
    ++sites_[place].blocks;
  } else if (entry.kind == EventKind::kFree) {
    Site& site = sites_[slots_[entry.slot].site];
    site.bytes -= entry.bytes;
    --site.blocks;
    site.least = std::min(site.least, site.bytes);
    site.fewest = std::min(site.fewest, site.blocks);
    slots_[entry.slot].bytes = 0;
  }
}

void SiteSeries::end_step() {
  if (ends_++ > 0) {
    for (Site& site : sites_) {
      site.levels.resize(ends_ - 2);  // sites that are new had nothing before
      site.levels.push_back(site.least);
      site.blocks_then.resize(ends_ - 2);
      site.blocks_then.push_back(site.fewest);
    }
  }
  for (Site& site : sites_) {
    site.least = site.bytes;
    site.fewest = site.blocks;
  }
  at_end_ = slots_;
}

std::vector<SiteSeries::Site> SiteSeries::with_survivors() const {
  std::vector<Site> sites = sites_;
  for (const Slot& slot : at_end_) {
    if (slot.bytes == 0 || slot.step == 0) continue;  // made before the first end
    sites[slot.site].survivors.resize(ends_ - 1);
    sites[slot.site].survivors[slot.step - 1] += slot.bytes;
  }
  return sites;
}

std::vector<LateSite> SiteSeries::late(std::size_t steps_between) const {
  constexpr std::size_t kLeastEnds = 8;  // of fewer many a clean program has some
  std::vector<LateSite> all;
  for (const Site& site : with_survivors()) {
    if (site.levels.size() + 1 != ends_ || site.survivors.empty()) continue;
    if (growth_per_step(site.levels, site.survivors)) continue;
    const std::size_t ends = rising_end(site.levels, site.survivors);
    if (ends < kLeastEnds) continue;
    const auto made = std::span(site.survivors).last(ends);
    all.push_back({.site = site.name,
                   .steps = ends * steps_between,
                   .bytes = std::accumulate(made.begin(), made.end(), std::uint64_t{0})});
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &LateSite::bytes);
  return all;
}

std::vector<GrowingSite> SiteSeries::growing(double steps_between) const {
  const std::vector<Site> sites = with_survivors();
  std::vector<GrowingSite> all;
  std::map<Group, std::vector<const Site*>> classes;
  for (const Site& site : sites) {
    if (site.levels.size() + 1 != ends_ || add_if_growing(all, site, steps_between)) continue;
    const auto& [stack, bytes, stream] = site.request;
    if (stack == 0 && !site.survivors.empty()) classes[{stream, size_class(bytes)}].push_back(&site);
  }
  // A leak of random sizes has blocks of several classes: one line a stream.
  struct OfStream {
    std::vector<const Site*> growing, rest;
  };
  std::map<std::uint64_t, OfStream> streams;
  const auto grows = [&](const std::vector<const Site*>& members) {
    std::vector<GrowingSite> found;
    return !members.empty() && add_if_growing(found, together(members), steps_between);
  };
  for (const auto& [group, members] : classes) {
    OfStream& of = streams[group[0]];
    auto& to = grows(members) ? of.growing : of.rest;
    to.insert(to.end(), members.begin(), members.end());
  }
  for (auto& [stream, of] : streams) {
    if (grows(of.rest)) of.growing.insert(of.growing.end(), of.rest.begin(), of.rest.end());
    if (!of.growing.empty()) add_if_growing(all, together(of.growing), steps_between);
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &GrowingSite::bytes_per_step);
  return all;
}

SiteSeries::Site SiteSeries::together(const std::vector<const Site*>& sites) const {
  Site sum;
  sum.least_size = std::numeric_limits<std::uint64_t>::max();
  sum.levels.resize(ends_ - 1);
  sum.blocks_then.resize(ends_ - 1);
  sum.survivors.resize(ends_ - 1);
  for (const Site* site : sites) {
    add(sum.levels, site->levels);
    add(sum.blocks_then, site->blocks_then);
    add(sum.survivors, site->survivors);
    sum.least_size = std::min(sum.least_size, std::get<1>(site->request));
    sum.most_size = std::max(sum.most_size, std::get<1>(site->request));
  }
  sum.request = sites.front()->request;
  sum.name = fmt::format("blocks of {} sizes, {} to {}, on stream {}", sites.size(), format_bytes(sum.least_size),
                         format_bytes(sum.most_size), trace_.streams[std::get<2>(sum.request)]);
  return sum;
}

bool SiteSeries::add_if_growing(std::vector<GrowingSite>& all, const Site& site, double steps_between) const {
  std::vector<std::uint64_t> survivors = site.survivors;
  survivors.resize(site.levels.size());
  const std::optional<double> slope = growth_per_step(site.levels, survivors);
  if (!slope) return false;
  const std::uint64_t first = site.blocks_then.front(), last = site.blocks_then.back();
  all.push_back({.site = site.name,
                 .bytes_per_step = *slope / steps_between,
                 .bytes = site.levels.back() - std::min(site.levels.front(), site.levels.back()),
                 .blocks = last - std::min(first, last),
                 .least_block_bytes = site.least_size,
                 .most_block_bytes = site.most_size,
                 .stream = std::get<2>(site.request)});
  return true;
}

std::size_t SiteSeries::site_of(const TraceEvent& entry, std::size_t allocation) {
  // With its stack, of whatever size; without one by size and stream.
  Request request = request_of(trace_, entry, allocation);
  if (const StackId stack = std::get<0>(request); stack != 0) request = {stack, 0, 0};
  const auto [known, is_new] = site_of_request_.try_emplace(request);
  if (is_new) {
    const std::string name = site_name(trace_, request, names_all_);
    const auto [site, is_first] = site_of_name_.try_emplace(name, sites_.size());
    if (is_first) {
      sites_.emplace_back();
      sites_.back().name = name;
      sites_.back().request = request;
    }
    known->second = site->second;
  }
  return known->second;
}

GrowingRequests::GrowingRequests(const HistoryGrowth& growth, const Trace& trace, bool names_all)
    : growth_(growth), trace_(trace), names_all_(names_all) {}

bool GrowingRequests::is_named(const Request& request) {
  const auto [known, is_new] = named_.try_emplace(request, false);
  if (is_new) {
    const std::string name = site_name(trace_, request, names_all_);
    known->second = std::ranges::find(growth_.sites, name, &GrowingSite::site) != growth_.sites.end();
  }
  return known->second;
}

bool GrowingRequests::contain(const TraceEvent& entry, std::uint64_t event, std::size_t allocation) {
  if (is_named(request_of(trace_, entry, allocation))) return true;
  // What a program has before its steps is of such sizes too.
  if (event < growth_.begins || stack_of(trace_, allocation) != 0) return false;
  return std::ranges::any_of(growth_.sites, [&](const GrowingSite& site) {
    return site.most_block_bytes != 0 && site.stream == entry.stream && site.least_block_bytes <= entry.bytes &&
           entry.bytes <= site.most_block_bytes;
  });
}

}  // namespace tenon::replay
