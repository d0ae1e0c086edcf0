// The warning handler in service.
#include <tenon/tensor/libtorch/warning.h>

#include <atomic>
#include <cstdio>

namespace tenon {
namespace {
WarningHandler base_handler;
thread_local WarningHandler* current_handler = nullptr;
std::atomic<bool> always{false};
}  // namespace

WarningHandler::~WarningHandler() = default;
void WarningHandler::process(const SourceLocation& source_location, const std::string& msg, const bool /*verbatim*/) {
  std::fprintf(stderr, "[W %s:%u] Warning: %s (function %s)\n", source_location.file, source_location.line, msg.c_str(),
               source_location.function);
}

void Warning::warn(const SourceLocation& source_location, const std::string& msg, bool verbatim) {
  get_warning_handler()->process(source_location, msg, verbatim);
}
void Warning::set_warning_handler(WarningHandler* handler) noexcept { current_handler = handler; }
WarningHandler* Warning::get_warning_handler() noexcept { return current_handler ? current_handler : &base_handler; }
void Warning::set_warnAlways(bool value) noexcept { always = value; }
bool Warning::get_warnAlways() noexcept { return always; }
Warning::WarnAlways::WarnAlways(bool value) : previous_(always) { always = value; }
Warning::WarnAlways::~WarnAlways() { always = previous_; }

}  // namespace tenon
