// Whose the memory of a training run is (report.attribution): each block by module, purpose, operator and phase.
#pragma once

#include <tenon/autograd/leaks/last_uses.h>
#include <tenon/autograd/leaks/live_memory.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/stack/oom.h>
#include <tenon/memory/watch/attribution.h>
#include <tenon/nn/module.h>
#include <tenon/optim/optimizer.h>
#include <tenon/train/progress.h>

#include <functional>
#include <optional>
#include <vector>

namespace tenon::train {

/// Gives the blocks of parameters, buffers, gradients and optimiser states to the modules that own the parameters.
/// `trained` are the optimiser's parameters, where these are not the module's own: one for each trainable one. With
/// `only`, what lies on other devices than that is passed by: addresses of two devices may be equal.
TENON_API void name_owners(memory::Attribution& attribution, const nn::Module& module, optim::Optimizer* optimizer,
                           const std::vector<Tensor>& trained = {}, const std::optional<Device>& only = std::nullopt);

struct AttributionWants {
  bool call_sites = false;  ///< of what lives when memory runs out, for which each allocation walks its stack
  bool last_uses = false;   ///< what has been idle for long then; not where several threads run nodes of autograd
};

class RunAttribution {
 public:
  /// Of what is allocated from now on. When memory runs out the sink is told what lives then; `name_owners` is called
  /// before.
  TENON_API RunAttribution(DeviceState& device, ProgressSink& progress,
                           std::function<void(memory::Attribution&)> name_owners, AttributionWants wants);
  TENON_API ~RunAttribution();
  RunAttribution(const RunAttribution&) = delete;
  RunAttribution& operator=(const RunAttribution&) = delete;

  /// The sums are held against the allocator's figures at the end of a step or a test.
  void check(std::string_view when) { attribution_.check(device_.allocator().stats(), when); }
  memory::AttributionReport report();

 private:
  DeviceState& device_;
  std::function<void(memory::Attribution&)> name_owners_;
  memory::Attribution attribution_;
  std::optional<memory::LiveRecording> recording_;
  std::optional<memory::LastUses> last_uses_;
  std::uint64_t observer_ = 0;
};

}  // namespace tenon::train
