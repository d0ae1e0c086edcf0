// Positions of a generator for a kernel that draws: also for one that is captured, where each run takes its own.
#pragma once

#include <tenon/tensor/captured_graph.h>
#include <tenon/tensor/generator.h>

#include <cstdint>

namespace tenon::ops {

/// Takes `count` positions and writes where they begin into `attributes`.
template <class Attributes>
void draw(Attributes& attributes, Generator source, std::uint64_t count, Device device) {
  const Generator::State first = source.reserve(count);
  attributes.seed = first.seed;
  attributes.offset = first.offset;
  if (CapturedGraph* graph = CapturedGraph::current(device)) {
    attributes.replay = graph->counters([source, count, first]() mutable {
      const Generator::State now = source.reserve(count);
      return ReplayCounters{.seed = now.seed - first.seed, .offset = now.offset - first.offset};
    });
  }
}

}  // namespace tenon::ops
