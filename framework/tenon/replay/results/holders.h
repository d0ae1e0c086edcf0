// Who holds the memory: what lives at the peak of a history, by the call stack that allocated it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <vector>

namespace tenon::replay {

struct Holder {
  StackId stack = 0;  ///< 0: no stack is known
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

/// Largest first; empty where the trace has no stacks. A request that failed at the peak is among them: it was wanted
/// besides what lived.
TENON_API std::vector<Holder> holders_at_peak(const Trace& trace);

/// What lives at the peak by what it is for, in bytes by Purpose; empty where the trace does not say.
TENON_API std::vector<std::uint64_t> purposes_at_peak(const Trace& trace);

}  // namespace tenon::replay
