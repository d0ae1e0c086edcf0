// References are counted from all that autograd keeps; what is left over is the program's.
#include <tenon/autograd/leaks/holders.h>

#include <tenon/autograd/leaks/captured_state.h>
#include <tenon/autograd/node_hooks.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/autograd/version_check.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace tenon::autograd {

namespace {

void explain_one(HeldTensor* held) {
  if (held != nullptr && held->by_program > 0) --held->by_program;
}

}  // namespace

Holders::Holders() {
  const std::vector<ListedTensor> all = listed_tensors();
  // First, and once: other threads may publish more of it, and what that refers to is in the counts or is not.
  std::vector<const AutogradMeta*> metas;
  for (const ListedTensor& listed : all)
    metas.push_back(static_cast<const AutogradMeta*>(listed.tensor->autograd_meta()));
  for (const ListedTensor& listed : all) {
    const TensorImpl& impl = *listed.tensor;
    const AutogradMeta* meta = metas[tensors_.size()];
    places_.emplace(&impl, tensors_.size());
    const void* const data = glance([&] { return impl.storage().block().data; });
    by_address_.emplace(reinterpret_cast<std::uint64_t>(data), tensors_.size());
    const Node* const grad_fn = meta != nullptr ? meta->grad_fn.get() : nullptr;
    tensors_.push_back({.tensor = &impl,
                        .made_at = listed.made_at,
                        .thread = listed.thread,
                        .by_program = impl.use_count(),
                        .meta = meta,
                        .grad_fn = keep(grad_fn) ? grad_fn : nullptr});
  }
  visit_nodes();
  count_what_autograd_holds();
  find_captures();
  find_roots();
}

bool Holders::keep(const Node* node) {
  IntrusivePtr<Node> kept = kept_node(node);
  if (!kept) return false;
  kept_.push_back(std::move(kept));
  return true;
}

HeldTensor* Holders::find(const TensorImpl* tensor) {
  const auto found = places_.find(tensor);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

const HeldTensor* Holders::of(const TensorImpl* tensor) const {
  const auto found = places_.find(tensor);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

std::vector<const HeldTensor*> Holders::on(std::uint64_t address) const {
  std::vector<const HeldTensor*> held;
  const auto [begin, end] = by_address_.equal_range(address);
  for (auto place = begin; place != end; ++place) held.push_back(&tensors_[place->second]);
  return held;
}

void Holders::visit_nodes() {
  std::unordered_set<const Node*> seen;
  for (const HeldTensor& held : tensors_)
    if (held.grad_fn != nullptr && seen.insert(held.grad_fn).second) nodes_.push_back(held.grad_fn);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (std::size_t edge = 0; edge < nodes_[i]->num_outputs(); ++edge) {
      const Node* next = nodes_[i]->next_edge(edge).function.get();
      if (seen.insert(next).second && keep(next)) nodes_.push_back(next);
    }
  }
}

void Holders::explain_saved(HeldTensor* held, const Node* node) {
  if (held == nullptr) return;
  explain_one(held);
  held->saver = node;
}

// What a function captured cannot be asked, nor what a std::any holds. But a copy of it copies that too, and so raises
// the count of each tensor that it holds by value.
template <class Copyable>
std::vector<HeldTensor*> Holders::tensors_in(const Copyable& original) {
  std::vector<std::uint32_t> before;
  before.reserve(tensors_.size());
  for (const HeldTensor& held : tensors_) before.push_back(held.tensor->use_count());
  const Copyable copy = original;  // NOLINT(performance-unnecessary-copy-initialization): it is what counts
  std::vector<HeldTensor*> found;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].tensor->use_count() > before[i]) found.push_back(&tensors_[i]);
  return found;
}

void Holders::find_packed(const std::any& packed, const Node* node) {
  const auto add = [&](HeldTensor* held) {
    explain_saved(held, node);
    if (held != nullptr) packed_[node].push_back(held->tensor);
  };
  if (const Tensor* kept = std::any_cast<Tensor>(&packed)) return add(find(kept->unsafeGetTensorImpl()));
  if (const auto* kept = std::any_cast<VersionedTensor>(&packed)) return add(find(kept->tensor.unsafeGetTensorImpl()));
  for (HeldTensor* held : tensors_in(packed)) add(held);
}

void Holders::count_what_autograd_holds() {
  std::vector<std::pair<HeldTensor*, const Node*>> leaves;
  for (const Node* node : nodes_) {
    node->each_saved([&](const SavedTensor& saved) {
      explain_saved(find(saved.kept().unsafeGetTensorImpl()), node);
      if (const std::any* packed = saved.packed()) find_packed(*packed, node);
    });
    if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(node)) {
      HeldTensor* held = find(leaf->variable().unsafeGetTensorImpl());
      explain_one(held);
      if (held != nullptr) leaves.emplace_back(held, node);
    }
  }
  for (const HeldTensor& held : tensors_) {
    const AutogradMeta* meta = held.meta;
    if (meta == nullptr) continue;
    if (meta->view) explain_one(find(meta->view->base.unsafeGetTensorImpl()));
    if (HeldTensor* gradient = find(glance([&] { return meta->grad.unsafeGetTensorImpl(); }))) {
      explain_one(gradient);
      gradient->gradient_of = held.tensor;
    }
  }
  // A leaf that the program has let go of lives for the history that leads to it.
  for (const auto& [held, node] : leaves)
    if (held->by_program == 0 && held->saver == nullptr) held->saver = node;
}

void Holders::find_captures() {
  for (const Node* node : nodes_) {
    const NodeHooks* hooks = node->hooks();
    if (hooks == nullptr) continue;
    for (const auto& [input, list] : hooks->tensor_hooks)
      for (const auto& hook : list->hooks) find_capture(hook.get(), node, nullptr);
  }
  for (const HeldTensor& held : tensors_) {
    if (held.meta == nullptr || !held.meta->hooks || held.grad_fn != nullptr) continue;
    for (const auto& hook : held.meta->hooks->hooks) find_capture(hook.get(), nullptr, held.tensor);
  }
  // What others own too lives without the hooks.
  for (const auto& entry : shared_) {
    const auto& shared = entry.second;  // clang 14 lets no lambda have a name of a structured binding
    if (shared.hooks != shared.state.owners) continue;
    each_tensor_in(
        shared.state, [&](std::uintptr_t word) { return find(reinterpret_cast<const TensorImpl*>(word)) != nullptr; },
        [&](std::uintptr_t word) {
          HeldTensor* const held = find(reinterpret_cast<const TensorImpl*>(word));
          explain_one(held);
          held->hook_of = shared.node;
          held->hook_on = shared.leaf;
        });
  }
}

// By value; see captured_state.h for what a hook holds otherwise.
void Holders::find_capture(const TensorHook* hook, const Node* node, const TensorImpl* leaf) {
  if (hook == nullptr) return;
  for (const CapturedState& state : captured_states(*hook)) {
    if (find(reinterpret_cast<const TensorImpl*>(state.control)) != nullptr) continue;  // has owners too, and is below
    SharedByHooks& shared = shared_[state.control];
    shared.state = state;
    shared.node = node;
    shared.leaf = leaf;
    ++shared.hooks;
  }
  for (HeldTensor* held : tensors_in(*hook)) {
    explain_one(held);
    held->hook_of = node;
    held->hook_on = leaf;
  }
}

void Holders::find_roots() {
  for (const HeldTensor& held : tensors_)
    if (held.grad_fn != nullptr && (held.by_program > 0 || held.hook_of != nullptr || held.hook_on != nullptr))
      roots_.push_back(&held);
  // A sum over steps has a younger history than what it is the sum of: it comes first, and the whole chain is its own.
  std::ranges::stable_sort(roots_, std::ranges::greater(),
                           [](const HeldTensor* root) { return root->grad_fn->sequence_nr(); });
  for (const HeldTensor* root : roots_) {
    std::vector<const Node*> next;
    if (reached_.try_emplace(root->grad_fn, Reached{root, nullptr, 0}).second) next.push_back(root->grad_fn);
    for (std::size_t i = 0; i < next.size(); ++i) {
      for (std::size_t edge = 0; edge < next[i]->num_outputs(); ++edge) {
        const Node* to = next[i]->next_edge(edge).function.get();
        const std::size_t distance = reached_.at(next[i]).distance + 1;
        if (to != nullptr && reached_.try_emplace(to, Reached{root, next[i], distance}).second) next.push_back(to);
      }
    }
  }
}

const HeldTensor* Holders::root_of(const Node* node) const {
  const auto found = reached_.find(node);
  return found == reached_.end() ? nullptr : found->second.root;
}

std::vector<const Node*> Holders::chain_to(const Node* node) const {
  std::vector<const Node*> chain;
  for (const Node* at = node; at != nullptr;) {
    chain.push_back(at);
    const auto found = reached_.find(at);
    at = found == reached_.end() ? nullptr : found->second.from;
  }
  std::ranges::reverse(chain);
  return chain;
}

std::vector<const Node*> Holders::longest_chain(const HeldTensor* root) const {
  const Node* farthest = nullptr;
  std::size_t distance = 0;
  for (const auto& [node, reached] : reached_)
    if (reached.root == root && reached.distance >= distance) distance = reached.distance, farthest = node;
  return chain_to(farthest);
}

std::size_t Holders::node_count(const HeldTensor* root) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(reached_, [&](const auto& entry) { return entry.second.root == root; }));
}

std::size_t Holders::saved_bytes(const HeldTensor* root) const {
  std::unordered_set<const StorageImpl*> storages;
  std::size_t bytes = 0;
  for (const auto& [node, reached] : reached_) {
    if (reached.root != root) continue;
    const auto add = [&](const TensorImpl* tensor) {
      const HeldTensor* held = of(tensor);
      if (held == nullptr || held->by_program > 0) return;  // it would live anyway: a parameter, a batch
      const StorageImpl& storage = held->tensor->storage();
      if (storages.insert(&storage).second) bytes += storage.nbytes();
    };
    node->each_saved([&](const SavedTensor& saved) { add(saved.kept().unsafeGetTensorImpl()); });
    if (const auto packed = packed_.find(node); packed != packed_.end())
      for (const TensorImpl* tensor : packed->second) add(tensor);
  }
  return bytes;
}

}  // namespace tenon::autograd
