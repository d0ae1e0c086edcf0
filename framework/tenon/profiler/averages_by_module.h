// Rows by module, of averages().
#pragma once

#include <tenon/profiler/averages.h>

#include <vector>

namespace tenon::profiler {

/// A module's totals are those of all that happens in it and in the modules below it, backward nodes included; those of
/// a root also of all that happens inside of its calls. Paths that modules of different roots share begin with the
/// root's name ("Generator.main.0").
std::vector<EventAverage> averages_by_module(const Recording& recording);

}  // namespace tenon::profiler
