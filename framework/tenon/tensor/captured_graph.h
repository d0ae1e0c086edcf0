// CapturedGraph: what a step queues on a device, captured once and run again as a whole, without the host's work for
// each operator (torch: CUDAGraph).
//
//   StreamGuard on(device, stream);           // not stream 0, which cannot be captured
//   CapturedGraph graph(device);
//   step();                                   // once as it is: what is made at the first step is made outside
//   graph.capture_begin(); step(); graph.capture_end();
//   for (…) { batch.copy_(next); graph.replay(); }
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/device/device_driver.h>
#include <tenon/kernel/attributes/replay.h>

#include <functional>
#include <memory>

namespace tenon {

/// Tensors that the step made live in a pool of the graph's own, and hold what the last run wrote into them. Whatever
/// else the step uses must outlive the graph. Sizes, learning rates and the like are what they were in the capture;
/// random numbers and the count of an optimiser's steps go on from run to run as they would without a graph.
class TENON_API CapturedGraph {
 public:
  /// Throws Error where the device has no graphs, or its allocator no private pools.
  explicit CapturedGraph(Device device);
  /// Waits for its runs.
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  /// From here on, what this thread queues on the device's current stream is kept instead of run. Throws Error on
  /// stream 0, and where this graph has been captured already.
  void capture_begin();
  /// Makes the graph of what was kept. Throws Error where something in between cannot be captured, such as item().
  void capture_end();
  /// Queues a run on the current stream. The first is the one that was captured. Throws Error before capture_end().
  void replay();

  /// The graph that this thread captures on the device, or null.
  static CapturedGraph* current(Device device) noexcept;
  /// Device memory for what differs from run to run. In the first run it is zero; before every later one, `next` says
  /// what it is then, in the order in which these places were asked for.
  const ReplayCounters* counters(std::function<ReplayCounters()> next);

 private:
  struct Parts;
  Owned<Parts> parts_;
};

}  // namespace tenon
