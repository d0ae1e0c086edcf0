// What a check with a fixed plot runs on: a device, a source that checks, an allocator in service.
#pragma once

#include <tenon/conformance/checked_source.h>
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/journal.h>
#include <tenon/core/error.h>
#include <tenon/memory/sources/address_only_source.h>

#include <memory>
#include <vector>

namespace tenon::conformance {

struct TestBed {
  AddressOnlySource device;
  CheckedSource source;
  std::shared_ptr<AllocatorStack> stack;

  explicit TestBed(const Subject& subject, std::size_t capacity = 0)
      : device({.device = "conformance", .capacity_bytes = capacity}), source(device) {
    if (subject.journal) subject.journal->note_settings({.capacity_bytes = capacity, .manual_completion = false});
    stack = AllocatorStack::make(source, subject.config());
  }

  /// What is wrong after an orderly end.
  Finding end() {
    stack.reset();
    if (std::string misuse = source.misuse(); !misuse.empty()) return {cause::kMisuse, misuse};
    if (std::string left = source.leftovers(); !left.empty())
      return {cause::kLeak, "after the allocator was destroyed: " + left};
    return {};
  }
};

/// Takes blocks of that size until there are no more.
inline std::vector<Block> fill(AllocatorStack& stack, std::size_t bytes, StreamRef stream) {
  std::vector<Block> blocks;
  try {
    while (true) {
      blocks.push_back(stack.allocate({.bytes = bytes, .stream = stream}));
      if (blocks.back().data == nullptr) throw BrokenPromise({cause::kBytes, "allocate gave a null address"});
    }
  } catch (const OutOfMemory&) {
  }
  return blocks;
}

}  // namespace tenon::conformance
