// Reads the page of a run, and says what happened in words and in the run's result.json.
#include <tenon/cli/watch/death_report.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/cli/watch/death_words.h>
#include <tenon/cli/watch/run_page.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/files/file_text.h>
#include <tenon/core/process/child_process.h>
#include <tenon/memory/watch/crash_text.h>
#include <tenon/report/kit_advice.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/result_files.h>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string_view>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

constexpr int kLookMilliseconds = 100, kMostLooks = 300;  // for the stack of a process that may be stuck in its handler
constexpr unsigned kLifetimeSeconds = 600;

/// That it died in, or hangs in; null: in none.
const CallSlot* deadly_call(const RunPage& page) {
  const int overdue = page.overdue_slot;
  return overdue != 0 ? &page.board.slots()[static_cast<std::size_t>(overdue - 1)]
                      : page.board.under_way(page.dying_thread);
}

RunRecord record_of(const RunPage& page) {
  const std::string during = page.doing[0] == 0 ? "" : fmt::format(", in {}", page.doing);
  const int overdue = page.overdue_slot, signal = page.crash.signal;
  const CallSlot* const call = deadly_call(page);
  const KeptAllocator& kept = page.allocators[call == nullptr ? 0 : call->facts.allocator];
  const std::string allocator = titled(kept.title, kept.plugin);
  RunCrash crash{.signal = overdue != 0 || page.has_exited ? 0 : signal,
                 .call = call == nullptr ? "" : text_of(call->facts),
                 .during = page.doing,
                 .stack = crash_stack(page.crash)};
  RunRecord record;
  if (overdue != 0 && page.interrupt != 0) {
    record.status = RunStatus::kInterrupted;
    record.exit_code = exit_code_of_signal(page.interrupt);
    record.error = fmt::format("{}: {} has been in {} for {:.0f} s and does not come back{}",
                               signal_name(page.interrupt), allocator, crash.call, page.overdue_seconds, during);
  } else if (overdue != 0) {
    record.status = RunStatus::kHung;
    record.exit_code = static_cast<int>(ExitCode::kFailed);
    record.error = hang_sentence(allocator, crash.call, page.overdue_seconds, during);
  } else if (page.has_exited) {
    record.status = RunStatus::kCrashed;
    record.exit_code = static_cast<int>(ExitCode::kFailed);
    record.error = exit_sentence("the run", allocator, crash.call, page.exit_code, during);
  } else {
    record.status = RunStatus::kCrashed;
    record.exit_code = exit_code_of_signal(signal);
    record.error = crash_sentence("the run", allocator, crash.call, crash_cause(page.crash, signal), during);
  }
  record.result = result_of(page);
  record.seconds = static_cast<double>(std::time(nullptr) - page.started_seconds);
  record.crash = std::move(crash);
  for (const KeptFault& fault : page.faults)
    if (fault.what[0] != 0) record.faults.push_back({.allocator = fault.title, .what = fault.what, .spec = {}});
  return record;
}

void write_result(const RunPage& page, const RunRecord& record) {
  const fs::path folder = page.folder, file = folder / kResultFile;
  const std::string before = page.is_settled ? text_of_file(file) : std::string(page.result);
  if (before.empty()) return;
  const std::string json = ended_result_json(before, record, /*has_figures=*/!page.is_settled);
  write_atomically(file, json);
  if (page.writes_page) write_atomically(folder / kReportFile, run_html(json));
}

/// Whose fault it is; one without a title is of the run's own allocator.
const KeptAllocator& at_fault(const RunPage& page, std::string_view title) {
  if (title.empty()) return page.allocators[0];
  const auto* const found =
      std::ranges::find_if(page.allocators, [&](const KeptAllocator& one) { return one.title == title; });
  return found == std::end(page.allocators) ? page.allocators[0] : *found;
}

/// Whose call it died in, or who had done something wrong before.
std::string culprit(const RunPage& page) {
  if (const CallSlot* const call = deadly_call(page); call != nullptr)
    return page.allocators[call->facts.allocator].spec;
  const KeptFault& first = page.faults[0];
  return first.what[0] == 0 ? "" : at_fault(page, first.title).spec;
}

void tell(const RunPage& page) {
  const RunRecord record = record_of(page);
  const std::string label = page.label;
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\x1b[K");  // a progress line may stand there
  say(label + "tenon: " + record.error + crash_stack_text(record.crash->stack));
  for (const RunFault& fault : record.faults)
    say(fmt::format("{}tenon: before that {} {}", label,
                    fault.allocator.empty() ? page.allocators[0].title : fault.allocator.c_str(), fault.what));
  if (const std::string spec = culprit(page); !spec.empty()) say(label + kit_advice({spec}));
  say(label + finished_sentence(record.result));
  try {
    write_result(page, record);
    if (label.empty()) say(fmt::format("results: {}", page.folder));
  } catch (const std::exception& problem) {
    say(fmt::format("{}tenon: {}", label, problem.what()));
  }
}

}  // namespace

int report_death(int page_descriptor, int go_on) {
  ::alarm(kLifetimeSeconds);
  pollfd wait{go_on, POLLIN, 0};
  bool is_complete = false;
  // Many short waits: time in which all of this is stopped does not count.
  for (int look = 0; look < kMostLooks && !is_complete; ++look) is_complete = ::poll(&wait, 1, kLookMilliseconds) != 0;
  const RunPage* const page = open_page(page_descriptor);
  if (page == nullptr) {
    say("tenon: the run crashed; this program was replaced meanwhile and cannot read what it left");
    return 1;
  }
  tell(*page);
  if (!is_complete) ::kill(::getppid(), SIGKILL);  // it is stuck in its handler and would never end
  return 0;
}

}  // namespace tenon::cli
