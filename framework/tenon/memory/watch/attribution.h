// Attribution: whose the memory is. While it lives each block of one allocator is known by module, purpose, operator
// and phase (core/scope), so that what lives, what the peak consisted of, and what each phase of a step adds can be
// said.
//
//   live bytes by (context, purpose)      a block of a parameter, gradient or optimizer state by itself: owner known
//   later pending    what changed since the peak; a new peak takes it in, so that an allocation costs a look-up or two
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/scope/module_place.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/snapshot.h>
#include <tenon/memory/stats.h>
#include <tenon/memory/watch/step_uses.h>

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::memory {

/// Bytes, as requested, of one module, operator, phase and purpose.
struct AttributedBytes {
  /// "encoder.layer.3.mlp"; of the root of a tree its type, "Net"; where modules of two trees share a path, with the
  /// root's type before each path of theirs, "Net.encoder"; empty outside of modules and where nobody owns it
  std::string module;
  std::string operator_name;  ///< "linear", "AddmmBackward0"; empty outside of operators
  std::string phase;          ///< "forward"
  Purpose purpose = Purpose::kOther;
  std::size_t bytes = 0;
  std::size_t blocks = 0;
  std::string site;      ///< of a report at a failure, where it is known: "forward (net.cpp:31) < main (train.cpp:9)"
  std::string root;      ///< the type of the root of the module's tree; empty where that is not known
  bool is_root = false;  ///< the module is that root
  auto operator<=>(const AttributedBytes&) const = default;
};

/// The module that a block belongs to.
using Owner = scopes::ModulePlace;

/// A phase of a step, in that step in which it reached most.
struct PhaseMemory {
  std::string phase;
  std::uint64_t times = 0;  ///< it was entered
  std::size_t before_bytes = 0, peak_bytes = 0, after_bytes = 0;
  std::string mark;     ///< the last mark before: "step 3"
  std::string peak_at;  ///< "forward > encoder > linear": the allocation that reached the peak; empty where none did
  std::size_t peak_request_bytes = 0;
};

/// A block that keeps a failed request from fitting.
struct Pin {
  std::size_t bytes = 0;  ///< as handed out
  AttributedBytes whose;
};

/// Blocks of a step that no operator has used for long, and that nothing keeps for backward, when a request failed.
struct IdleBytes {
  AttributedBytes whose;
  std::string last_use;             ///< "forward > head > matmul"
  std::uint64_t operators_ago = 0;  ///< operators and nodes of autograd that began since: the fewest of these blocks
  bool is_known = false;            ///< in the step before they were not used again either
};

struct AttributionReport {
  std::vector<AttributedBytes> live;  ///< now, the largest first
  std::vector<AttributedBytes> peak;  ///< at the moment at which most lived, as requested
  std::size_t live_bytes = 0, peak_bytes = 0;
  std::string peak_mark;  ///< "step 3"
  std::string peak_at;    ///< the allocation that reached it: "backward > layer1 > AddmmBackward0"
  std::size_t peak_request_bytes = 0;
  std::vector<PhaseMemory> phases;  ///< in the order of a step
  /// Of former steps, and neither parameters nor what an optimizer or a data set keeps: given back too late, if it is
  /// not meant to live.
  std::vector<AttributedBytes> held_over;
  std::int64_t after_step = 0;  ///< of a run that was resumed: what was until that step is not in here
  std::uint64_t checks = 0;     ///< how often the sums were held against the allocator's figures
  std::string disagreement;     ///< the first one; empty: they were equal every time
  /// At a failure of a request of that size: the stretch that would have served it but for the blocks that pin it.
  std::size_t failed_bytes = 0, hole_bytes = 0, hole_free_bytes = 0;
  std::vector<Pin> pins;  ///< of a stretch below the request: what keeps its segment from going back to the device
  std::size_t awaiting_bytes = 0;  ///< given back, and not to be had before a stream that used them has got there
  std::vector<IdleBytes> idle;     ///< where uses are told (autograd/leaks/last_uses.h)
  bool are_uses_told = false;
  std::uint64_t step_operators = 0;  ///< operators and nodes of the step until then
};
/// The call site of the live block at an address; empty where none is known.
using SiteOf = std::function<std::string(const void* address)>;
/// Addresses of blocks that something keeps because it will read them: nodes of autograd what they saved.
using KeptBlocks = std::unordered_set<const void*>;

/// Thread-safe.
class TENON_EXPORT Attribution final : private scopes::Listener {
 public:
  /// Of the blocks of `stack`, whose figures now are `stats`: what lives already has a purpose, and nothing else.
  TENON_API Attribution(const AllocatorStack& stack, const MemoryStats& stats);
  TENON_API ~Attribution() override;
  Attribution(const Attribution&) = delete;
  Attribution& operator=(const Attribution&) = delete;

  /// The block at that address belongs to that module, wherever and for what it was allocated: a parameter, its
  /// gradient or state. One that was there before this attribution, of so many `bytes` as requested and that purpose,
  /// is known from then on.
  TENON_API void own(const void* address, const Owner& owner, std::size_t bytes = 0, Purpose purpose = Purpose::kOther);
  /// An operator or a node uses the block at that address now.
  TENON_API void used(const void* address);
  /// Holds the sums against the allocator's figures of this moment: by purpose, and by module, by operator and by
  /// purpose of all rows that a report would have.
  TENON_API void check(const MemoryStats& stats, std::string_view when);
  TENON_API AttributionReport report() const;
  /// The same for a request that failed, with what pins the largest hole in the allocator's segments; with `kept`,
  /// where uses are told, also what has been idle for long.
  TENON_API AttributionReport report_at_failure(const std::vector<Segment>& segments, std::size_t failed_bytes,
                                                const SiteOf& site_of = {}, const KeptBlocks* kept = nullptr) const;

 private:
  struct Key {
    scopes::ContextId context = 0;
    Purpose purpose = Purpose::kOther;
    std::uint64_t block = 0;  ///< of a block that may get an owner, its number
    auto operator<=>(const Key&) const = default;
  };
  struct Amount {
    std::int64_t bytes = 0, blocks = 0;
  };
  using Table = std::map<Key, Amount>;
  struct Live {
    Key key;
    std::size_t bytes = 0;
    std::uint64_t mark = 0;  ///< how many marks there had been
    StepUses::Name name;
    std::uint64_t used_at = 0;  ///< how many operators there had been
    scopes::ContextId used_in = 0;
  };
  struct OpenPhase {
    scopes::ContextId context = 0;
    PhaseMemory memory;
    std::uint32_t thread = 0;  ///< that is in it
  };

  void entered(const scopes::Entered& scope) noexcept override;
  void left(scopes::Kind kind, scopes::ContextId context) noexcept override;
  void allocated(const scopes::MemoryCall& call) noexcept override;
  void freed(const scopes::MemoryCall& call) noexcept override;
  void marked(std::string_view name) noexcept override;

  void change_locked(const Key& key, std::int64_t bytes, std::int64_t blocks);
  static void add(Table& table, const Key& key, Amount amount);
  using Roots = std::set<std::string>;
  Owner owner_locked(const Key& key) const;
  Roots roots_to_name_locked() const;
  std::vector<AttributedBytes> composition_locked(const Table& table, const Roots& named) const;
  AttributedBytes row_locked(const Key& key, const Roots& named) const;
  std::vector<AttributedBytes> live_with_sites_locked(const SiteOf& site_of, const Roots& named) const;
  std::vector<IdleBytes> idle_locked(const SiteOf& site_of, const KeptBlocks& kept, const Roots& named) const;

  const AllocatorStack& stack_;
  mutable std::mutex mutex_;
  Table now_, peak_, pending_;
  std::unordered_map<const void*, Live> live_;
  std::map<std::uint64_t, Owner> owners_;  ///< by number of a block
  std::uint64_t blocks_ = 0;
  std::array<std::int64_t, kPurposeCount> by_purpose_{};
  std::int64_t live_bytes_ = 0, peak_bytes_ = 0;
  std::string mark_, peak_mark_;
  std::uint64_t marks_ = 0;
  std::atomic<std::uint64_t> operators_{0};  ///< and nodes of autograd, that have begun
  std::uint64_t operators_before_step_ = 0;
  StepUses uses_;
  scopes::ContextId peak_context_ = 0;
  std::size_t peak_request_bytes_ = 0;
  std::vector<OpenPhase> open_;  ///< of all threads; of each, the outer ones first
  std::map<scopes::Phase, PhaseMemory> phases_;
  std::uint64_t checks_ = 0;
  std::string disagreement_;
};

}  // namespace tenon::memory
