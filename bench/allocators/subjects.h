// What is measured: the null allocator, which is the harness itself, and the shipped policies.
#pragma once

#include <tenon/memory/stack/allocator_stack.h>

#include <string>
#include <vector>

namespace tenon::bench {

struct Subject {
  std::string name;
  AllocatorInfo info;
  bool caches = true;
  StackConfig config() const { return {.policy = info, .options = Options(info.options), .layers = {}}; }
};

std::vector<Subject> subjects();

}  // namespace tenon::bench
