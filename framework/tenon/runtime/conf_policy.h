// Between PyTorch's configuration string and the allocator that it stands for: "expandable_segments:True". The string's
// own grammar is in memory/pytorch/conf.h.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The allocator that PyTorch would use for that string. Throws ConfigError for one that PyTorch refuses.
TENON_API StackConfig policy_of_conf(std::string_view conf);
/// The same of a string that was read already.
TENON_API StackConfig policy_of_conf(const PytorchConf& conf);

/// The string that makes PyTorch use such a policy; empty for its defaults and for what PyTorch does not have.
TENON_API std::string conf_of_policy(const StackConfig& policy);

/// "a:1,b:[x:2,y:3]" as its settings: {"a:1", "b:[x:2,y:3]"}.
TENON_API std::vector<std::string> conf_settings(std::string_view conf);

/// Adds a setting where PyTorch's native allocator takes it behind those that are there.
bool add_if_valid(std::string& conf, const std::string& setting);

/// The settings of a string that PyTorch's native allocator takes, each tried behind those before it; the others, as
/// "key:value", are added to `dropped`.
TENON_API std::string valid_part(std::string_view conf, std::vector<std::string>* dropped = nullptr);

}  // namespace tenon
