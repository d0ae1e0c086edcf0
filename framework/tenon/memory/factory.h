// How an allocator comes into being: what it is told, and what a plugin says about it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/address_range_watcher.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tenon {

/// Told by a policy to the host, for histories and snapshots; every call is optional and must not throw.
class TENON_EXPORT PolicyObserver {
 public:
  virtual ~PolicyObserver();
  /// A block whose free was deferred has become reusable (PyTorch: free_completed). Blocks freed at once need no call.
  virtual void free_completed(const void* address, std::size_t bytes, StreamRef stream) noexcept = 0;
};

struct AllocatorContext {
  MemorySource& source;    ///< outlives the allocator
  const Options& options;  ///< validated against the schema; valid during the call
  PolicyObserver* observer = nullptr;
};

/// What an allocator says of itself, so that nobody has to know it by its name. The defaults are those of a policy of
/// which nothing is known.
struct AllocatorTraits {
  /// The setting that makes PyTorch's allocator decide as this one does: "" for its defaults, or
  /// "expandable_segments:True"; none for a policy that PyTorch does not have. With one, options of PyTorch's names
  /// mean what they mean there.
  std::optional<std::string> pytorch_conf;

  /// Whether the decisions depend on how large the device is, and not only on what it refuses, under these options. A
  /// policy that does not, and that reserves address ranges as long as the device is large, tells
  /// MemorySource::address_range_watcher() how much of their length mattered. Without an answer: it does.
  std::function<bool(const Options&)> depends_on_capacity;

  /// What its addresses are multiples of under these options, where that is not kDefaultAlignment.
  std::function<std::size_t(const Options&)> alignment;

  /// Kept to be compared with: it is tried where it is named, and never recommended.
  bool is_baseline = false;
};

using AllocatorFactory = std::function<std::unique_ptr<Allocator>(const AllocatorContext&)>;

/// Of the rows that say what an allocator without any waste would need. No plugin may supply one of this name.
inline constexpr std::string_view kIdealAllocator = "ideal";

/// One allocator that a plugin supplies.
struct AllocatorInfo {
  std::string name;     ///< as in TOML: lower case, digits, '_'
  std::string summary;  ///< one line
  OptionSchema options;
  AllocatorFactory create;
  AllocatorTraits traits = {};
};

}  // namespace tenon
