// See the header.
#include <tenon/ops/support/operator_scope.h>

namespace tenon::ops {

[[gnu::cold]] void enter_operator(scopes::Scope& scope, const char* name,
                                  std::span<const scopes::Operand> operands) noexcept {
  const bool is_wanted = (scopes::wanted() & scopes::kWantsOperands) != 0;
  scope.enter({.kind = scopes::Kind::kOperator,
               .name = name,
               .operands = is_wanted ? operands : std::span<const scopes::Operand>()},
              "");
}

}  // namespace tenon::ops
