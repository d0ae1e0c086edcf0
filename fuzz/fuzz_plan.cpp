// Fuzzes the reader of plans, also behind the checksum, which would stop all changed bytes.
#include <tenon/core/error.h>
#include <tenon/memory/packing/plan_file.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace {

/// Why it is refused; empty: it is a plan, which is then written and read again.
std::string refusal_of(const std::string& text) {
  try {
    const tenon::packing::Plan plan = tenon::packing::parse_plan(text, "input");
    tenon::packing::parse_plan(text_of(plan), "written");
    return {};
  } catch (const tenon::ConfigError& error) {
    return error.what();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  const std::string refusal = refusal_of(text);
  if (refusal.starts_with("written")) return 1;  // it does not read what it wrote
  constexpr std::string_view kSays = "its checksum would be ";
  const std::size_t at = refusal.find(kSays);
  const std::size_t last = text.rfind("checksum");
  if (at == std::string::npos || last == std::string::npos) return 0;
  refusal_of(text.replace(last, std::string::npos, "checksum " + refusal.substr(at + kSays.size(), 16) + "\n"));
  return 0;
}
