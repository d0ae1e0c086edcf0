// The figures of a part of a run: written with its state, and joined with those of the part that goes on from there.
#pragma once

#include <tenon/nn/serialize/archive.h>
#include <tenon/train/experiment_result.h>

namespace tenon::train {

/// Losses, times, epochs, timeline, peaks and counts of calls.
void write_figures(OutputArchive& archive, const ExperimentResult& result);
/// Throws Error where something of it is missing.
ExperimentResult read_figures(InputArchive& archive);

/// The whole of two parts: series one after the other, times and counts added up, the higher of two peaks. What is not
/// of a part alone, such as the number of parameters, is that of the later one.
ExperimentResult joined(const ExperimentResult& earlier, ExperimentResult later);

}  // namespace tenon::train
