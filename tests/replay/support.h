// What the tests of replay share: reading from strings, a policy made on the spot.
#pragma once

#include "support/scratch_folder.h"

#include <tenon/memory/factory.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/formats/readers.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace tenon::replay {

/// A file of this test suite's own.
inline std::string scratch(const std::string& name) {
  std::string suite = ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  std::ranges::replace(suite, '/', '-');
  return test::scratch_folder() + suite + "_" + name;
}
inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<Trace> read_bytes(std::string_view bytes, const ReadOptions& options = {}) {
  InputFile input("file", {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return read_traces(input, options);
}

inline Trace read_one(std::string_view bytes, const ReadOptions& options = {}) {
  std::vector<Trace> traces = read_bytes(bytes, options);
  EXPECT_EQ(traces.size(), 1u);
  return std::move(traces.front());
}

/// The message of the refusal; fails the test when the bytes are accepted.
inline std::string refusal_of(std::string_view bytes) {
  try {
    read_bytes(bytes);
  } catch (const TraceError& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << bytes.substr(0, 200);
  return {};
}

/// A device allocation for every block.
class PlainPolicy : public Allocator {
 public:
  explicit PlainPolicy(MemorySource& source) : source_(source) {}
  ~PlainPolicy() override {
    for (const auto& [address, bytes] : taken_) source_.release(address, bytes);
  }
  Block allocate(const Request& request) override {
    void* const data = source_.acquire(request.bytes);
    if (data == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
    taken_[data] = request.bytes;
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    taken_.erase(block.data);
    if (is_shared_ || last_use != block.request.stream) source_.synchronize();
    source_.release(block.data, block.bytes);
  }
  void record_use(const Block&, StreamRef) override { is_shared_ = true; }

 protected:
  MemorySource& source_;

 private:
  bool is_shared_ = false;  ///< some block was used by another stream
  std::map<void*, std::size_t> taken_;
};

inline StackConfig policy_of(const std::string& name, AllocatorFactory create) {
  return {.policy = {.name = name, .summary = "", .options = {}, .create = std::move(create)}};
}
inline StackConfig plain_policy() {
  return policy_of("plain",
                   [](const AllocatorContext& context) { return std::make_unique<PlainPolicy>(context.source); });
}

/// Keeps what it gets: a freed block serves the next request of its size.
class KeepingPolicy final : public PlainPolicy {
 public:
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    std::vector<void*>& kept = kept_[request.bytes];
    if (kept.empty()) {
      const Block block = PlainPolicy::allocate(request);
      segments_[block.data] = {block.bytes, true};
      return block;
    }
    void* const data = kept.back();
    kept.pop_back();
    segments_[data].is_live = true;
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override {
    kept_[block.bytes].push_back(block.data);
    segments_[block.data].is_live = false;
  }
  void walk(SegmentVisitor& visitor) const override {
    for (const auto& [address, segment] : segments_) {
      visitor.segment({.address = address, .bytes = segment.bytes});
      visitor.block({.address = address,
                     .bytes = segment.bytes,
                     .requested_bytes = segment.is_live ? segment.bytes : 0,
                     .state = segment.is_live ? BlockState::kActive : BlockState::kFree});
    }
  }

 private:
  struct Segment {
    std::size_t bytes = 0;
    bool is_live = false;
  };
  std::map<void*, Segment> segments_;
  std::map<std::size_t, std::vector<void*>> kept_;
};
inline StackConfig keeping_policy() {
  return policy_of("keeping",
                   [](const AllocatorContext& context) { return std::make_unique<KeepingPolicy>(context.source); });
}

inline std::string example_trace(const std::string& name) { return TENON_SOURCE_DIR "/examples/traces/" + name; }

}  // namespace tenon::replay
