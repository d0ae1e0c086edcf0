// The calling-context tree: where a program was, as one number. Each way to get somewhere (this operator, in this
// module, in this phase) is a node that is made once, so that whoever keeps the number of a node knows the whole way.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::scopes {

/// What a scope stands for.
enum class Kind : std::uint8_t { kOutside, kOperator, kBackward, kModule, kLabel, kPhase };
/// "outside", "operator", "backward", "module", "label", "phase".
TENON_API const char* name_of(Kind kind);

/// The parts of a training step.
enum class Phase : std::uint8_t { kOther, kData, kForward, kBackward, kOptimizer };
inline constexpr int kPhaseCount = 5;
/// "other", "data", "forward", "backward", "optimizer".
TENON_API const char* name_of(Phase phase);

/// A node of the tree; 0 is outside of every scope. Numbers are valid as long as the process.
using ContextId = std::uint32_t;

struct Context {
  ContextId parent = 0;
  Kind kind = Kind::kOutside;
  Phase phase = Phase::kOther;  ///< of a phase
  /// Of an operator ("linear"), a backward node ("AddmmBackward0"), a label; of a module its path from the root of its
  /// tree ("encoder.layer.3.mlp"), empty for the root itself. Lives as long as the process.
  const char* name = "";
  const char* type = "";  ///< of a module: its type as users call it ("Linear")
  const char* root = "";  ///< of a module: the type of its tree's root ("Net"); empty where that is not known
};

/// What a number stands for; of a number that nobody gave, the outside.
TENON_API Context context_of(ContextId id);
/// How many there are: all numbers below are valid.
TENON_API std::uint32_t context_count();
/// The node below `parent`; the same for the same kind, name, type and root. Where the tree is full (four million
/// nodes) it is the parent itself. The texts need not outlive the call.
TENON_API ContextId child_of(ContextId parent, Kind kind, const char* name, Phase phase = Phase::kOther,
                             const char* type = "", const char* root = "");

/// The innermost node of that kind on the way to `id`, itself included; 0 where there is none.
TENON_API ContextId innermost(ContextId id, Kind kind);
/// The path of the innermost module, "encoder.layer.3.mlp"; of the root of a tree its type's name, "Net"; empty outside
/// of modules.
TENON_API std::string module_path(ContextId id);
/// The innermost operator or backward node: "linear", "AddmmBackward0"; empty outside of them.
TENON_API std::string_view operator_name(ContextId id);
/// The outermost operator below the innermost module, label or phase: what that called. Empty outside of operators.
TENON_API std::string_view outer_operator_name(ContextId id);
/// The innermost phase; without one, the forward phase inside of a module, the backward phase in a backward node.
TENON_API Phase phase_of(ContextId id);
/// All of it, "forward > encoder.layer.3.mlp > linear".
TENON_API std::string path_of(ContextId id);

/// The same text, at an address that lives as long as the process; equal texts have one address.
TENON_API const char* interned(std::string_view text);

}  // namespace tenon::scopes
