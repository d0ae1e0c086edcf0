// Operands as operators say them; saved tensors as nodes show them.
#include <tenon/autograd/leaks/holders.h>
#include <tenon/autograd/leaks/last_uses.h>

#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/tensor/live_tensors.h>

#include <utility>
#include <vector>

namespace tenon::memory {

namespace {

/// Null where there is none.
const void* block_of(const Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  const StorageImpl& storage = tensor.impl().storage();
  return storage.is_there() ? storage.block().data : nullptr;
}

}  // namespace

LastUses::LastUses(Attribution& attribution) : attribution_(attribution) {
  list_nodes();
  scopes::add_listener(*this, scopes::kWantsScopes | scopes::kWantsOperands);
}

LastUses::~LastUses() {
  scopes::remove_listener(*this);
  stop_listing_nodes();
}

void LastUses::entered(const scopes::Entered& scope) noexcept {
  const auto use = [this](const Tensor& tensor) {
    if (const void* block = block_of(tensor)) attribution_.used(block);
  };
  if (scope.kind == scopes::Kind::kBackward && scope.node != nullptr)
    static_cast<const autograd::Node*>(scope.node)->each_saved([&](const autograd::SavedTensor& saved) {
      use(saved.kept());
    });
  for (const scopes::Operand& operand : scope.operands) {
    if (operand.type == scopes::Operand::Type::kOther) continue;
    const auto* tensors = static_cast<const Tensor*>(operand.data);
    const std::size_t count = operand.type == scopes::Operand::Type::kTensor ? 1 : operand.count;
    for (std::size_t i = 0; i < count; ++i) use(tensors[i]);
  }
}

KeptBlocks LastUses::kept_for_backward() const {
  std::vector<IntrusivePtr<autograd::Node>> nodes;  // end behind the standstill: so may what they saved
  const Standstill standstill;
  each_listed_node([&](const void* node) {
    if (auto one = autograd::kept_node(static_cast<const autograd::Node*>(node))) nodes.push_back(std::move(one));
  });
  KeptBlocks kept;
  for (const auto& node : nodes) {
    node->each_saved([&](const autograd::SavedTensor& saved) {
      if (const void* block = block_of(saved.kept())) kept.insert(block);
    });
  }
  return kept;
}

}  // namespace tenon::memory
