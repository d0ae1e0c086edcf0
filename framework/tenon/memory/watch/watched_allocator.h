// An allocator with a watcher between it and the host: told of every call, shown every block, and asked what to do with
// an exception that may not leave a call.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/watch/call.h>

#include <memory>
#include <string>

namespace tenon {

/// Called by whichever threads call the allocator.
class TENON_EXPORT CallWatcher {
 public:
  virtual ~CallWatcher();
  /// What is returned here comes back when the call ends, however it is left.
  virtual void* begins(const CallFacts& facts) = 0;
  /// `address`: of the block that allocate() gave, else 0.
  virtual void ended(void* call, std::uintptr_t address) noexcept = 0;
  /// What allocate() is about to return. May throw.
  virtual void handed_out(const Block& /*block*/, const Request& /*request*/) {}
  virtual void taken_back(const Block& /*block*/) noexcept {}
  /// Something that is not a tenon::Error leaves the call. Called while it is caught: throws what shall leave instead,
  /// or returns, and it leaves.
  virtual void foreign_exception(const CallFacts& facts, const std::string& what) = 0;
};

/// How the request that a block carries differs from the one it answers; empty where it does not.
TENON_API std::string request_differs(const Request& is, const Request& asked);

/// What makes `info`'s allocators, watched from their constructors on. The watcher outlives them.
TENON_API AllocatorInfo watched(const AllocatorInfo& info, CallWatcher& watcher);
/// The same, of a watcher that lives as long as what makes them.
TENON_API AllocatorInfo watched(const AllocatorInfo& info, std::shared_ptr<CallWatcher> watcher);

}  // namespace tenon
