// Whose the memory of a run was: in result.json, on its page, and on the screen.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/watch/attribution.h>

#include <string>
#include <vector>

namespace tenon {

/// A module with what is its own and below it, by purpose; temporaries are what operators take besides their results.
struct ModuleMemory {
  std::string module;  ///< empty: outside of modules
  std::size_t depth = 0;
  std::size_t parameters = 0, gradients = 0, activations = 0, optimizer_states = 0, temporaries = 0, other = 0;
  std::size_t all() const { return parameters + gradients + activations + optimizer_states + temporaries + other; }
};
/// The tree of modules: its root, then modules in the order of their names, each before what is below it, then what is
/// outside of modules. Where there are several roots, each has its own alone, since paths do not say whose they are.
TENON_API std::vector<ModuleMemory> module_tree(const std::vector<memory::AttributedBytes>& composition);

/// "attribution" of a result.json, an object.
TENON_API std::string attribution_json(const memory::AttributionReport& report);
/// The parts of the run's page, of that; empty where it is no object.
TENON_API std::string attribution_html(const std::string& attribution_json);
/// Under the table of a run: the moment and cause of the peak, and which modules had most of it. `device`: where there
/// are several.
TENON_API std::string attribution_remark(const memory::AttributionReport& report, const std::string& device = {});

/// After a failure: who holds what lived, what pins the largest hole, what of former steps still lives.
TENON_API std::string failure_text(const memory::AttributionReport& at_failure);

}  // namespace tenon
