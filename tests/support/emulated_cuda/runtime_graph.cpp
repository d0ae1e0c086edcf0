// Calls about capture and graphs.
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

#include <algorithm>
#include <utility>

using namespace tenon::emulated_cuda;

namespace {

/// Whether every captured stream leads into the end of the first one.
bool all_joined(const Capture& capture) {
  std::vector<bool> reaches(capture.nodes.size(), false);
  std::vector<std::size_t> open = capture.origin->tail;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (reaches[node]) continue;
    reaches[node] = true;
    open.insert(open.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
  }
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const Stream* stream) {
    return std::all_of(stream->tail.begin(), stream->tail.end(), [&](std::size_t node) { return reaches[node]; });
  });
}

Graph& graph_of(const void* handle, Machine& machine, const char* call) {
  for (const auto& graph : machine.graph_store) {
    if (graph.get() == handle && graph->alive) return *graph;
  }
  misuse(std::string(call) + " was given a graph that was destroyed or never made");
}

Graph* keep(Machine& machine, std::vector<Node> nodes) {
  auto graph = std::make_unique<Graph>();
  graph->nodes = std::move(nodes);
  return machine.graph_store.emplace_back(std::move(graph)).get();
}

}  // namespace

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  Call call("cudaThreadExchangeStreamCaptureMode", Call::Needs::kNothing);
  std::swap(thread_state().mode, *mode);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Call call("cudaStreamBeginCapture");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(handle);
  if (stream.legacy) return call.result(cudaErrorStreamCaptureUnsupported);
  if (stream.capture != nullptr) return call.result(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->id = call.machine().next_id++;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->streams = {&stream};
  stream.capture = capture;
  stream.tail.clear();
  call.machine().captures.insert(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  Call call("cudaStreamEndCapture");
  if (call.refused()) return call.refusal();
  const std::shared_ptr<Capture> capture = call.stream(handle).capture;
  *graph = nullptr;
  if (capture == nullptr) return call.result(cudaErrorIllegalState);
  if (capture->origin != &call.stream(handle)) return call.result(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    return call.result(cudaErrorStreamCaptureWrongThread);
  }
  const bool joined = all_joined(*capture);
  for (Stream* stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  call.machine().captures.erase(capture);
  if (capture->invalid) return call.result(cudaErrorStreamCaptureInvalidated);
  if (!joined) return call.result(cudaErrorStreamCaptureUnjoined);
  *graph = reinterpret_cast<cudaGraph_t>(keep(call.machine(), std::move(capture->nodes)));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  Call call("cudaStreamIsCapturing");
  if (call.refused()) return call.refusal();
  const Stream& stream = call.stream(handle);
  *status = stream.capture == nullptr ? cudaStreamCaptureStatusNone
            : stream.capture->invalid ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  if (!stream.legacy) return cudaSuccess;
  for (const Stream* other : call.machine().streams) {
    if (other->context == stream.context && other->blocking && other->capture != nullptr) {
      return call.result(cudaErrorStreamCaptureImplicit);
    }
  }
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     std::size_t* count) {
  if (graph != nullptr || nodes != nullptr || edges != nullptr || count != nullptr) {
    misuse("cudaStreamGetCaptureInfo is emulated for status and id only");
  }
  const cudaError_t error = cudaStreamIsCapturing(handle, status);
  if (error != cudaSuccess || *status != cudaStreamCaptureStatusActive || id == nullptr) return error;
  Call call("cudaStreamGetCaptureInfo");
  *id = call.stream(handle).capture->id;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  Call call("cudaGraphInstantiate");
  if (call.refused()) return call.refusal();
  if (flags != 0) misuse("cudaGraphInstantiate with flags is not emulated");
  *executable =
      reinterpret_cast<cudaGraphExec_t>(keep(call.machine(), graph_of(graph, call.machine(), call.name()).nodes));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Call call("cudaGraphDestroy");
  if (call.refused()) return call.refusal();
  Graph& gone = graph_of(graph, call.machine(), call.name());
  gone.alive = false;
  gone.nodes.clear();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  Call call("cudaGraphExecDestroy");
  if (call.refused()) return call.refusal();
  Graph& gone = graph_of(executable, call.machine(), call.name());
  gone.alive = false;
  gone.nodes.clear();
  return cudaSuccess;
}

/// The nodes in their own order between a first and a last piece of work, which take part in the stream's.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  Call call("cudaGraphLaunch");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(handle);
  if (stream.capture != nullptr) misuse("cudaGraphLaunch in a capture is not emulated");
  const Graph& graph = graph_of(executable, call.machine(), call.name());
  if (const cudaError_t status = call.queue(stream, {.run = [] {}}); status != cudaSuccess) return call.result(status);
  const WorkRef first = stream.last;
  std::vector<WorkRef> all;
  for (const Node& node : graph.nodes) {
    auto work = std::make_shared<Work>(node.work);
    work->after = {first};
    for (const std::size_t before : node.after) work->after.push_back(all[before]);
    all.push_back(work);
    call.machine().queue.add(work);
  }
  return call.result(call.queue(stream, {.run = [] {}, .after = all}));
}

}  // extern "C"
