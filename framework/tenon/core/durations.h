// std::chrono's durations, points in time and clocks without its calendar: <chrono> is 4 MB of a compiler's memory, and
// 8 with the string streams that it brings.
#pragma once

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // IWYU pragma: export
#else
#include <chrono>  // IWYU pragma: export
#endif
