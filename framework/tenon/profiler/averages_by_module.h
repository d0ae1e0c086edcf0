// Rows by module, of averages().
#pragma once

#include <tenon/profiler/averages.h>

#include <vector>

namespace tenon::profiler {

/// A module's totals are those of all that happens in it and in the modules below it, backward nodes included, and
/// inside of its calls, also in the modules of other trees. A module above others has a row, with no calls where nobody
/// saw one. Paths that modules of different roots share begin with the root's name ("Generator.main.0").
std::vector<EventAverage> averages_by_module(const Recording& recording);

}  // namespace tenon::profiler
