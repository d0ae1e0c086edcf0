// `tenon doctor FILE`: a run that died, or a smaller device: what would it have fitted under?
#pragma once

#include <tenon/cli/verb.h>

#include <optional>
#include <string>

namespace tenon::cli {

struct DoctorTraceOptions {
  std::string file;
  std::string capacity;
  std::string allocator;
  std::string pytorch_conf;
  TableFormat format = TableFormat::kTable;
  bool quiet = false;
};

/// Throws TraceError for a file that cannot be read.
ExitCode doctor_trace(const DoctorTraceOptions& options);

}  // namespace tenon::cli
