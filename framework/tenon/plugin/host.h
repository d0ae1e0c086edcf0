// Host: what a plugin registers with. Devices, kernels and communicators are names here, so that an allocator, which
// includes this header too, sees none of them; backend_plugin.h and communicator_plugin.h bring their definitions.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/memory/factory.h>

#include <memory>
#include <span>
#include <string_view>

namespace tenon {

class Backend;            // device/device_driver.h
struct CommunicatorInfo;  // comm/communicator.h
class KernelContext;      // kernel/kernel.h
struct TensorView;        // kernel/tensor_view.h
// Repeats kernel/kernel.h: where both headers are seen, the compiler checks that they agree.
using Kernel = void (*)(KernelContext& context, std::span<const TensorView> outputs, std::span<const TensorView> inputs,
                        const void* attributes);

namespace plugin {

enum class LogLevel { kDebug, kInfo, kWarning };

/// What a plugin's register function talks to. It outlives the plugin: a backend that is configured may add kernels
/// once more, in place of the former ones.
class TENON_EXPORT Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host();

  /// Throws PluginError when the name is taken, naming both plugins.
  virtual void add_allocator(AllocatorInfo info) = 0;
  /// Makes the backend's name a device kind. Throws PluginError when another plugin supplies that kind.
  virtual void add_backend(std::unique_ptr<Backend> backend) = 0;
  /// A kernel of one device kind for one operator; the last one registered wins.
  virtual void add_kernel(DeviceType type, std::string_view operator_name, Kernel kernel) = 0;
  virtual void log(LogLevel level, std::string_view message) = 0;
  /// Throws PluginError when the name is taken, naming both plugins.
  virtual void add_communicator(const CommunicatorInfo& info) = 0;
};

}  // namespace plugin
}  // namespace tenon
