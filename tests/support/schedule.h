// Schedule: runs threads one at a time and draws from a seed where one gives way to another, so that a race is found by
// trying seeds and shown again by its seed.
//
// Every step of a Scheduled… type (scheduled_std.h) is a place where the threads may change. One thread has the turn; a
// thread that waits for a mutex, for an atomic or for another thread's end is out until somebody wakes it, and when all
// are out the test fails. What is found are orders of steps; the hardware's reordering of one thread's steps is not
// seen, nor is anything between two steps. ThreadSanitizer sees those: the turn is handed on behind its back
// (unseen.h), so that a std::memory_order that is too weak is a race for it though the threads ran one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tenon::test {

/// Runs the bodies, each as a thread, in the order that `seed` says, until all have returned. Aborts with the seed when
/// nobody can go on, or nobody gets anywhere.
void run_scheduled(std::uint64_t seed, const std::vector<std::function<void()>>& bodies);

// For the Scheduled… types. Outside of run_scheduled() all of these do nothing.

/// Whether this thread is one of a schedule's.
bool is_scheduled();
/// Somebody else may have a turn.
void schedule_point();
/// Somebody else should have one, if anybody can.
void give_way();
/// Somebody else has a turn until wake(place). The caller looks again whether it can go on.
void wait_at(const void* place);
void wake(const void* place, bool all);
/// A thread is about to be made: the number it enters with, -1 where nobody schedules.
int expect_thread();
void enter_thread(int number);
void leave_thread();
/// Waits for that thread to leave.
void wait_for_thread(int number);

}  // namespace tenon::test
