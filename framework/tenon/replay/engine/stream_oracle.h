// StreamOracle: whether memory reaches another stream only when those that used it have got there. In a replay every
// stream gets anywhere at once, so what counts is whether the policy asked: a mark of that stream made after the free,
// found reached or waited for, or a wait for all streams.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stream_ref.h>
#include <tenon/replay/engine/replay_source.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::replay {

class TENON_API StreamOracle {
 public:
  /// `source`: what the policy asks; outlives this.
  explicit StreamOracle(ReplaySource& source) : source_(source) {}

  /// [address, address + bytes) is about to be given back; `users` are the streams that used it.
  void freed(std::uint64_t address, std::uint64_t bytes, std::vector<StreamRef> users);
  /// It was handed out for `stream`. What is wrong with that; empty when nothing is.
  std::string handed_out(std::uint64_t address, std::uint64_t bytes, StreamRef stream);

 private:
  struct Range {
    std::uint64_t end = 0;
    std::uint64_t moment = 0;  ///< of its free
    std::vector<StreamRef> users;
  };
  /// Removes [begin, end) from the ranges; what lies outside of it stays.
  void cut(std::uint64_t begin, std::uint64_t end);

  ReplaySource& source_;
  std::map<std::uint64_t, Range> ranges_;  ///< by first address; disjoint
};

}  // namespace tenon::replay
