// The tree: nodes in chunks that never move, found by a map under one lock. Threads remember the ways they have gone.
#include <tenon/core/scope/context.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::scopes {
namespace {

constexpr std::uint32_t kChunk = 1024, kChunks = 4096;

struct Key {
  ContextId parent;
  Kind kind;
  const char* name;  // interned
  const char* type;  // interned
  const char* root;  // interned
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    const auto name = reinterpret_cast<std::uintptr_t>(key.name);
    const auto type = reinterpret_cast<std::uintptr_t>(key.type) ^ reinterpret_cast<std::uintptr_t>(key.root) << 5;
    return ((name ^ type << 7) >> 3) * 0x9E3779B97F4A7C15ULL ^
           (static_cast<std::size_t>(key.parent) * 0xC2B2AE3D27D4EB4FULL) ^ static_cast<std::size_t>(key.kind);
  }
};

/// As long as the process: events of threads that outlive main() may still ask.
struct Tree {
  std::mutex mutex;
  std::unordered_set<std::string> names;
  std::unordered_map<Key, ContextId, KeyHash> children;
  std::array<std::atomic<Context*>, kChunks> chunks{};
  std::atomic<std::uint32_t> count{1};

  Tree() { chunks[0] = new Context[kChunk]; }
  const char* intern_locked(std::string_view text) { return names.emplace(text).first->c_str(); }
};
Tree& tree() {
  static Tree* const tree = new Tree;
  return *tree;
}

/// What this thread has asked for last: a name at the same address is the same text where it is a literal. Another text
/// may come to stand there, so the text is compared too.
struct Remembered {
  ContextId parent = 0, id = 0;
  Kind kind = Kind::kOutside;
  const char* asked = nullptr;
  const char* name = nullptr;
  const char* type = nullptr;
  const char* root = nullptr;
};
constexpr std::size_t kRemembered = 256;
using Memo = std::array<Remembered, kRemembered>;

/// Made for a thread that asks: thread-local memory itself is scarce in programs that load the library late.
Memo& remembered() {
  thread_local std::unique_ptr<Memo> memo;
  if (!memo) memo = std::make_unique<Memo>();
  return *memo;
}

bool equal(const char* a, const char* b) { return std::string_view(a) == std::string_view(b); }

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"outside", "operator", "backward", "module", "label", "phase"};
  return kNames[static_cast<int>(kind)];
}
const char* name_of(Phase phase) {
  constexpr const char* kNames[kPhaseCount] = {"other", "data", "forward", "backward", "optimizer"};
  return kNames[static_cast<int>(phase)];
}

const char* interned(std::string_view text) {
  Tree& all = tree();
  const std::lock_guard lock(all.mutex);
  return all.intern_locked(text);
}

std::uint32_t context_count() { return tree().count.load(std::memory_order_acquire); }

Context context_of(ContextId id) {
  if (id == 0 || id >= context_count()) return {};
  return tree().chunks[id / kChunk].load(std::memory_order_relaxed)[id % kChunk];
}

ContextId child_of(ContextId parent, Kind kind, const char* name, Phase phase, const char* type, const char* root) {
  Remembered& last =
      remembered()[((reinterpret_cast<std::uintptr_t>(name) >> 2) ^ (parent * 31) ^ static_cast<unsigned>(kind)) %
                   kRemembered];
  if (last.asked == name && last.parent == parent && last.kind == kind && equal(last.name, name) &&
      equal(last.type, type) && equal(last.root, root)) [[likely]]
    return last.id;
  Tree& all = tree();
  const std::lock_guard lock(all.mutex);
  const char* const kept = all.intern_locked(name);
  const char* const kept_type = all.intern_locked(type);
  const char* const kept_root = all.intern_locked(root);
  const auto [found, is_new] = all.children.try_emplace(Key{parent, kind, kept, kept_type, kept_root}, 0);
  if (is_new) {
    const std::uint32_t id = all.count.load(std::memory_order_relaxed);
    if (id == kChunk * kChunks) {
      all.children.erase(found);
      return parent;
    }
    std::atomic<Context*>& chunk = all.chunks[id / kChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Context[kChunk], std::memory_order_relaxed);
    chunk.load(std::memory_order_relaxed)[id % kChunk] = {parent, kind, phase, kept, kept_type, kept_root};
    all.count.store(id + 1, std::memory_order_release);
    found->second = id;
  }
  last = {parent, found->second, kind, name, kept, kept_type, kept_root};
  return found->second;
}

ContextId innermost(ContextId id, Kind kind) {
  for (; id != 0; id = context_of(id).parent) {
    if (context_of(id).kind == kind) return id;
  }
  return 0;
}

std::string module_path(ContextId id) {
  const Context module = context_of(innermost(id, Kind::kModule));
  return *module.name != '\0' ? module.name : module.type;
}

std::string_view operator_name(ContextId id) {
  for (; id != 0;) {
    const Context context = context_of(id);
    if (context.kind == Kind::kOperator || context.kind == Kind::kBackward) return context.name;
    id = context.parent;
  }
  return {};
}

std::string_view outer_operator_name(ContextId id) {
  std::string_view name;
  for (; id != 0;) {
    const Context context = context_of(id);
    if (context.kind == Kind::kOperator || context.kind == Kind::kBackward)
      name = context.name;
    else if (!name.empty())
      break;
    id = context.parent;
  }
  return name;
}

Phase phase_of(ContextId id) {
  bool in_module = false;
  for (; id != 0;) {
    const Context context = context_of(id);
    if (context.kind == Kind::kPhase) return context.phase;
    if (context.kind == Kind::kBackward) return Phase::kBackward;
    in_module |= context.kind == Kind::kModule;
    id = context.parent;
  }
  return in_module ? Phase::kForward : Phase::kOther;
}

std::string path_of(ContextId id) {
  constexpr std::string_view kEngines = "autograd::engine::evaluate_function: ";
  std::string path;
  for (; id != 0;) {
    const Context context = context_of(id);
    id = context.parent;
    // The engine's part of a node is around that, and says its name too.
    if (!path.empty() && context.kind == Kind::kBackward && std::string_view(context.name).starts_with(kEngines))
      continue;
    const bool is_root = context.kind == Kind::kModule && *context.name == '\0';
    path.insert(0, path.empty() ? "" : " > ");
    path.insert(0, is_root ? context.type : context.name);
  }
  return path;
}

}  // namespace tenon::scopes
