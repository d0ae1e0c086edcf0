// Walking stacks: by the unwinder the first time, by what is known of it from then on.
//
// Note [Walking a stack again]: the unwinder takes its time for each frame, and a program has the same stacks in each
// step. So what it has found is kept as a tree: under each frame those that have called it, with the places of their
// return addresses.
//
//   allocate, at 0x7f…08 ─┬─ linear, at 0x7f…68 ─── forward, at 0x7f…d8 ─── step … main
//                         └─ relu,   at 0x7f…68 ─── …
//
// A walk goes along it as long as each place still holds the address that it held. Where the whole way out is known,
// that is the stack; else the unwinder walks all of it. (x86-64 has the return address next to the frame; elsewhere the
// unwinder walks every time.)
#include <tenon/memory/history/stack_walk.h>
#include <tenon/memory/history/thread_start.h>

#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tenon {

namespace {

struct Frame {
  std::uintptr_t address = 0;             ///< that the call returns to
  const std::uintptr_t* place = nullptr;  ///< where it stands; null where that is not known
};
struct Walk {
  std::array<Frame, kMostStackFrames> frames;
  std::size_t count = 0;
  const std::uintptr_t* first = nullptr;  ///< the place of the first frame that is wanted
};

#if defined(__x86_64__)
constexpr bool kPlacesAreKnown = true;
#else
constexpr bool kPlacesAreKnown = false;
#endif

/// Of the thread that started this one: its stack.
thread_local const std::vector<void*>* starter = nullptr;

/// The stacks of one thread.
class KnownStacks {
 public:
  /// The known stack that begins with that frame; false where none is known.
  __attribute__((no_sanitize("address"))) bool follow(Frame first, Walk& walk) const {
    std::uint32_t at = nodes_[0].first_caller;
    while (at != 0 && (nodes_[at].frame.place != first.place || nodes_[at].frame.address != first.address))
      at = nodes_[at].next_sibling;
    for (walk.count = 0; at != 0; at = caller_of(at)) {
      walk.frames[walk.count++] = nodes_[at].frame;
      if (nodes_[at].is_outermost) return true;
    }
    return false;
  }

  void add(const Walk& walk) {
    if (nodes_.size() + walk.count > kMostNodes) nodes_.assign(1, {});
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < walk.count; ++i) {
      const Frame& frame = walk.frames[i];
      std::uint32_t next = nodes_[at].first_caller;
      while (next != 0 && (nodes_[next].frame.place != frame.place || nodes_[next].frame.address != frame.address))
        next = nodes_[next].next_sibling;
      if (next == 0) {
        next = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({.frame = frame, .next_sibling = nodes_[at].first_caller});
        nodes_[at].first_caller = next;
      }
      at = next;
    }
    nodes_[at].is_outermost = true;
  }

 private:
  static constexpr std::size_t kMostNodes = 1 << 15;  ///< beyond, all is forgotten
  struct Node {
    Frame frame;
    std::uint32_t first_caller = 0, next_sibling = 0;
    bool is_outermost = false;
  };

  /// That is there now.
  __attribute__((no_sanitize("address"))) std::uint32_t caller_of(std::uint32_t at) const {
    for (at = nodes_[at].first_caller; at != 0; at = nodes_[at].next_sibling)
      if (*nodes_[at].frame.place == nodes_[at].frame.address) return at;
    return 0;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);  ///< the first is inside of all stacks
};

/// Made for a thread that walks.
KnownStacks& known_stacks() {
  thread_local std::unique_ptr<KnownStacks> known;
  if (!known) known = std::make_unique<KnownStacks>();
  return *known;
}

__attribute__((no_sanitize("address"))) _Unwind_Reason_Code add_frame(_Unwind_Context* context, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  Frame frame{.address = _Unwind_GetIP(context)};
  if (frame.address == 0) return _URC_NO_REASON;
  if constexpr (kPlacesAreKnown) {
    const auto* place = reinterpret_cast<const std::uintptr_t*>(_Unwind_GetCFA(context)) - 1;
    if (walk.count == 0 && place < walk.first) return _URC_NO_REASON;  // the walk's own function
    if (*place == frame.address) frame.place = place;
  }
  walk.frames[walk.count++] = frame;
  return walk.count == kMostStackFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool are_all_places_known(const Walk& walk) {
  for (std::size_t i = 0; i < walk.count; ++i)
    if (walk.frames[i].place == nullptr) return false;
  return walk.count > 0;
}

}  // namespace

[[gnu::noinline]] std::size_t walk_call_stack(std::span<void*, kMostStackFrames> addresses) {
  Walk walk;
  if constexpr (kPlacesAreKnown) {
    walk.first = static_cast<const std::uintptr_t*>(__builtin_frame_address(0)) + 1;
    const Frame first{reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), walk.first};
    KnownStacks& known = known_stacks();
    if (!known.follow(first, walk)) {
      walk.count = 0;
      _Unwind_Backtrace(&add_frame, &walk);
      if (are_all_places_known(walk)) known.add(walk);
    }
  } else {
    _Unwind_Backtrace(&add_frame, &walk);
  }
  // Inside the call, not after it.
  for (std::size_t i = 0; i < walk.count; ++i) addresses[i] = reinterpret_cast<void*>(walk.frames[i].address - 1);
  if (starter == nullptr) return walk.count;
  const std::size_t more = std::min(starter->size(), kMostStackFrames - walk.count);
  std::copy_n(starter->begin(), more, addresses.begin() + static_cast<std::ptrdiff_t>(walk.count));
  return walk.count + more;
}

ThreadStart::ThreadStart() : addresses_(kMostStackFrames) {
  addresses_.resize(walk_call_stack(std::span<void*, kMostStackFrames>(addresses_)));
}

ThreadStart::Scope::Scope(const ThreadStart& start) noexcept : before_(std::exchange(starter, &start.addresses_)) {}
ThreadStart::Scope::~Scope() { starter = before_; }

}  // namespace tenon
