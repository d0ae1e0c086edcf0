// Names of the files in a folder of results, for whoever writes them and whoever reads them.
#pragma once

namespace tenon {

inline constexpr char kManifestFile[] = "run.json";
inline constexpr char kSettingsFile[] = "config.resolved.toml";
inline constexpr char kResultFile[] = "result.json";
inline constexpr char kReportFile[] = "report.html";
inline constexpr char kStateFile[] = "state.safetensors";  ///< what an interrupted run goes on from
inline constexpr char kCellsFolder[] = "cells";

}  // namespace tenon
