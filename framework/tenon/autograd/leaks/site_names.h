// SiteNames: call sites of the stacks of a history and of the list of tensors, each named once.
#pragma once

#include <tenon/core/device.h>
#include <tenon/memory/call_stacks.h>

#include <map>
#include <string>

namespace tenon::memory {

/// Not thread-safe.
class SiteNames {
 public:
  explicit SiteNames(Device device) : device_(device) {}
  /// Of a block's stack.
  const std::string& of_block(StackId stack);
  /// Of its line alone, without the callers'.
  const std::string& line_of_block(StackId stack);
  /// Of a tensor's or a node's.
  const std::string& of_tensor(StackId stack);

 private:
  Device device_;
  std::map<StackId, std::string> blocks_, lines_, tensors_;
};

}  // namespace tenon::memory
