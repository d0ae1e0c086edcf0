// Which parameters are divided together, and what a rank then holds. Declared in sharding.h.
#include <tenon/nn/distributed/sharding.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_set>

namespace tenon::distributed {

bool is_numbered(const std::string& path, const nn::Module&) {
  return !path.empty() && std::isdigit(static_cast<unsigned char>(path.back())) != 0;
}

std::vector<ShardUnit> shard_units(const nn::Module& module, const WrapPolicy& policy) {
  // Parents come first, so that the first path that holds a parameter is the outermost.
  std::vector<std::string> paths;
  module.apply([&](const std::string& path, const nn::Module& one) {
    const bool is_inside = std::ranges::any_of(paths, [&](const auto& outer) { return path.starts_with(outer + "."); });
    if (!path.empty() && !is_inside && policy && policy(path, one)) paths.push_back(path);
  });
  std::vector<ShardUnit> units = {{}};
  std::map<std::string, std::size_t> numbers = {{"", 0}};
  const auto named = module.named_parameters();
  std::unordered_set<const TensorImpl*> known;
  std::vector<std::map<std::pair<Dtype, bool>, std::size_t>> groups(1);  // of each unit
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Tensor& parameter = named[i].value();
    if (!known.insert(&parameter.impl()).second) continue;
    const auto path =
        std::ranges::find_if(paths, [&](const auto& one) { return named[i].key().starts_with(one + "."); });
    const auto [unit, is_new] = numbers.try_emplace(path == paths.end() ? "" : *path, units.size());
    if (is_new) {
      units.push_back({.path = unit->first, .groups = {}});
      groups.emplace_back();
    }
    auto& into = units[unit->second].groups;
    const auto [group, is_first] =
        groups[unit->second].try_emplace({parameter.scalar_type(), parameter.requires_grad()}, into.size());
    if (is_first) into.emplace_back();
    into[group->second].push_back(i);
  }
  if (units.front().groups.empty()) units.erase(units.begin());
  return units;
}

ShardingBytes sharding_bytes(const nn::Module& module, int ranks, const ShardingOptions& options) {
  const auto named = module.named_parameters();
  ShardingBytes bytes;
  std::int64_t root = 0, before = 0, pair = 0, largest = 0, root_bucket = 0, bucket_before = 0, buckets = 0;
  for (const ShardUnit& unit : shard_units(module, options.policy)) {
    std::int64_t whole = 0;
    for (const std::vector<std::size_t>& group : unit.groups) {
      std::int64_t elements = 0;
      const Tensor& first = named[group.front()].value();
      const auto size = static_cast<std::int64_t>(size_of(first.scalar_type()));
      for (const std::size_t i : group) {
        elements += named[i].value().numel();
        if (first.requires_grad()) largest = std::max(largest, named[i].value().numel() * size);
      }
      const std::int64_t share = share_of(elements, ranks) * size;
      bytes.shards += share;
      whole += share * ranks;
      if (!first.requires_grad()) continue;
      bytes.gradient_shards += share;
      if (unit.path.empty()) {
        root_bucket += share * ranks;  // from the output layer's gradient to that of the first
      } else {
        // Backward fills one while another one is on its way.
        buckets = std::max(buckets, share * ranks + (options.overlap ? bucket_before : 0));
        bucket_before = share * ranks;
      }
    }
    if (!options.parameters) {
      bytes.parameters += whole;
    } else if (unit.path.empty()) {
      root = whole;
    } else {
      pair = std::max(pair, before + whole);
      before = whole;
    }
  }
  if (options.parameters) bytes.parameters = bytes.shards + root + pair;
  if (!options.parameters) bytes.shards = bytes.parameters;
  bytes.gradients = bytes.gradient_shards + root_bucket + buckets + largest;
  return bytes;
}

}  // namespace tenon::distributed
