// Updates of running statistics (batch_norm), so that work which failed and begins again does not make them twice.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>

namespace tenon {

/// How often this thread has updated running statistics. Work that failed and begins again, as a step that ran out of
/// memory, does not update them twice: leave_out_statistics_updates() has the next so many left out.
TENON_API std::int64_t statistics_updates() noexcept;
TENON_API void leave_out_statistics_updates(std::int64_t count) noexcept;
/// For an operator that updates some: whether the next update is left out; and that it was made, or left out.
TENON_API bool is_statistics_update_left_out() noexcept;
TENON_API void note_statistics_update() noexcept;

}  // namespace tenon
