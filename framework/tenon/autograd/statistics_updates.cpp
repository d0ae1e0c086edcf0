// A thread's counts of updates, and of those to leave out.
#include <tenon/autograd/statistics_updates.h>

namespace tenon {

namespace {

thread_local std::int64_t updates_made = 0, updates_left_out = 0;

}  // namespace

std::int64_t statistics_updates() noexcept { return updates_made; }
void leave_out_statistics_updates(std::int64_t count) noexcept { updates_left_out = count; }
bool is_statistics_update_left_out() noexcept { return updates_left_out > 0; }
void note_statistics_update() noexcept { updates_left_out > 0 ? --updates_left_out : ++updates_made; }

}  // namespace tenon
