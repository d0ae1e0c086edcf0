// Listeners and what threads know of themselves.
//
// Note [Telling]: a thread tells under a lock of its own, which nobody else takes but remove_listener(), once for each
// thread, after it has taken the listener from the list: from then on no thread is inside of it.
#include <tenon/core/scope/scope.h>

#include <tenon/core/error.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tenon::scopes {

namespace detail {
constinit std::atomic<std::uint32_t> wanted_outside{0};
}

namespace {

constexpr std::size_t kMostListeners = 8;

struct Slot {
  std::atomic<Listener*> listener{nullptr};
  std::uint32_t wants = 0;
};
std::array<Slot, kMostListeners> slots;
bool lives_are_wanted = false;  // under listeners_mutex(), as those below
using WantedChanged = void (*)(std::uint32_t) noexcept;
std::array<WantedChanged, 4> told_of_changes;  // null behind the last

/// One thread's own; kept by the list as long as the thread lives.
struct ThreadState {
  std::mutex telling;
  bool is_telling = false;
  std::uint32_t number = 0;
  ContextId context = 0;
};

/// As long as the process: threads end after main() has.
struct Threads {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadState>> states;
  std::uint32_t numbers = 0;
};
Threads& threads() {
  static Threads* const all = new Threads;
  return *all;
}
/// Listeners come and go one at a time.
std::mutex& listeners_mutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

struct OwnState {
  std::shared_ptr<ThreadState> state = std::make_shared<ThreadState>();
  OwnState() {
    Threads& all = threads();
    const std::lock_guard lock(all.mutex);
    state->number = ++all.numbers;
    all.states.push_back(state);
  }
  ~OwnState() {
    Threads& all = threads();
    const std::lock_guard lock(all.mutex);
    std::erase(all.states, state);
  }
  OwnState(const OwnState&) = delete;
  OwnState& operator=(const OwnState&) = delete;
};

constinit thread_local ThreadState* own_state = nullptr;  // what the fast way reads: nothing to construct
constinit thread_local bool has_ended = false;

/// Null in a thread that is ending: it tells nothing more.
ThreadState* own() noexcept {
  if (own_state != nullptr) [[likely]]
    return own_state;
  if (has_ended) return nullptr;
  try {
    struct Own : OwnState {
      ~Own() {
        own_state = nullptr;
        has_ended = true;
      }
    };
    thread_local Own here;
    own_state = here.state.get();
  } catch (...) {
    return nullptr;  // no memory for it: nothing is told
  }
  return own_state;
}

void publish(std::uint32_t wants) {
  detail::wanted.store(wants, std::memory_order_seq_cst);
  detail::wanted_outside.store(wants, std::memory_order_seq_cst);
  for (WantedChanged told : told_of_changes)
    if (told != nullptr) told(wants);
}

std::uint32_t all_wants() {
  std::uint32_t wants = lives_are_wanted ? std::uint32_t{kWantsLives} : 0;
  for (const Slot& slot : slots)
    if (slot.listener.load(std::memory_order_relaxed) != nullptr) wants |= slot.wants;
  return wants;
}

/// `context`, or where it is not in the module of `forward`, that module's node below it.
ContextId in_module_of(ContextId forward, ContextId context) {
  const Context wanted = context_of(innermost(forward, Kind::kModule));
  if (wanted.kind != Kind::kModule) return context;
  const Context has = context_of(innermost(context, Kind::kModule));
  if (has.kind == Kind::kModule && has.name == wanted.name && has.type == wanted.type && has.root == wanted.root)
    return context;
  return child_of(context, Kind::kModule, wanted.name, Phase::kOther, wanted.type, wanted.root);
}

/// A function that differentiates inside of its own backward is a part of that.
bool is_in_phase(ContextId context, Phase phase) {
  for (ContextId id = innermost(context, Kind::kPhase); id != 0; id = innermost(context_of(id).parent, Kind::kPhase))
    if (context_of(id).phase == phase) return true;
  return false;
}

template <class Tell>
void tell(std::uint32_t what, const Tell& tell) noexcept {
  ThreadState* const state = own();
  if (state == nullptr || state->is_telling) return;
  const std::lock_guard lock(state->telling);
  state->is_telling = true;
  for (const Slot& slot : slots) {
    Listener* const listener = slot.listener.load(std::memory_order_acquire);
    if (listener != nullptr && (slot.wants & what) != 0) tell(*listener);
  }
  state->is_telling = false;
}

}  // namespace

void add_listener(Listener& listener, std::uint32_t wants) {
  const std::lock_guard lock(listeners_mutex());
  for (Slot& slot : slots) {
    if (slot.listener.load(std::memory_order_relaxed) != nullptr) continue;
    slot.wants = wants | kWantsScopes;
    slot.listener.store(&listener, std::memory_order_release);
    return publish(all_wants());
  }
  throw Error("eight listen to scopes already: end one of them (a profiler, an attribution of memory) first");
}

void remove_listener(Listener& listener) {
  const std::lock_guard lock(listeners_mutex());
  for (Slot& slot : slots) {
    if (slot.listener.load(std::memory_order_relaxed) == &listener)
      slot.listener.store(nullptr, std::memory_order_seq_cst);
  }
  publish(all_wants());
  std::vector<std::shared_ptr<ThreadState>> states;
  {
    Threads& all = threads();
    const std::lock_guard guard(all.mutex);
    states = all.states;
  }
  for (const auto& state : states) const std::lock_guard wait(state->telling);
}

void want_lives(bool are_wanted) {
  const std::lock_guard lock(listeners_mutex());
  lives_are_wanted = are_wanted;
  publish(all_wants());
}

void on_wanted_changed(WantedChanged told) {
  const std::lock_guard lock(listeners_mutex());
  const auto place = std::find(told_of_changes.begin(), told_of_changes.end(), nullptr);
  if (place == told_of_changes.end())
    throw Error("four follow what is wanted already: raise their number in scope.cpp");
  *place = told;
}

ContextId current_context() noexcept {
  if (!is_listening()) return 0;
  const ThreadState* const state = own();
  return state == nullptr ? 0 : state->context;
}

std::uint32_t thread_number() noexcept {
  const ThreadState* const state = own();
  return state == nullptr ? 0 : state->number;
}

[[gnu::cold]] void Scope::enter(const Entered& given, const char* type, const char* root) noexcept {
  ThreadState* const state = own();
  if (is_entered_ || state == nullptr || state->is_telling) return;
  if (given.kind == Kind::kPhase && is_in_phase(state->context, given.phase)) return;
  Entered entered = given;
  try {
    const ContextId parent = given.forward == 0 ? state->context : in_module_of(given.forward, state->context);
    if (given.kind == Kind::kModule && *root == '\0') root = context_of(innermost(parent, Kind::kModule)).root;
    entered.context = child_of(parent, given.kind, given.name, given.phase, type, root);
  } catch (...) {
    return;  // no memory for a node: the scope is not entered
  }
  if (entered.context != state->context) entered.name = context_of(entered.context).name;
  kind_ = given.kind;
  context_ = entered.context;
  outer_ = std::exchange(state->context, entered.context);
  is_entered_ = true;
  tell(kWantsScopes, [&](Listener& listener) { listener.entered(entered); });
}

[[gnu::cold]] void Scope::leave() noexcept {
  tell(kWantsScopes, [&](Listener& listener) { listener.left(kind_, context_); });
  if (ThreadState* const state = own()) state->context = outer_;
}

ContextGuard::ContextGuard(ContextId context) noexcept : outer_(0) {
  if (!is_listening() && context == 0) return;
  if (ThreadState* const state = own()) outer_ = std::exchange(state->context, context);
}
ContextGuard::~ContextGuard() {
  if (own_state != nullptr) own_state->context = outer_;
}

void tell_node_made(const void* node, std::uint64_t sequence) noexcept {
  tell(kWantsScopes, [&](Listener& listener) { listener.node_made(node, sequence); });
}
void tell_kernel_begins(const KernelCall& call) noexcept {
  tell(kWantsKernels, [&](Listener& listener) { listener.kernel_begins(call); });
}
void tell_kernel_ends(const KernelCall& call) noexcept {
  tell(kWantsKernels, [&](Listener& listener) { listener.kernel_ends(call); });
}
void tell_copy_begins(const CopyCall& call) noexcept {
  tell(kWantsKernels, [&](Listener& listener) { listener.copy_begins(call); });
}
void tell_copy_ends(const CopyCall& call) noexcept {
  tell(kWantsKernels, [&](Listener& listener) { listener.copy_ends(call); });
}
void tell_allocated(MemoryCall call) noexcept {
  call.context = current_context();
  tell(kWantsMemory, [&](Listener& listener) { listener.allocated(call); });
}
void tell_freed(MemoryCall call) noexcept {
  call.context = current_context();
  tell(kWantsMemory, [&](Listener& listener) { listener.freed(call); });
}
void tell_device_called(const DeviceCall& call) noexcept {
  tell(kWantsMemory, [&](Listener& listener) { listener.device_called(call); });
}
void tell_marked(std::string_view name) noexcept {
  tell(kWantsScopes, [&](Listener& listener) { listener.marked(name); });
}

}  // namespace tenon::scopes
