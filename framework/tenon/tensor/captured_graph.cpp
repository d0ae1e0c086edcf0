// Captures and runs. Counters lie in blocks of many, which are written as a whole before each run. These blocks have a
// pool to themselves: in that of the captured work they would be memory which some operator has used before and given
// back, and which every run would use again after the counters were written.
#include <tenon/tensor/captured_graph.h>

#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/with_index.h>
#include <tenon/memory/pool.h>
#include <tenon/memory/purpose.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace tenon {

namespace {

constexpr std::size_t kOfBlock = 256;  // counters

std::vector<CapturedGraph*>& graphs_of_thread() {
  thread_local std::vector<CapturedGraph*> graphs;
  return graphs;
}

}  // namespace

struct CapturedGraph::Parts {
  struct Counters {
    Block block;
    std::array<ReplayCounters, kOfBlock> host{};
    std::vector<std::function<ReplayCounters()>> next;
  };

  explicit Parts(Device of)
      : device(with_index(of)),
        state(device_state(device)),
        pool(make_mem_pool(device)),
        counter_pool(make_mem_pool(device)) {}

  void end_capture() {
    std::erase_if(graphs_of_thread(), [&](const CapturedGraph* graph) { return graph->parts_.get() == this; });
    scope.reset();
    capturing = false;
    graph = state.driver().end_capture(stream);
  }

  const Device device;
  DeviceState& state;
  std::unique_ptr<MemPool> pool, counter_pool;
  std::optional<UseMemPool> scope;
  StreamRef stream;
  bool capturing = false;
  GraphRef graph;
  std::int64_t runs = 0;
  std::vector<std::unique_ptr<Counters>> counters;
};

CapturedGraph::CapturedGraph(Device device) : parts_(std::make_unique<Parts>(device)) {}

CapturedGraph::~CapturedGraph() {
  Parts& p = *parts_;
  try {
    if (p.capturing) p.end_capture();
    p.state.driver().synchronize();
  } catch (const Error&) {  // the capture failed, or the device is lost: there is nothing to wait for
  }
  p.state.driver().destroy_graph(p.graph);
  for (const auto& counters : p.counters) p.counter_pool->allocator().deallocate(counters->block);
}

void CapturedGraph::capture_begin() {
  Parts& p = *parts_;
  if (p.capturing || p.graph.id != 0) throw Error("this graph has been captured already; make another one");
  p.stream = current_stream(p.device);
  if (p.stream.id == 0)
    throw Error("stream 0 of " + p.device.str() + " cannot be captured; put another one in use by a StreamGuard");
  p.state.driver().begin_capture(p.stream);
  p.scope.emplace(*p.pool);
  p.capturing = true;
  graphs_of_thread().push_back(this);
}

void CapturedGraph::capture_end() {
  if (!parts_->capturing) throw Error("this graph is not being captured: capture_begin() comes first");
  parts_->end_capture();
}

void CapturedGraph::replay() {
  Parts& p = *parts_;
  if (p.graph.id == 0) throw Error("there is nothing to run: a graph is captured before it is replayed");
  const StreamRef stream = current_stream(p.device);
  for (const auto& counters : p.counters) {
    for (std::size_t i = 0; p.runs > 0 && i < counters->next.size(); ++i) counters->host[i] = counters->next[i]();
    p.state.driver().copy(counters->block.data, counters->host.data(), sizeof counters->host, CopyKind::kHostToDevice,
                          stream);
  }
  p.state.driver().launch(p.graph, stream);
  ++p.runs;
}

CapturedGraph* CapturedGraph::current(Device device) noexcept {
  for (CapturedGraph* graph : graphs_of_thread()) {
    if (graph->parts_->device == with_index(device)) return graph;
  }
  return nullptr;
}

const ReplayCounters* CapturedGraph::counters(std::function<ReplayCounters()> next) {
  Parts& p = *parts_;
  if (p.counters.empty() || p.counters.back()->next.size() == kOfBlock) {
    auto more = std::make_unique<Parts::Counters>();
    const UseMemPool of_counters(*p.counter_pool);
    more->block = p.counter_pool->allocator().allocate(
        {.bytes = sizeof more->host, .stream = p.stream, .purpose = Purpose::kWorkspace});
    p.counters.push_back(std::move(more));
  }
  Parts::Counters& last = *p.counters.back();
  last.next.push_back(std::move(next));
  return static_cast<const ReplayCounters*>(last.block.data) + (last.next.size() - 1);
}

}  // namespace tenon
