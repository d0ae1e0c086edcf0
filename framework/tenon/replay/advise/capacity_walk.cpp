// Downward from an unlimited device, one replay for each stretch and trace.
#include <tenon/replay/advise/capacity_walk.h>

#include <algorithm>

namespace tenon::replay {

bool depends_on_capacity(const StackConfig& policy) {
  const auto& depends = policy.policy.traits.depends_on_capacity;
  return !policy.layers.empty() || !depends || depends(policy.options);
}

CapacityWalk::CapacityWalk(const std::vector<Trace>& traces, std::span<const ReplayRow> unlimited) {
  for (std::size_t i = 0; i < traces.size(); ++i) {
    need_bytes_ = std::max(need_bytes_, traces[i].facts.peak_requested_bytes);
    levels_.push_back({&traces[i], unlimited[i].same_from_bytes, unlimited[i].ooms});
    if (!unlimited[i].failure.empty()) failure_ = unlimited[i].failure;
  }
  add_stretch();
}

void CapacityWalk::add_stretch() {
  Stretch stretch;
  for (const Level& level : levels_) {
    stretch.from_bytes = std::max(stretch.from_bytes, level.same_from_bytes);
    stretch.ooms += level.ooms;
  }
  stretch.from_bytes = std::max(stretch.from_bytes, need_bytes_);
  stretches_.push_back(stretch);
  has_failed_ |= stretch.ooms != 0;
  if (!has_failed_) safe_from_bytes_ = stretch.from_bytes;
}

std::vector<Job> CapacityWalk::next(const StackConfig& policy) const {
  std::vector<Job> jobs;
  for (const Level& level : levels_) {
    if (!is_due(level)) continue;
    Job job{.trace = level.trace, .policy = &policy};
    job.options.capacity_bytes = examined_from_bytes() - 1;
    job.options.timed_passes = 0;
    job.options.time_each_call = job.options.check_placement = false;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void CapacityWalk::take(std::span<const ReplayRow> rows) {
  auto row = rows.begin();
  for (Level& level : levels_) {
    if (!is_due(level)) continue;
    if (!row->failure.empty()) failure_ = row->failure;
    level.same_from_bytes = row->same_from_bytes;
    level.ooms = row->ooms;
    ++row;
  }
  if (failure_.empty()) add_stretch();
}

std::vector<CapacityPoint> CapacityWalk::points() const {
  std::vector<CapacityPoint> points;
  for (auto stretch = stretches_.rbegin(); stretch != stretches_.rend(); ++stretch) {
    if (points.empty() || points.back().ooms != stretch->ooms) points.push_back({stretch->from_bytes, stretch->ooms});
  }
  return points;
}

}  // namespace tenon::replay
