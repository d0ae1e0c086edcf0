// Tenon's own allocators where they need less than PyTorch's settings: by how much, and what using one takes.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tenon {

/// One that needs less.
struct OwnAdvice {
  std::string label;
  const StackConfig& policy;  ///< as it was replayed
  bool is_planned = false;    ///< from a plan of the history
  std::uint64_t peak_reserved_bytes = 0;
  std::int64_t saved_bytes = 0;  ///< of peak reserved; nothing is said of it unless it is more than 0
  double saved_fraction = 0;
  std::optional<std::int64_t> saved_safe_bytes;  ///< of the safe capacity; negative where more is needed
  std::uint64_t device_calls = 0;
};

/// What a plan is made of.
struct PlannedHistory {
  std::string file;             ///< as the user named it
  std::optional<int> device{};  ///< its number, where the file has the histories of several
};

/// "153.6 MiB (2.8 %)" of peak reserved.
std::string saving_text(std::int64_t bytes, double fraction);

/// The `[allocator]` table to use it in Tenon; of one that is planned, with the file that plan_command() writes.
std::string own_toml(const OwnAdvice& own, const PlannedHistory& history);
/// "tenon plan gpt2.trace.gz -o gpt2.plan", or "tenon plan HISTORY -o history.plan" of what was read from standard
/// input; empty for one that needs no plan.
std::string plan_command(const OwnAdvice& own, const PlannedHistory& history);

/// A line for each with what it saves, below `heading`, and how to use them.
/// `is_pytorch`: the program runs on PyTorch, which cannot set them. Empty where there is none.
TENON_API std::string own_advice(std::span<const OwnAdvice> own, const std::string& heading,
                                 const PlannedHistory& history, bool is_pytorch);
/// Sentences and lines to paste, for the first of them, and for the first of those that are planned.
std::string how_to_use(std::span<const OwnAdvice> own, const PlannedHistory& history, bool is_pytorch);

/// Lines two spaces in.
std::string indented(const std::string& lines);

}  // namespace tenon
