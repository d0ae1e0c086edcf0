// The table of figures.
#include <tenon/measure/compare/figure.h>

#include <algorithm>
#include <iterator>

namespace tenon::measure {

namespace {

using enum FigureUnit;
constexpr auto kLess = Better::kLess;
constexpr auto kMore = Better::kMore;
constexpr auto kNeither = Better::kNeither;

constexpr FigureInfo kFigures[] = {
    {"ns_per_pair", "ns/pair", kNanoseconds, kLess},
    {"test_accuracy", "test accuracy", kShare, kMore},
    {"final_loss", "final loss", kNumber, kLess},
    {"step_ms", "step ms", kMilliseconds, kLess},
    {"peak_requested_bytes", "peak requested", kBytes, kLess},
    {"peak_allocated_bytes", "peak allocated", kBytes, kLess},
    {"peak_active_bytes", "peak active", kBytes, kLess},
    {"peak_reserved_bytes", "peak reserved", kBytes, kLess},
    {"excess", "excess", kShare, kLess},
    {"internal_fragmentation", "internal", kShare, kLess},
    {"external_fragmentation", "external", kShare, kLess},
    {"device_allocations", "device allocs", kNumber, kLess},
    {"device_frees", "device frees", kNumber, kLess},
    {"device_maps", "maps", kNumber, kLess},
    {"device_unmaps", "unmaps", kNumber, kLess},
    {"device_synchronizations", "syncs", kNumber, kLess},
    {"device_waits", "waits", kNumber, kLess},
    {"device_calls_per_step", "device calls/step", kNumber, kLess},
    {"retries", "retries", kNumber, kLess},
    {"ooms", "OOMs", kNumber, kLess},
    {"leaked_bytes", "leaked", kBytes, kLess},
    {"seconds", "seconds", kSeconds, kLess},
    {"allocate_ns.p50", "alloc p50", kNanoseconds, kLess},
    {"allocate_ns.p99", "alloc p99", kNanoseconds, kLess},
    {"free_ns.p50", "free p50", kNanoseconds, kLess},
    {"free_ns.p99", "free p99", kNanoseconds, kLess},
    {"events", "events", kNumber, kNeither},
    {"allocations", "allocations", kNumber, kNeither},
    {"steps", "steps", kNumber, kNeither},
    {"parameters", "elements of parameters", kNumber, kNeither},
    {"peak_parameter_bytes", "parameters", kBytes, kLess},
    {"peak_gradient_bytes", "gradients", kBytes, kLess},
    {"peak_activation_bytes", "activations", kBytes, kLess},
    {"peak_optimizer_state_bytes", "optimizer state", kBytes, kLess},
    {"peak_workspace_bytes", "workspace", kBytes, kLess},
    {"peak_cast_bytes", "casts", kBytes, kLess},
    {"peak_kv_cache_bytes", "caches", kBytes, kLess},
    {"peak_data_bytes", "data", kBytes, kLess},
    {"peak_other_bytes", "other", kBytes, kLess},
};

}  // namespace

std::span<const FigureInfo> known_figures() { return kFigures; }

const FigureInfo* find_figure(std::string_view key) {
  const auto found = std::ranges::find(kFigures, key, &FigureInfo::key);
  return found == std::end(kFigures) ? nullptr : found;
}

}  // namespace tenon::measure
