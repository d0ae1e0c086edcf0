// How an allocator comes into being: what it is told, and what a plugin says about it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/memory_source.h>

#include <functional>
#include <memory>
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

using AllocatorFactory = std::function<std::unique_ptr<Allocator>(const AllocatorContext&)>;

/// One allocator that a plugin supplies.
struct AllocatorInfo {
  std::string name;     ///< as in TOML: lower case, digits, '_'
  std::string summary;  ///< one line
  OptionSchema options;
  AllocatorFactory create;
};

}  // namespace tenon
