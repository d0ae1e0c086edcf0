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
    {"ns_per_pair", "ns/pair", kNanoseconds, kLess, true},
    {"test_accuracy", "test accuracy", kShare, kMore},
    {"final_loss", "final loss", kNumber, kLess},
    {"step_ms", "step ms", kMilliseconds, kLess, true},
    {"peak_requested_bytes", "peak requested", kBytes, kLess, false, true},
    {"peak_allocated_bytes", "peak allocated", kBytes, kLess, false, true},
    {"peak_active_bytes", "peak active", kBytes, kLess, false, true},
    {"peak_reserved_bytes", "peak reserved", kBytes, kLess, false, true},
    {"excess", "excess", kShare, kLess, false, true},
    {"internal_fragmentation", "internal", kShare, kLess, false, true},
    {"external_fragmentation", "external", kShare, kLess, false, true},
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
    {"seconds", "seconds", kSeconds, kLess, true},
    {"allocate_ns.p50", "alloc p50", kNanoseconds, kLess, true},
    {"allocate_ns.p99", "alloc p99", kNanoseconds, kLess, true},
    {"free_ns.p50", "free p50", kNanoseconds, kLess, true},
    {"free_ns.p99", "free p99", kNanoseconds, kLess, true},
    {"events", "events", kNumber, kNeither},
    {"allocations", "allocations", kNumber, kNeither},
    {"steps", "steps", kNumber, kNeither},
    {"parameters", "elements of parameters", kNumber, kNeither},
    {"peak_parameter_bytes", "parameters", kBytes, kLess, false, true},
    {"peak_gradient_bytes", "gradients", kBytes, kLess, false, true},
    {"peak_activation_bytes", "activations", kBytes, kLess, false, true},
    {"peak_optimizer_state_bytes", "optimizer state", kBytes, kLess, false, true},
    {"peak_workspace_bytes", "workspace", kBytes, kLess, false, true},
    {"peak_data_bytes", "data", kBytes, kLess, false, true},
    {"peak_other_bytes", "other", kBytes, kLess, false, true},
};

}  // namespace

std::span<const FigureInfo> known_figures() { return kFigures; }

const FigureInfo* find_figure(std::string_view key) {
  const auto found = std::ranges::find(kFigures, key, &FigureInfo::key);
  return found == std::end(kFigures) ? nullptr : found;
}

}  // namespace tenon::measure
