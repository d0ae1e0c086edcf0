// Long work says how far it is, to whoever shows that: reading a file, replaying it.
#pragma once

#include <tenon/core/export.h>

#include <functional>
#include <string_view>

namespace tenon::replay {

/// `what`: "reading memory.pickle", "replaying"; `share` of it that is done, 0 to 1.
using WorkListener = std::function<void(std::string_view what, double share)>;

/// One at a time; an empty one: nobody listens. It is told in the thread that works, some hundred times at most.
TENON_API void listen_to_work(WorkListener listener);

/// For those who work.
void tell_work(std::string_view what, double share);
bool is_work_told();

}  // namespace tenon::replay
