// Options that a plugin declares (name, type, default, range, help) and the validated values it gets back.
// Where a value came from (TOML, command line, environment) is not known here.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon {

enum class OptionType { kBoolean, kInteger, kReal, kSize, kText };

/// The word for a type in messages and in `tenon plugins info`: "boolean", "integer", "number", "size", "string".
TENON_API std::string_view name_of(OptionType type);

/// kSize values are held as std::size_t, kInteger as std::int64_t.
using OptionValue = std::variant<bool, std::int64_t, double, std::size_t, std::string>;

TENON_API std::string to_string(const OptionValue& value);

/// One option that a plugin understands. Build it with the named functions:
///   OptionSpec::size("max_split_size", kUnlimited, "blocks above this are not split")
struct TENON_EXPORT OptionSpec {
  std::string name;
  OptionType type = OptionType::kText;
  OptionValue default_value;
  std::optional<OptionValue> minimum;
  std::optional<OptionValue> maximum;
  std::vector<std::string> choices;  ///< for kText: the only words allowed; empty = any. For kInteger: see or_word()
  std::string help;                  ///< one line

  TENON_API static OptionSpec boolean(std::string name, bool default_value, std::string help);
  TENON_API static OptionSpec integer(std::string name, std::int64_t default_value, std::string help);
  TENON_API static OptionSpec real(std::string name, double default_value, std::string help);
  TENON_API static OptionSpec size(std::string name, std::size_t default_value, std::string help);
  TENON_API static OptionSpec text(std::string name, std::string default_value, std::string help);
  /// Bounds, both inclusive.
  TENON_API OptionSpec range(OptionValue low, OptionValue high) &&;
  TENON_API OptionSpec one_of(std::vector<std::string> words) &&;
  /// Of an integer from 1: a word that may stand in its place ("auto"), held as 0.
  TENON_API OptionSpec or_word(std::string word) &&;
};

using OptionSchema = std::vector<OptionSpec>;

/// Every option of a schema with its value. Reading one that the schema lacks, or as another type, throws an Error.
class TENON_EXPORT Options {
 public:
  Options() = default;
  /// All defaults.
  TENON_API explicit Options(OptionSchema schema);

  /// Sets from text as typed in a SPEC or an environment variable. Throws ConfigError without a position, naming the
  /// option, its type and range, and for an unknown name the nearest known one.
  TENON_API void set_text(std::string_view name, std::string_view text);
  /// Sets a typed value: an integer is accepted where a size or number is wanted, a string where a size is wanted.
  TENON_API void set(std::string_view name, OptionValue value);

  TENON_API bool boolean(std::string_view name) const;
  TENON_API std::int64_t integer(std::string_view name) const;
  TENON_API double real(std::string_view name) const;
  TENON_API std::size_t size(std::string_view name) const;
  TENON_API const std::string& text(std::string_view name) const;
  TENON_API bool is_default(std::string_view name) const;

  const OptionSchema& schema() const { return schema_; }
  /// Every option, in the schema's order, as text that set_text reads back; only those that differ when asked.
  TENON_API std::vector<std::pair<std::string, std::string>> entries(bool only_changed) const;
  /// "max_split_size=128MiB,garbage_collection_threshold=0.8": the changed ones. Empty when all are defaults.
  TENON_API std::string spec() const;

 private:
  const OptionSpec& find(std::string_view name) const;
  const OptionValue& value(std::string_view name, OptionType type) const;

  OptionSchema schema_;
  std::map<std::string, OptionValue, std::less<>> values_;
};

/// The candidate with the smallest edit distance to `name`, empty when none is close enough to be a likely typo.
TENON_API std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tenon
