// Courses of the learning rate by name.
#include <tenon/train/schedules.h>

#include <tenon/core/error.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace tenon::train {

namespace {

using Schedule = std::unique_ptr<optim::LRScheduler>;

/// A course that a file can name, over `steps` steps behind the warm-up.
struct ScheduleRow {
  std::string_view name;
  Schedule (*make)(optim::Optimizer& optimizer, std::int64_t steps);
};

constexpr ScheduleRow kSchedules[] = {
    {"constant",
     [](optim::Optimizer& optimizer, std::int64_t) -> Schedule {
       return std::make_unique<optim::LambdaLR>(optimizer, [](std::int64_t) { return 1.0; });
     }},
    {"cosine",
     [](optim::Optimizer& optimizer, std::int64_t steps) -> Schedule {
       return std::make_unique<optim::CosineAnnealingLR>(optimizer, steps);
     }},
    {"linear",
     [](optim::Optimizer& optimizer, std::int64_t steps) -> Schedule {
       return std::make_unique<optim::LinearLR>(optimizer, 1.0, 0.0, steps);
     }},
};

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleRow& row : kSchedules) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<optim::LRScheduler> make_schedule(const Options& train, optim::Optimizer& optimizer,
                                                  std::int64_t steps) {
  const auto row = std::ranges::find(kSchedules, std::string_view(train.text("schedule")), &ScheduleRow::name);
  TENON_ASSERT(row != std::end(kSchedules), "a name that the option allows");
  const std::int64_t warmup = train.integer("schedule_warmup");
  Schedule schedule = row->make(optimizer, std::max<std::int64_t>(steps - warmup, 1));
  if (warmup == 0) return schedule;
  return std::make_unique<optim::WarmupLR>(optimizer, warmup, std::move(schedule));
}

}  // namespace tenon::train
