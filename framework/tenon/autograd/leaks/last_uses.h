// Last uses: which blocks operators and nodes of autograd use, told to whoever attributes memory, and what nodes keep
// for backward. What nobody has used for long and nothing keeps could have been given back: it was freed too late.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/watch/attribution.h>

namespace tenon::memory {

/// While it lives, `attribution` is told of each operand of an operator that begins and of each tensor that a node of
/// autograd saved when the node runs. What custom functions keep elsewhere than by save_for_backward is not known.
class TENON_EXPORT LastUses final : private scopes::Listener {
 public:
  TENON_API explicit LastUses(Attribution& attribution);
  TENON_API ~LastUses() override;
  LastUses(const LastUses&) = delete;
  LastUses& operator=(const LastUses&) = delete;

  /// The blocks that nodes saved for backward and have not given up, of nodes that were made while this lived. Other
  /// threads that make, run or end one wait meanwhile.
  TENON_API KeptBlocks kept_for_backward() const;

 private:
  void entered(const scopes::Entered& scope) noexcept override;

  Attribution& attribution_;
};

}  // namespace tenon::memory
