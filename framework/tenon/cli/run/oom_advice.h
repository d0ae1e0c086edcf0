// Out of memory in a run: what led there is replayed under the other allocators.
#pragma once

#include <tenon/core/error.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/recording/recorder.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/config/experiment.h>

#include <optional>
#include <string>

namespace tenon::cli {

/// Puts what was found into info.hint, where it proves something. Empty when there is nothing to replay, or no limit to
/// replay it under.
std::optional<replay::FitReport> replay_failure(const StackConfig& config, const replay::Recorder& recorder,
                                                OutOfMemoryInfo& info);

/// After a run that ended out of memory: who held what, and what other settings would have needed, which goes into the
/// record too (with report.replay_ooms). Closes the devices.
std::string explained_failure(RunRecord& record, const ExperimentConfig& experiment);

}  // namespace tenon::cli
