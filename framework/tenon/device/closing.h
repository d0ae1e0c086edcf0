// For who keeps something of a device that has to go before the device does: a stream, an event, a block of memory.
#pragma once

#include <tenon/core/export.h>

#include <functional>
#include <memory>

namespace tenon {

/// A function that close_devices() calls before it closes any, for as long as the handle lives.
class TENON_EXPORT ClosingHandle {
 public:
  TENON_API explicit ClosingHandle(std::function<void()> closing);
  TENON_API ~ClosingHandle();
  ClosingHandle(const ClosingHandle&) = delete;
  ClosingHandle& operator=(const ClosingHandle&) = delete;

 private:
  std::shared_ptr<std::function<void()>> closing_;
};

}  // namespace tenon
