// Fuzzes the reader of configuration files, and of the values that a command line gives.
#include <tenon/core/error.h>
#include <tenon/runtime/config/toml_reader.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    tenon::read_toml(text, "input");
  } catch (const tenon::ConfigError&) {
  }
  tenon::read_toml_value(text);
  return 0;
}
