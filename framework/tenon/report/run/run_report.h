// What `tenon run` says: result.json of one run, and the table of runs side by side.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/bench/host_noise.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/report/run/estimate_report.h>
#include <tenon/report/table.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/runtime/run_status.h>
#include <tenon/train/estimate/saving_changes.h>
#include <tenon/train/experiment_result.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What an allocator did against its contract.
struct RunFault {
  std::string allocator;  ///< "allocator 'tiny' behind the layer 'route'"; empty: the run's own
  std::string what;       ///< "handed out 512 bytes for a request of 1024, in step 1 of 4"
  std::string spec;       ///< of that allocator, by its file; empty where no file supplied it
};

/// Where a run was when it crashed, or hung.
struct RunCrash {
  int signal = 0;                  ///< 0: a call that did not come back
  std::string call;                ///< of the allocator; empty: none was under way
  std::string during;              ///< "step 3 of 100"
  std::vector<std::string> stack;  ///< functions, innermost first
};

/// How a run ended.
struct RunRecord {
  RunStatus status = RunStatus::kDone;
  std::string error;  ///< empty when done
  int exit_code = 0;
  ExperimentResult result;                     ///< what there is of it
  std::int64_t leaked_bytes = 0;               ///< still allocated after everything was torn down
  bool is_checkpointed = false;                ///< train.checkpoint
  double seconds = 0;                          ///< wall clock, of all parts of a run that was resumed
  double earlier_seconds = 0;                  ///< of those, in the parts before this one
  std::optional<Estimate> estimate;            ///< what was expected before the run
  std::optional<replay::FitReport> would_fit;  ///< out of memory: the other allocators
  std::optional<SavingChanges> savings;        ///< out of memory: what other settings would have saved
  std::vector<std::string> recorded;           ///< files in the run's folder, as [report] record asked for
  std::vector<LayerReport> layers;             ///< what those around the allocator counted or found, outermost first
  std::vector<RunFault> faults;
  std::optional<RunCrash> crash;
  measure::HostState host = measure::host_state();  ///< before it
  unsigned cells_at_a_time = 1;  ///< of a sweep's cell: how many shared the machine at most, itself included
};

/// result.json: schema_version 1, bytes as integers, the environment block.
TENON_API std::string result_json(const Config& config, const RunRecord& record);

/// The text of a result.json with how the run ended in it: its status, its faults, its crash, and with `has_figures`
/// the figures of the record in place of those that stand there.
TENON_API std::string ended_result_json(const std::string& result_json, const RunRecord& record, bool has_figures);

/// "…" of the sentence "allocator 'x' is disqualified: …", for each fault.
TENON_API std::vector<std::string> disqualifications(const std::string& allocator, const std::vector<RunFault>& faults);

/// "layer stats: allocations 280; frees 256; …", a line for each that has something to say.
TENON_API std::string layers_remark(const std::vector<LayerReport>& layers);

/// Of the allocators whose file is known, for kit_advice.
TENON_API std::vector<std::string> specs_of(const std::vector<RunFault>& faults);

/// The figures of one run that comparisons show.
struct RunSummary {
  RunStatus status = RunStatus::kNotRun;
  std::string error;
  std::optional<double> test_accuracy, final_loss, step_ms, device_calls_per_step, seconds;
  std::optional<std::int64_t> peak_requested_bytes, peak_allocated_bytes, peak_reserved_bytes, parameters, steps;
  std::optional<std::int64_t> peak_in_steps_bytes;  ///< allocated, within training steps
  std::string peak_phase;                           ///< where the peak lies: see RunPhase; empty: unknown
  std::string losses_hash;
  std::optional<std::uint64_t> first_oom_event;  ///< where the history of a run that ran out of memory is known
  bool is_checkpointed = false;                  ///< train.checkpoint
  std::int64_t cells_at_a_time = 1;              ///< that shared the machine at most
  EstimateError estimate_error;                  ///< of what was expected before the run
  std::vector<RunFault> faults;                  ///< of its allocators
  std::map<std::string, std::int64_t> peak_bytes_by_purpose;
  std::map<std::string, std::map<std::string, std::int64_t>> peak_bytes_by_element;  ///< those, by kind of element
  std::map<std::string, std::int64_t> bytes_in_peak_phase;                           ///< the most of each purpose there
  std::map<std::string, double> figures;  ///< among them "expected_…": what theory says

  /// Its last loss is not a finite number, though it had losses: a device that computes nothing has none.
  bool has_diverged() const { return !losses_hash.empty() && !final_loss; }
};
/// The same figures as read_summary gives of its result.json.
TENON_API RunSummary summary_of(const RunRecord& record);
/// Throws Error when the file is missing or is not a result.
TENON_API RunSummary read_summary(const std::filesystem::path& result_json);

/// One row for each cell; `keys` are the swept settings, `values` each cell's values for them. `by_purpose` shows
/// people what the memory was for, and beside it what theory expects; the time and loss that it expects are those of
/// the first cell, the time in proportion to the work. Where memory ran out people see so in place of the excess, which
/// would flatter; programs see the figures.
struct ComparisonView {
  bool by_purpose = false;
  TableFormat format = TableFormat::kTable;
};
/// The values of cells with the SPECs of their allocators cut as short as tells them apart, for people.
TENON_API std::vector<std::vector<std::string>> with_short_specs(const std::vector<std::string>& keys,
                                                                 std::vector<std::vector<std::string>> values);
TENON_API Table run_comparison(const std::vector<std::string>& keys,
                               const std::vector<std::vector<std::string>>& values, const std::vector<RunSummary>& runs,
                               const ComparisonView& view);

}  // namespace tenon
