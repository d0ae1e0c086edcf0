// A policy that is tried: in the estimate of a run, in a replay of what ran out of memory.
#pragma once

#include <tenon/memory/stack/allocator_stack.h>

#include <algorithm>
#include <string>

namespace tenon {

/// The option of a policy that names a file which it writes when it ends; layers call it `file`.
inline constexpr char kOutputOption[] = "record";

/// The same, but it writes no file: what the run itself wrote stays.
inline StackConfig for_trial(StackConfig config) {
  const OptionSchema& schema = config.options.schema();
  const auto output = std::ranges::find(schema, kOutputOption, &OptionSpec::name);
  if (output != schema.end() && output->type == OptionType::kText) config.options.set(kOutputOption, std::string());
  return config;
}

}  // namespace tenon
