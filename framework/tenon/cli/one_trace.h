// What several verbs do with histories: read them, choose a device, see whether an allocator serves one soundly.
#pragma once

#include <tenon/replay/engine/replay.h>
#include <tenon/replay/formats/readers.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

/// One file after the other. Where two have one base name, their histories are named by their paths.
void for_each_trace(const std::vector<std::string>& paths, const replay::ReadOptions& read,
                    const std::function<void(replay::Trace&)>& visit);
/// All of them at once.
std::vector<replay::Trace> all_traces(const std::vector<std::string>& paths, const replay::ReadOptions& read = {});

/// The history of a file. One of several devices is chosen by the number that the recording gave it; -1: there is only
/// one. Throws ConfigError that names the devices there are.
replay::Trace one_trace(const std::string& path, int device, const replay::ReadOptions& read = {});
/// As one_trace() with a file of several devices; of one device, its history, whatever the number.
replay::Trace single_or_chosen_trace(const std::string& path, int device);

/// Replays once in a process of its own, checked. Throws Error with what the allocator did wrong and at which event: a
/// plugin that crashes or hands out overlapping memory must not be replayed in this process.
void require_sound(const replay::Trace& trace, const StackConfig& policy, std::optional<std::uint64_t> capacity_bytes);

}  // namespace tenon::cli
