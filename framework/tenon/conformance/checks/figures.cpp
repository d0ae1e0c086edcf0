// Checks of what is counted: the statistics, and what the policy reports of itself. Declared in checks.h.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/checks/test_bed.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <random>
#include <tuple>

namespace tenon::conformance {

namespace {

Finding counts(const Subject& subject, const KitOptions& options) {
  TestBed bed(subject);
  std::mt19937_64 random(options.seed);
  std::vector<Block> blocks;
  std::int64_t requested = 0, requested_peak = 0, allocated = 0, allocated_peak = 0, reserved_peak = 0, sum = 0;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 5 < 3 || blocks.empty()) {
      const std::size_t bytes = 1 + random() % (std::size_t{1} << (1 + random() % 24));
      blocks.push_back(bed.stack->allocate({.bytes = bytes}));
      requested += static_cast<std::int64_t>(bytes);
      sum += static_cast<std::int64_t>(bytes);
      allocated += static_cast<std::int64_t>(blocks.back().bytes);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      requested -= static_cast<std::int64_t>(blocks.back().request.bytes);
      allocated -= static_cast<std::int64_t>(blocks.back().bytes);
      bed.stack->deallocate(blocks.back());
      blocks.pop_back();
    }
    requested_peak = std::max(requested_peak, requested);
    allocated_peak = std::max(allocated_peak, allocated);
    reserved_peak = std::max(reserved_peak, static_cast<std::int64_t>(bed.source.reserved_bytes()));
  }
  const MemoryStats stats = bed.stack->stats();
  const auto check = [](const char* what, std::int64_t says, std::int64_t is) {
    return says == is ? std::string() : fmt::format("{} is {}, the ledger beside it says {}", what, says, is);
  };
  for (const std::string& wrong :
       {check("requested_bytes.current", stats.requested_bytes.current, requested),
        check("requested_bytes.peak", stats.requested_bytes.peak, requested_peak),
        check("requested_bytes.allocated", stats.requested_bytes.allocated, sum),
        check("requested_bytes.freed", stats.requested_bytes.freed, sum - requested),
        check("allocated_bytes.current", stats.allocated_bytes.current, allocated),
        check("allocated_bytes.peak", stats.allocated_bytes.peak, allocated_peak),
        check("allocations.current", stats.allocations.current, static_cast<std::int64_t>(blocks.size())),
        // A policy may take more for a moment than it has between two calls.
        stats.reserved_bytes.peak >= reserved_peak
            ? std::string()
            : check("reserved_bytes.peak", stats.reserved_bytes.peak, reserved_peak)})
    if (!wrong.empty()) return wrong;
  if (const PolicyStats& own = stats.policy; own.has_pools) {
    const auto same = [&](const char* what, const Stat& policy, const Stat& host) {
      for (const auto& [figure, says, is] :
           {std::tuple("current", policy.current, host.current), std::tuple("peak", policy.peak, host.peak),
            std::tuple("allocated", policy.allocated, host.allocated), std::tuple("freed", policy.freed, host.freed)})
        if (says != is)
          return fmt::format("the policy reports {}.all.{} as {}, the ledger beside it says {}", what, figure, says,
                             is);
      return std::string();
    };
    for (const std::string& wrong : {same("allocation", own.allocation[0], stats.allocations),
                                     same("allocated_bytes", own.allocated_bytes[0], stats.allocated_bytes),
                                     same("requested_bytes", own.requested_bytes[0], stats.requested_bytes),
                                     same("reserved_bytes", own.reserved_bytes[0], stats.reserved_bytes)})
      if (!wrong.empty()) return wrong;
  }
  for (const Block& block : blocks) bed.stack->deallocate(block);
  return bed.end();
}

std::string stat_is_odd(const char* name, const Stat& stat) {
  if (stat.current < 0) return fmt::format("report() gives {}.current as {}", name, stat.current);
  if (stat.peak < stat.current)
    return fmt::format("report() gives {}.peak as {}, below its current {}", name, stat.peak, stat.current);
  if (stat.allocated - stat.freed != stat.current)
    return fmt::format("report() gives {} as {} allocated, {} freed and {} current", name, stat.allocated, stat.freed,
                       stat.current);
  return {};
}

/// What report() says of the cache, held against what the device has given and against what can be had from it.
Finding report_of_cache(const Subject& subject) {
  TestBed bed(subject, 1 * GiB);
  const auto reported = [&] { return bed.stack->stats().policy; };
  std::vector<Block> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(bed.stack->allocate({.bytes = std::size_t{900} << (i % 15)}));
  for (std::size_t i = 0; i < blocks.size(); i += 2) bed.stack->deallocate(blocks[i]);
  if (const PolicyStats own = reported(); own.largest_free_bytes != 0) {
    const std::int64_t before = bed.stack->stats().device_allocations;
    const Block largest = bed.stack->allocate({.bytes = own.largest_free_bytes});
    if (bed.stack->stats().device_allocations != before)
      return {cause::kReport, fmt::format("report() gives largest_free_bytes as {}, and a request for as much went to "
                                          "the device",
                                          own.largest_free_bytes)};
    bed.stack->deallocate(largest);
  }
  for (std::size_t i = 1; i < blocks.size(); i += 2) bed.stack->deallocate(blocks[i]);
  if (const PolicyStats own = reported(); own.cached_bytes != 0 && own.cached_bytes != bed.source.reserved_bytes())
    return {cause::kReport, fmt::format("nothing is handed out and {} bytes are reserved; report() gives cached_bytes "
                                        "as {}",
                                        bed.source.reserved_bytes(), own.cached_bytes)};
  if (const MemoryStats all = bed.stack->stats();
      bed.source.refusals() == 0 && all.device_frees + all.device_unmaps == 0 && all.policy.retries != 0)
    return {cause::kReport, fmt::format("the device refused nothing and got nothing back; report() gives retries as {}",
                                        all.policy.retries)};
  bed.stack->trim(0);
  if (const PolicyStats own = reported();
      bed.source.reserved_bytes() == 0 && (own.cached_bytes != 0 || own.largest_free_bytes != 0))
    return {cause::kReport, fmt::format("everything went back to the device, and report() gives cached_bytes as {}, "
                                        "largest_free_bytes as {}",
                                        own.cached_bytes, own.largest_free_bytes)};
  if (const PolicyStats own = reported(); own.has_pools) {
    for (const std::string& odd :
         {stat_is_odd("allocation", own.allocation[0]), stat_is_odd("segment", own.segment[0]),
          stat_is_odd("active_bytes", own.active_bytes[0]), stat_is_odd("reserved_bytes", own.reserved_bytes[0]),
          stat_is_odd("inactive_split_bytes", own.inactive_split_bytes[0])})
      if (!odd.empty()) return {cause::kReport, odd};
  }
  return bed.end();
}

/// A request that the device refused, and that was served once cached segments had gone back, is a retry. The host sees
/// that by itself; of a policy with has_pools it believes the policy. Blocks so small are nobody's oversized ones,
/// which PyTorch gives back without counting a retry.
Finding report_of_retries(const Subject& subject) {
  TestBed bed(subject, 1 * GiB);
  for (const Block& block : fill(*bed.stack, 512 * KiB, {1})) bed.stack->deallocate(block);
  const MemoryStats before = bed.stack->stats();
  const std::int64_t refused = bed.source.refusals();
  try {
    bed.stack->deallocate(bed.stack->allocate({.bytes = 60 * MiB, .stream = {2}}));
  } catch (const OutOfMemory&) {
    return {};  // for other checks to judge
  }
  const MemoryStats after = bed.stack->stats();
  if (bed.source.refusals() != refused && after.device_frees != before.device_frees &&
      after.policy.retries == before.policy.retries)
    return {cause::kReport, fmt::format("a request of 60 MiB was refused by the device, and served once cached "
                                        "segments had gone back; report() gives retries as {}, as before",
                                        after.policy.retries)};
  return bed.end();
}

Finding reports_truly(const Subject& subject, const KitOptions& options) {
  if (Finding wrong = run_many(subject, options, {.streams = 3, .capacity_bytes = 512 * MiB, .only = {cause::kReport}});
      !wrong.empty())
    return wrong;
  if (Finding wrong = report_of_cache(subject); !wrong.empty()) return wrong;
  return report_of_retries(subject);
}

Finding counts_all(const Subject& subject, const KitOptions& options) {
  if (Finding wrong =
          run_many(subject, options, {.streams = 2, .capacity_bytes = 512 * MiB, .only = {cause::kFigures}});
      !wrong.empty())
    return wrong;
  return counts(subject, options);
}

}  // namespace

std::span<const Check> checks_of_figures() {
  static constexpr Check kChecks[] = {
      {"counts", "statistics and their peaks agree with a ledger kept beside them", counts_all},
      {"reports_truly", "what report() says of the policy agrees with what the device gave", reports_truly},
  };
  return kChecks;
}

}  // namespace tenon::conformance
