// The figures under PyTorch's keys. Declared in memory_api.h.
#include <tenon/device/memory_api.h>

namespace tenon {

namespace {

void put(MemoryStatsTable& table, const std::string& prefix, const Stat& stat) {
  table[prefix + ".current"] = stat.current;
  table[prefix + ".peak"] = stat.peak;
  table[prefix + ".allocated"] = stat.allocated;
  table[prefix + ".freed"] = stat.freed;
}

/// `all` is the host's figure where the host has one, the pools' are the policy's.
void put(MemoryStatsTable& table, const std::string& key, const Stat& all, const PoolStats& pools) {
  put(table, key + ".all", all);
  put(table, key + ".small_pool", pools[static_cast<int>(StatPool::kSmall)]);
  put(table, key + ".large_pool", pools[static_cast<int>(StatPool::kLarge)]);
}

}  // namespace

MemoryStatsTable memory_stats_table(const MemoryStats& stats) {
  const PolicyStats& policy = stats.policy;
  // Blocks that wait for a stream are active and no longer allocated: only a policy with pools tells them apart.
  const auto or_host = [&](const PoolStats& pools, const Stat& host) { return policy.has_pools ? pools[0] : host; };
  MemoryStatsTable table;
  put(table, "allocation", stats.allocations, policy.allocation);
  put(table, "allocated_bytes", stats.allocated_bytes, policy.allocated_bytes);
  put(table, "active", or_host(policy.active, stats.allocations), policy.active);
  put(table, "active_bytes", or_host(policy.active_bytes, stats.allocated_bytes), policy.active_bytes);
  put(table, "requested_bytes", or_host(policy.requested_bytes, stats.requested_bytes), policy.requested_bytes);
  put(table, "segment", or_host(policy.segment, stats.segments), policy.segment);
  put(table, "reserved_bytes", stats.reserved_bytes, policy.reserved_bytes);
  put(table, "inactive_split", policy.inactive_split[0], policy.inactive_split);
  put(table, "inactive_split_bytes", policy.inactive_split_bytes[0], policy.inactive_split_bytes);
  put(table, "oversize_allocations", policy.oversize_allocations);
  put(table, "oversize_segments", policy.oversize_segments);
  for (const PrivatePoolStats& pool : policy.private_pools) {
    // PyTorch's ids are pairs; pools that a user made have a first half of 0.
    const std::string key = "reserved_bytes_by_private_pools.0_" + std::to_string(pool.pool);
    put(table, key, pool.reserved_bytes[0], pool.reserved_bytes);
  }
  table["num_alloc_retries"] = policy.retries;
  table["num_ooms"] = stats.ooms;
  table["num_oom_rejections"] = 0;  // no policy counts them: those of throw_on_cudamalloc_oom are among num_ooms
  table["num_sync_all_streams"] = policy.has_pools ? policy.synchronizations : stats.device_synchronizations;
  table["num_device_alloc"] = stats.device_growths;
  table["num_device_free"] = stats.device_shrinks;
  table["max_split_size"] = policy.max_split_size;
  return table;
}

}  // namespace tenon
