// Capture and replay: the part of CudaDriver that makes graphs. Declared in driver.h.
#include "driver.h"
#include "handles.h"

#include <memory>
#include <utility>

namespace tenon::cuda {

namespace {

/// What a GraphRef's id points to.
struct Graph {
  cudaGraphExec_t executable = nullptr;
  HostCalls::Calls calls;
};

Graph* graph_of(GraphRef graph) { return reinterpret_cast<Graph*>(graph.id); }

}  // namespace

void CudaDriver::begin_capture(StreamRef stream) {
  const ContextGuard guard(context_);
  // Other threads go on as before: a loader may pin memory while a step is captured.
  check(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  ++memory_.captures();
}

GraphRef CudaDriver::end_capture(StreamRef stream) {
  const ContextGuard guard(context_);
  if (!capturing(stream)) throw Error(memory_.traits().device + ": nothing is being captured on this stream");
  auto made = std::make_unique<Graph>();
  made->calls = host_calls_.take(capture_of(native(stream)));
  --memory_.captures();
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(native(stream), &graph), "cudaStreamEndCapture");
  const cudaError_t status = cudaGraphInstantiate(&made->executable, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "cudaGraphInstantiate");
  return {reinterpret_cast<std::uint64_t>(made.release())};
}

bool CudaDriver::capturing(StreamRef stream) {
  const ContextGuard guard(context_);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(native(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;  // one that failed has to be ended too
}

void CudaDriver::launch(GraphRef graph, StreamRef stream) {
  const ContextGuard guard(context_);
  check(cudaGraphLaunch(graph_of(graph)->executable, native(stream)), "cudaGraphLaunch");
}

void CudaDriver::destroy_graph(GraphRef graph) noexcept {
  if (graph.id == 0) return;
  const ContextGuard guard(context_.native(), std::nothrow);
  const std::unique_ptr<Graph> gone(graph_of(graph));
  if (guard) cudaGraphExecDestroy(gone->executable);
}

}  // namespace tenon::cuda
