// What several verbs do with one history: choose its device, and see whether an allocator serves it soundly.
#pragma once

#include <tenon/replay/readers.h>
#include <tenon/replay/replay.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::cli {

/// The history of a file. One of several devices is chosen by the number that the recording gave it; -1: there is only
/// one. Throws ConfigError that names the devices there are.
replay::Trace one_trace(const std::string& path, int device, const replay::ReadOptions& read = {});

/// Replays once in a process of its own, checked. Throws Error with what the allocator did wrong and at which event: a
/// plugin that crashes or hands out overlapping memory must not be replayed in this process.
void require_sound(const replay::Trace& trace, const StackConfig& policy, std::optional<std::uint64_t> capacity_bytes);

}  // namespace tenon::cli
