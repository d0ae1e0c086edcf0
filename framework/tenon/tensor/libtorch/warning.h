// Warnings: one replaceable handler, as in libtorch.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/streamed_text.h>

#include <cstdint>
#include <ostream>
#include <string>

namespace tenon {

struct SourceLocation {
  const char* function = "";
  const char* file = "";
  std::uint32_t line = 0;
};
inline std::ostream& operator<<(std::ostream& stream, const SourceLocation& at) {
  return stream << at.function << " at " << at.file << ":" << at.line;
}

class TENON_EXPORT WarningHandler {
 public:
  WarningHandler() = default;
  TENON_API virtual ~WarningHandler();
  /// Default: one line on stderr.
  TENON_API virtual void process(const SourceLocation& source_location, const std::string& msg, const bool verbatim);
};

struct TENON_API Warning {
  /// Hands a warning to this thread's handler.
  static void warn(const SourceLocation& source_location, const std::string& msg, bool verbatim = false);
  /// Sends this thread's warnings to a handler, which must outlive its use; null restores the one that prints.
  static void set_warning_handler(WarningHandler* handler) noexcept;
  /// Where this thread's warnings go; never null.
  static WarningHandler* get_warning_handler() noexcept;
  /// Warn each time where a warning is given once otherwise.
  static void set_warnAlways(bool always) noexcept;
  /// What set_warnAlways() was told last; false at first.
  static bool get_warnAlways() noexcept;
  struct TENON_API WarnAlways {
    explicit WarnAlways(bool always = true);
    ~WarnAlways();
    WarnAlways(const WarnAlways&) = delete;
    WarnAlways& operator=(const WarnAlways&) = delete;

   private:
    bool previous_;
  };
};

namespace detail {
template <class... Parts>
std::string concatenate(const Parts&... parts) {
  return streamed_text([&](std::ostream& stream) { (stream << ... << parts); });
}
}  // namespace detail

}  // namespace tenon

#define TENON_WARN(...)                                                              \
  ::tenon::Warning::warn({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, \
                         ::tenon::detail::concatenate(__VA_ARGS__))
#define TENON_WARN_ONCE(...)                            \
  do {                                                  \
    if (::tenon::Warning::get_warnAlways()) {           \
      TENON_WARN(__VA_ARGS__);                          \
    } else {                                            \
      [[maybe_unused]] static const bool warned = [&] { \
        TENON_WARN(__VA_ARGS__);                        \
        return true;                                    \
      }();                                              \
    }                                                   \
  } while (false)
