// Call stacks as plain data: one form for snapshots, the files that hold them, and histories read from files.
#pragma once

#include <tenon/core/export.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// A call stack, as an index; 0 is "none".
using StackId = std::uint32_t;

/// One function of a call stack. `line` is 0 and `file` "??" where nothing is known.
struct StackFrame {
  std::string name;
  std::string file;
  std::uint32_t line = 0;
  auto operator<=>(const StackFrame&) const = default;
};

struct CallStacks {
  std::vector<StackFrame> frames;  ///< each once
  /// By StackId: into frames, innermost first; stack 0 is empty.
  std::vector<std::vector<std::uint32_t>> stacks = only_stack_0();

  /// The frames of one stack, innermost first.
  TENON_API std::vector<StackFrame> frames_of(StackId stack) const;
  /// One stack, the empty one.
  TENON_API static std::vector<std::vector<std::uint32_t>> only_stack_0();
};

}  // namespace tenon
