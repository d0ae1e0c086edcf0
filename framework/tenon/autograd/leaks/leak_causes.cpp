// Who holds each block decides what it is a sign of. See holders.h.
#include <tenon/autograd/leaks/holders.h>
#include <tenon/autograd/leaks/leak_causes.h>
#include <tenon/autograd/leaks/site_names.h>
#include <tenon/autograd/node_hooks.h>
#include <tenon/autograd/variable.h>

#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tenon::memory {

namespace {

using autograd::HeldTensor;
using autograd::Holders;
using autograd::Node;

const std::string kRetained =
    "retain_grad() keeps the gradient of a result for as long as the result lives: leave it out, or let go of the "
    "result";
constexpr std::size_t kLeastGraphBytes = 4 * KiB;  ///< less is a scalar's

class Causes {
 public:
  Causes(Device device, std::uint32_t thread) : thread_(thread), names_(device) {}

  void add(const GrowingBlocks& growing) {
    std::uint64_t all = 0;
    for (const LiveBlock& block : growing.blocks) all += block.bytes;
    if (all == 0) return;
    const double per_byte = growing.bytes_per_step / static_cast<double>(all);
    std::map<Cause*, std::size_t> counts;
    for (const LiveBlock& block : growing.blocks)
      if (Cause* cause = cause_of(block)) ++counts[cause];
    const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    for (const LiveBlock& block : growing.blocks) {
      Cause* const own = cause_of(block);
      if (own == nullptr) {
        add_gradient_of_leaf(block, per_byte);
        continue;
      }
      // A variable of the step that is not over yet holds the youngest of many that something else keeps.
      Cause& cause = 4 * counts[own] < growing.blocks.size() ? *most->first : *own;
      cause.per_step += per_byte * static_cast<double>(block.bytes);
      cause.bytes += block.bytes;
      cause.sizes.insert(block.bytes);
      cause.page_locked_bytes += block.page_locked ? block.bytes : 0;
      ++cause.blocks;
      if (block.bytes > cause.largest.bytes) cause.largest = block;
    }
  }

  std::vector<Leak> take(double nodes_per_step) {
    std::vector<Leak> leaks;
    join_results_to_their_gradients();
    join_leaves_to_their_gradients();
    for (auto& [key, cause] : causes_)
      if (cause.bytes != 0) leaks.push_back(leak_of(cause));
    add_growing_history(leaks, nodes_per_step);
    add_what_stays(leaks);
    return leaks;
  }

 private:
  struct Cause {
    LeakKind kind = LeakKind::kUnknown;
    std::string site;
    const HeldTensor* holder = nullptr;  ///< the root, alias, captured tensor or result
    const Node* saver = nullptr;
    double per_step = 0;
    std::size_t bytes = 0, blocks = 0;
    std::size_t page_locked_bytes = 0;  ///< of these
    std::set<std::uint64_t> sizes;
    LiveBlock largest;
    std::size_t result_bytes = 0;                   ///< of retained gradients: of them the results' own
    std::size_t gradient_bytes = 0, gradients = 0;  ///< of leaves: of these, which are no tensors of that line
  };
  struct LeafGradient {
    const TensorImpl* leaf = nullptr;
    double per_step = 0;
    std::size_t bytes = 0;
  };

  void add_gradient_of_leaf(const LiveBlock& block, double per_byte) {
    for (const HeldTensor* held : holders_.on(block.address))
      if (held->gradient_of != nullptr)
        leaf_gradients_.push_back({held->gradient_of, per_byte * static_cast<double>(block.bytes), block.bytes});
  }

  /// Leaves that grow take their gradients with them.
  void join_leaves_to_their_gradients() {
    for (const LeafGradient& gradient : leaf_gradients_) {
      const auto cause = leaves_.find(gradient.leaf);
      if (cause == leaves_.end() || cause->second->bytes == 0) continue;
      cause->second->per_step += gradient.per_step;
      cause->second->bytes += gradient.bytes;
      cause->second->gradient_bytes += gradient.bytes;
      ++cause->second->gradients;
    }
  }

  /// One line made results that the program holds, and they keep their gradients: one thing to mend.
  void join_results_to_their_gradients() {
    for (auto& [key, gradients] : causes_) {
      const auto held = causes_.find({LeakKind::kHeld, gradients.site});
      if (gradients.kind != LeakKind::kRetainedGradient || gradients.bytes == 0 || held == causes_.end()) continue;
      Cause& results = held->second;
      gradients.result_bytes = results.bytes;
      gradients.per_step += results.per_step;
      gradients.bytes += results.bytes;
      gradients.page_locked_bytes += results.page_locked_bytes;
      gradients.blocks += results.blocks;
      results.bytes = 0;
    }
  }

  Cause& of(LeakKind kind, std::string site, const HeldTensor* holder, const Node* saver = nullptr) {
    Cause& cause = causes_[{kind, site}];
    if (cause.holder == nullptr) {
      cause.kind = kind;
      cause.site = std::move(site);
      cause.holder = holder;
      cause.saver = saver;
    }
    return cause;
  }

  const std::string& made_at(const HeldTensor& held) { return names_.of_tensor(held.made_at); }
  /// Where a history ends: the line that made the root's last node.
  const std::string& history_at(const HeldTensor& root) {
    const StackId stack = listed_node(root.grad_fn);
    return stack != 0 ? names_.of_tensor(stack) : made_at(root);
  }

  Cause& of_hook(const HeldTensor& captured) {
    const void* list = captured.hook_of != nullptr ? hooks_of(captured) : nullptr;
    if (captured.hook_on != nullptr)
      list = static_cast<const autograd::AutogradMeta*>(captured.hook_on->autograd_meta())->hooks.get();
    const StackId stack = listed_hooks(list);
    return of(LeakKind::kHook, stack != 0 ? names_.of_tensor(stack) : made_at(captured), &captured);
  }

  static const void* hooks_of(const HeldTensor& captured) {
    for (const auto& [input, list] : captured.hook_of->hooks()->tensor_hooks)
      if (list) return list.get();
    return nullptr;
  }

  Cause& of_history(const Node* saver) {
    const HeldTensor* root = holders_.root_of(saver);
    if (root == nullptr) return of(LeakKind::kUnknown, "", nullptr);
    if (root->by_program == 0) return of_hook(*root);
    return of(LeakKind::kKeptGraph, history_at(*root), root, saver);
  }

  /// Null for the gradient of a leaf: each has one, so there are more of them as layers are unfrozen, and no more than
  /// leaves, which are a leak themselves where they grow, and it is a part of that.
  Cause* cause_of(const LiveBlock& block) {
    const std::vector<const HeldTensor*> all = holders_.on(block.address);
    const HeldTensor* program = nullptr;  // the widest tensor that it holds
    const HeldTensor* any = nullptr;
    for (const HeldTensor* held : all) {
      any = held;
      if (held->by_program > 0 && (program == nullptr || held->bytes() > program->bytes())) program = held;
    }
    if (program != nullptr) {
      // What is the end of a history that keeps more than itself: the history is what grows.
      if (program->grad_fn != nullptr && holders_.saved_bytes(program) > program->bytes())
        return &of(LeakKind::kKeptGraph, history_at(*program), program);
      const bool is_alias = 2 * program->bytes() <= autograd::storage_bytes_of(*program->tensor);
      Cause& cause = of(is_alias ? LeakKind::kAlias : LeakKind::kHeld, made_at(*program), program);
      leaves_[program->tensor] = &cause;
      return &cause;
    }
    for (const HeldTensor* held : all) {
      if (held->hook_of != nullptr || held->hook_on != nullptr) return &of_hook(*held);
      if (held->gradient_of != nullptr) {
        const HeldTensor* result = holders_.of(held->gradient_of);
        if (result != nullptr && result->grad_fn == nullptr) return nullptr;
        if (result != nullptr) return &of(LeakKind::kRetainedGradient, made_at(*result), result);
      }
    }
    for (const HeldTensor* held : all) {
      if (held->saver == nullptr) continue;
      Cause& cause = of_history(held->saver);
      leaves_[held->tensor] = &cause;
      return &cause;
    }
    return &of(LeakKind::kUnknown, names_.of_block(block.stack), any);
  }

  static std::string described(const TensorImpl& tensor) {
    return fmt::format("{} {}", to_string(autograd::sizes_of(tensor)), tenon::name_of(tensor.dtype()));
  }

  std::vector<std::string> chain_of(const Cause& cause) {
    std::vector<std::string> chain;
    if (cause.holder == nullptr) return chain;
    chain.push_back(fmt::format("tensor {}, made at {}", described(*cause.holder->tensor), made_at(*cause.holder)));
    const Node* saver = cause.saver;
    if (saver == nullptr) {
      for (const HeldTensor* held : holders_.on(cause.largest.address))
        if (held->saver != nullptr) saver = held->saver;
    }
    if (saver != nullptr && holders_.root_of(saver) == cause.holder) add_nodes(chain, holders_.chain_to(saver));
    chain.push_back(
        fmt::format("{} allocated at {}", format_bytes(cause.largest.bytes), names_.of_block(cause.largest.stack)));
    return chain;
  }

  void add_nodes(std::vector<std::string>& chain, const std::vector<const Node*>& nodes) {
    constexpr std::size_t kFirst = 3, kLast = 2;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes.size() > kFirst + kLast + 1 && i == kFirst) {
        chain.push_back(fmt::format("… {} more nodes", nodes.size() - kFirst - kLast));
        i = nodes.size() - kLast;
      }
      const StackId stack = listed_node(nodes[i]);
      chain.push_back(nodes[i]->name() + (stack != 0 ? ", recorded at " + names_.of_tensor(stack) : ""));
    }
  }

  /// What was saved for backward may be given back, and the nodes live on with the tensor.
  std::string beside_held(const Cause& cause) const {
    if (cause.gradients != 0) return fmt::format("; {} of it are their gradients", format_bytes(cause.gradient_bytes));
    const std::size_t nodes = cause.holder->grad_fn != nullptr ? holders_.node_count(cause.holder) : 0;
    if (nodes == 0) return {};
    return fmt::format("; the history of one, {}, lives as long: keep item() or detach() of what needs none",
                       counted(nodes, "node"));
  }

  std::string sentence_of(const Cause& cause) {
    switch (cause.kind) {
      case LeakKind::kKeptGraph:
        return "a tensor that the program keeps holds the history of former steps, and with it what they saved for "
               "backward: keep loss.item() or loss.detach() instead";
      case LeakKind::kHook:
        if (cause.holder->grad_fn == nullptr)
          return "a hook captured it and is still there, as one is that is registered anew in every step: register it "
                 "once, or remove it";
        return "a hook captured a tensor whose history leads to the hook itself, so that neither ever ends: capture "
               "what "
               "the hook needs of it, not the tensor, or remove the hook";
      case LeakKind::kAlias:
        return fmt::format(
            "each is a view or detach() that uses {} of a storage of {} and keeps all of it: clone() what "
            "is kept",
            format_bytes(cause.holder->bytes()), format_bytes(cause.largest.bytes));
      case LeakKind::kRetainedGradient:
        return kRetained + (cause.result_bytes == 0
                                ? std::string()
                                : fmt::format("; the results, which the program holds, are {} of it",
                                              format_bytes(cause.result_bytes)));
      case LeakKind::kHeld:
        if (cause.sizes.size() > 2 && cause.sizes.size() == cause.blocks)
          return fmt::format(
                     "the program holds {} tensors, each of another size, as a cache keyed by shape does: bound it",
                     cause.blocks) +
                 beside_held(cause);
        return fmt::format(
                   "the program holds {} tensors that this line made: a list, cache or queue that nobody empties, or "
                   "that has not been full yet",
                   cause.blocks) +
               beside_held(cause);
      case LeakKind::kUnknown:
        break;
    }
    return "no tensor is known that holds it";
  }

  /// One line may make memory of both kinds: a batch, and its page-locked copy.
  static std::string page_locked_part(const Cause& cause) {
    if (cause.page_locked_bytes == 0 || cause.page_locked_bytes == cause.bytes) return {};
    return fmt::format("; {} of it are page-locked", format_bytes(cause.page_locked_bytes));
  }

  Leak leak_of(const Cause& cause) {
    return {.kind = cause.kind,
            .grows = true,
            .site = cause.site,
            .allocated_at = names_.of_block(cause.largest.stack),
            .bytes_per_step = cause.per_step,
            .bytes = cause.bytes,
            .blocks = cause.blocks + cause.gradients,
            .purpose = cause.largest.purpose,
            .label = label_name(cause.largest.label),
            .page_locked = 2 * cause.page_locked_bytes > cause.bytes,
            .sentence = sentence_of(cause) + page_locked_part(cause),
            .chain = chain_of(cause)};
  }

  /// By which the histories grow that only hooks hold, as leaks that were found say.
  double nodes_of_hooks(const std::vector<Leak>& leaks) const {
    double steps = 0;
    for (const Leak& leak : leaks)
      if (leak.kind == LeakKind::kHook && leak.bytes_per_step > 0)
        steps = std::max(steps, static_cast<double>(leak.bytes) / leak.bytes_per_step);
    std::size_t nodes = 0;
    for (const HeldTensor* root : holders_.roots()) nodes += root->by_program == 0 ? holders_.node_count(root) : 0;
    return steps > 0 ? static_cast<double>(nodes) / steps : 0;
  }

  void add_growing_history(std::vector<Leak>& leaks, double nodes_per_step) {
    const auto is_history = [](const Leak& leak) { return leak.kind == LeakKind::kKeptGraph; };
    if (nodes_per_step - nodes_of_hooks(leaks) < 0.5 || std::ranges::any_of(leaks, is_history)) return;
    const HeldTensor* root = nullptr;
    std::size_t nodes = 0;
    for (const HeldTensor* one : holders_.roots()) {
      const std::size_t its = one->by_program > 0 ? holders_.node_count(one) : 0;
      if (its > nodes) nodes = its, root = one;
    }
    if (root == nullptr || static_cast<double>(nodes) < 3 * nodes_per_step) return;
    std::vector<std::string> chain = {fmt::format("tensor {}, made at {}", described(*root->tensor), made_at(*root))};
    add_nodes(chain, holders_.longest_chain(root));
    leaks.push_back({.kind = LeakKind::kKeptGraph,
                     .grows = true,
                     .site = history_at(*root),
                     .nodes_per_step = nodes_per_step,
                     .sentence = fmt::format("the history of a tensor that the program keeps has {} nodes and reaches "
                                             "back over former steps: add loss.item() or loss.detach() instead",
                                             nodes),
                     .chain = std::move(chain)});
  }

  void add_what_stays(std::vector<Leak>& leaks) {
    std::set<std::string> known;
    for (const Leak& leak : leaks) known.insert(leak.site);
    for (const HeldTensor* root : holders_.roots()) {
      const std::size_t bytes = holders_.saved_bytes(root);
      if (bytes < kLeastGraphBytes || root->by_program == 0 || root->thread != thread_) continue;
      if (!known.insert(history_at(*root)).second) continue;
      leaks.push_back(
          {.kind = LeakKind::kKeptGraph,
           .grows = false,
           .site = history_at(*root),
           .bytes = bytes,
           .purpose = Purpose::kActivation,
           .sentence = "its history still keeps what was saved for backward when the step is over: backward() ran with "
                       "retain_graph, or never; use NoGradGuard for what needs no gradient",
           .chain = {fmt::format("tensor {}, made at {}", described(*root->tensor), made_at(*root))}});
    }
    for (const HeldTensor& held : holders_.all()) {
      if (held.gradient_of == nullptr) continue;
      const HeldTensor* result = holders_.of(held.gradient_of);
      if (result == nullptr || result->grad_fn == nullptr || result->thread != thread_) continue;
      if (!known.insert(made_at(*result)).second) continue;
      leaks.push_back({.kind = LeakKind::kRetainedGradient,
                       .grows = false,
                       .site = made_at(*result),
                       .bytes = autograd::storage_bytes_of(*held.tensor),
                       .blocks = 1,
                       .purpose = Purpose::kGradient,
                       .sentence = kRetained,
                       .chain = {fmt::format("gradient of tensor {}", described(*result->tensor))}});
    }
  }

  std::uint32_t thread_;  ///< that steps
  Holders holders_;
  SiteNames names_;
  std::map<std::tuple<LeakKind, std::string>, Cause> causes_;
  std::map<const TensorImpl*, Cause*> leaves_;  ///< what the program or a history holds, of what was asked for
  std::vector<LeafGradient> leaf_gradients_;
};

}  // namespace

std::vector<Leak> causes_of(const std::vector<GrowingBlocks>& growing, double nodes_per_step, Device device,
                            std::uint32_t thread) {
  Causes causes(device, thread);
  for (const GrowingBlocks& blocks : growing) causes.add(blocks);
  return causes.take(nodes_per_step);
}

}  // namespace tenon::memory
