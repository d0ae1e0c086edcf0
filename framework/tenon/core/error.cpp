// Error messages that every layer shares, and the one way in which our own bugs end the program.
#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace tenon {

namespace {

std::string describe(const OutOfMemoryInfo& info) {
  std::string text =
      fmt::format("OutOfMemory: {} on {} needs {} ({} bytes); {} allocated, {} reserved",
                  info.allocator.empty() ? "the allocator" : info.allocator,
                  info.device.empty() ? "the device" : info.device, format_bytes(info.requested_bytes),
                  info.requested_bytes, format_bytes(info.allocated_bytes), format_bytes(info.reserved_bytes));
  if (info.capacity_bytes != 0) {
    text += fmt::format("; the device has {} free of {}", format_bytes(info.device_free_bytes),
                        format_bytes(info.capacity_bytes));
  }
  if (info.limit_bytes != 0) text += fmt::format("; limit {}", format_bytes(info.limit_bytes));
  if (info.largest_free_bytes != 0)
    text += fmt::format("; largest cached block {}", format_bytes(info.largest_free_bytes));
  if (!info.hint.empty()) text += "; " + info.hint;
  return text;
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(message) {}
Error::~Error() = default;
ExitCode Error::exit_code() const noexcept { return ExitCode::kFailed; }

ConfigError::~ConfigError() = default;
ExitCode ConfigError::exit_code() const noexcept { return ExitCode::kUsage; }

PluginError::~PluginError() = default;
ExitCode PluginError::exit_code() const noexcept { return ExitCode::kPlugin; }

IndexError::~IndexError() = default;
ValueError::~ValueError() = default;
TypeError::~TypeError() = default;
NotImplementedError::~NotImplementedError() = default;

OutOfMemory::OutOfMemory(OutOfMemoryInfo info) : Error(describe(info)), info_(std::move(info)) {}
OutOfMemory::~OutOfMemory() = default;
ExitCode OutOfMemory::exit_code() const noexcept { return ExitCode::kOutOfMemory; }

void assertion_failed(const char* expression, const char* file, int line, const char* message) noexcept {
  std::fprintf(stderr, "tenon: internal error: %s (%s) at %s:%d\n", message, expression, file, line);
  std::abort();
}

}  // namespace tenon
