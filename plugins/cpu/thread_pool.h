// The intra-op thread pool: a kernel's work cut into parts, part i always by worker i.
//
// The cut depends on the configured number of threads only, never on which threads are free, so that results are the
// same from run to run. A call from inside a part, or while another thread has the pool, runs its parts in order on the
// caller.
//
// By hand: OpenMP and oneTBB decide by themselves which thread runs what, and wake sleeping threads where a short spin
// is cheaper; a kernel of a few microseconds is the usual case here.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// Runs one part of a job.
using Part = void (*)(void* state, int part);

/// At most this many threads.
inline constexpr int kMaxThreads = 256;

/// Threads that work on one kernel, the caller included.
int thread_count() noexcept;

/// 0 = one per core that this process may run on. Waits for running work.
void set_thread_count(int threads);

/// Cores that this process may run on.
int available_cores() noexcept;

/// Calls part(state, i) for each i in [0, parts), parts <= thread_count(), and returns when all have. A part must not
/// throw.
void run_parts(int parts, Part part, void* state) noexcept;

/// Whether the caller is inside a part.
bool in_part() noexcept;

/// Joins the workers; the next run_parts starts them again.
void stop_threads() noexcept;

}  // namespace tenon::cpu
