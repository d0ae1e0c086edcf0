// Forks of this process that answer through a pipe or a socket: for work that may crash or hang, which is then a fact
// to report. A plugin at work there may start processes of its own: those do not get the answer's descriptor, and who
// waits asks for the end of the child, not of everybody that has its pipe.
#pragma once

#include <tenon/core/export.h>

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace tenon {

struct ChildProcess {
  pid_t pid = -1;
  int answer = -1;  ///< to read what the child writes, and to write to one that talks; its owner closes it
};

/// Runs `work` in a fork of this process and ends the fork with code 0 after it, with std::terminate where `work`
/// throws. Throws Error with the system's reason; `what` is for that message: "a replay".
TENON_API ChildProcess fork_to_answer(std::string_view what, const std::function<void(int answer_to)>& work);

/// As fork_to_answer, over a socket on which both send and receive whole messages (SOCK_SEQPACKET).
TENON_API ChildProcess fork_to_talk(std::string_view what, const std::function<void(int peer)>& work);

/// Whether that child has ended. wait_for_end still has to be called for it.
TENON_API bool has_ended(pid_t child) noexcept;

/// Adds what the child has written since, without waiting. True: that was all, since it has closed its end or has
/// ended.
TENON_API bool take_answer(const ChildProcess& child, std::string& answer);

/// Waits for the end of that child; what waitpid says of it.
TENON_API int wait_for_end(pid_t child) noexcept;

/// "SIGTERM".
TENON_API std::string signal_name(int signal);

/// Of this process: for a child whose crash is a result, not a file.
TENON_API void leave_no_core_file() noexcept;

}  // namespace tenon
