// The process that tells of a run that died inside a plugin: in words, and in the run's result.json.
#pragma once

namespace tenon::cli {

/// `page` and `go_on` are descriptors of the dying process, which waits: its RunPage, and a pipe that ends when the
/// page is complete. Returns the exit code of this process, which nobody looks at.
int report_death(int page, int go_on);

}  // namespace tenon::cli
