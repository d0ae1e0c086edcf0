// Option schemas: checking values against them, with messages that name the option, its type, its range and near
// misses.
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace tenon {

namespace {

OptionSpec make(std::string name, OptionType type, OptionValue value, std::string help) {
  OptionSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.default_value = std::move(value);
  spec.help = std::move(help);
  return spec;
}

std::string shown(const OptionSpec& spec, const OptionValue& value) {
  if (spec.type == OptionType::kSize) return format_size_exact(std::get<std::size_t>(value));
  return to_string(value);
}

/// The word of or_word(); empty where there is none.
std::string_view word_for_zero(const OptionSpec& spec) {
  return spec.type == OptionType::kInteger && !spec.choices.empty() ? std::string_view(spec.choices.front())
                                                                    : std::string_view();
}

[[noreturn]] void refuse(const OptionSpec& spec, std::string_view got, std::string_view why) {
  std::string allowed;
  const std::string_view word = word_for_zero(spec);
  if (!spec.choices.empty() && word.empty()) allowed = fmt::format(", one of {}", fmt::join(spec.choices, ", "));
  if (spec.minimum && spec.maximum) {
    allowed = fmt::format(", from {} to {}", shown(spec, *spec.minimum), shown(spec, *spec.maximum));
  }
  if (!word.empty()) allowed += fmt::format(", or \"{}\"", word);
  const std::string_view article = spec.type == OptionType::kInteger ? "an" : "a";
  throw ConfigError(fmt::format("option '{}' expects {} {}{}; got {}{}{}", spec.name, article, name_of(spec.type),
                                allowed, got, why.empty() ? "" : ": ", why));
}

void check_range(const OptionSpec& spec, const OptionValue& value) {
  if (const auto* real = std::get_if<double>(&value); real != nullptr && std::isnan(*real)) refuse(spec, "nan", "");
  if (spec.minimum && value < *spec.minimum) refuse(spec, shown(spec, value), "too small");
  if (spec.maximum && value > *spec.maximum) refuse(spec, shown(spec, value), "too large");
  if (spec.type == OptionType::kText && !spec.choices.empty()) {
    const auto& word = std::get<std::string>(value);
    if (std::find(spec.choices.begin(), spec.choices.end(), word) == spec.choices.end()) {
      const std::string near = nearest_name(word, spec.choices);
      refuse(spec, fmt::format("\"{}\"", word), near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
    }
  }
}

/// Whether it is a whole number, of more than 64 bits.
bool is_too_long(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range && end == text.data() + text.size();
}

std::string_view kind_of(const OptionValue& value) {
  constexpr std::string_view kKinds[] = {"a boolean", "an integer", "a number", "a size", "a string"};
  return kKinds[value.index()];
}

OptionValue parse_text(const OptionSpec& spec, std::string_view text) {
  const auto quoted = [&] { return fmt::format("\"{}\"", text); };
  switch (spec.type) {
    case OptionType::kBoolean: {
      std::string lower(text);
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
      if (lower == "true" || lower == "1") return true;
      if (lower == "false" || lower == "0") return false;
      refuse(spec, quoted(), "write true or false");
    }
    case OptionType::kInteger: {
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (is_too_long(text)) refuse(spec, text, "out of range");
      if (error != std::errc() || end != text.data() + text.size()) refuse(spec, quoted(), "");
      return value;
    }
    case OptionType::kReal: {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || value != value) refuse(spec, quoted(), "");
      return value;
    }
    case OptionType::kSize:
      try {
        return parse_size(text);
      } catch (const ConfigError& error) {
        throw ConfigError(fmt::format("option '{}': {}", spec.name, error.what()));
      }
    case OptionType::kText:
      return std::string(text);
  }
  return {};
}

}  // namespace

std::string_view name_of(OptionType type) {
  constexpr std::string_view kNames[] = {"boolean", "integer", "number", "size", "string"};
  return kNames[static_cast<int>(type)];
}

std::string to_string(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) return held ? "true" : "false";
        if constexpr (std::is_same_v<Held, std::size_t>) return format_size_exact(held);
        return fmt::format("{}", held);
      },
      value);
}

OptionSpec OptionSpec::boolean(std::string name, bool value, std::string help) {
  return make(std::move(name), OptionType::kBoolean, value, std::move(help));
}
OptionSpec OptionSpec::integer(std::string name, std::int64_t value, std::string help) {
  return make(std::move(name), OptionType::kInteger, value, std::move(help));
}
OptionSpec OptionSpec::real(std::string name, double value, std::string help) {
  return make(std::move(name), OptionType::kReal, value, std::move(help));
}
OptionSpec OptionSpec::size(std::string name, std::size_t value, std::string help) {
  return make(std::move(name), OptionType::kSize, value, std::move(help));
}
OptionSpec OptionSpec::text(std::string name, std::string value, std::string help) {
  return make(std::move(name), OptionType::kText, std::move(value), std::move(help));
}
OptionSpec OptionSpec::range(OptionValue low, OptionValue high) && {
  TENON_ASSERT(low.index() == default_value.index() && high.index() == default_value.index(),
               "an option's range has its type");
  minimum = std::move(low);
  maximum = std::move(high);
  return std::move(*this);
}
OptionSpec OptionSpec::one_of(std::vector<std::string> words) && {
  TENON_ASSERT(type == OptionType::kText, "choices are for text options");
  choices = std::move(words);
  return std::move(*this);
}

OptionSpec OptionSpec::or_word(std::string word) && {
  TENON_ASSERT(type == OptionType::kInteger && minimum && std::get<std::int64_t>(*minimum) > 0,
               "a word stands for 0, which the range leaves out");
  choices = {std::move(word)};
  return std::move(*this);
}

Options::Options(OptionSchema schema) : schema_(std::move(schema)) {
  for (const OptionSpec& spec : schema_) values_.emplace(spec.name, spec.default_value);
}

const OptionSpec& Options::find(std::string_view name) const {
  for (const OptionSpec& spec : schema_) {
    if (spec.name == name) return spec;
  }
  std::vector<std::string> known;
  for (const OptionSpec& spec : schema_) known.push_back(spec.name);
  if (known.empty()) throw ConfigError(fmt::format("unknown option '{}': there are no options here", name));
  const std::string near = nearest_name(name, known);
  throw ConfigError(near.empty() ? fmt::format("unknown option '{}'; known: {}", name, fmt::join(known, ", "))
                                 : fmt::format("unknown option '{}'; did you mean '{}'?", name, near));
}

void Options::set_text(std::string_view name, std::string_view text) {
  const OptionSpec& spec = find(name);
  if (!text.empty() && text == word_for_zero(spec)) {
    values_.find(name)->second = std::int64_t{0};
    return;
  }
  OptionValue value = parse_text(spec, text);
  check_range(spec, value);
  values_.find(name)->second = std::move(value);
}

void Options::set(std::string_view name, OptionValue value) {
  const OptionSpec& spec = find(name);
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* word = std::get_if<std::string>(&value);
  if (word != nullptr && !word->empty() && *word == word_for_zero(spec)) return set_text(name, *word);
  if (spec.type == OptionType::kSize) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      value = parse_text(spec, std::string(*text));
    } else if (whole != nullptr) {
      if (*whole < 0) refuse(spec, fmt::format("{}", *whole), "a size is not negative");
      value = static_cast<std::size_t>(*whole);
    }
  } else if (spec.type == OptionType::kReal && whole != nullptr) {
    value = static_cast<double>(*whole);
  }
  // A text where no integer could hold it.
  if (const bool is_number = spec.type == OptionType::kInteger || spec.type == OptionType::kReal;
      is_number && word != nullptr && is_too_long(*word))
    refuse(spec, *word, "out of range");
  if (value.index() != spec.default_value.index())
    refuse(spec, fmt::format("{} ({})", kind_of(value), to_string(value)), "");
  check_range(spec, value);
  values_.find(name)->second = std::move(value);
}

const OptionValue& Options::value(std::string_view name, OptionType type) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::vector<std::string> known;
    for (const OptionSpec& spec : schema_) known.push_back(spec.name);
    throw Error(fmt::format("the option '{}' is read, but not declared: options() declares {}; add it there", name,
                            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  if (static_cast<int>(type) != static_cast<int>(found->second.index())) {
    throw Error(fmt::format("the option '{}' is read as a {}, but declared as a {}", name, name_of(type),
                            name_of(static_cast<OptionType>(found->second.index()))));
  }
  return found->second;
}

bool Options::boolean(std::string_view name) const { return std::get<bool>(value(name, OptionType::kBoolean)); }
std::int64_t Options::integer(std::string_view name) const {
  return std::get<std::int64_t>(value(name, OptionType::kInteger));
}
double Options::real(std::string_view name) const { return std::get<double>(value(name, OptionType::kReal)); }
std::size_t Options::size(std::string_view name) const { return std::get<std::size_t>(value(name, OptionType::kSize)); }
const std::string& Options::text(std::string_view name) const {
  return std::get<std::string>(value(name, OptionType::kText));
}

bool Options::is_default(std::string_view name) const { return values_.find(name)->second == find(name).default_value; }

std::vector<std::pair<std::string, std::string>> Options::entries(bool only_changed) const {
  std::vector<std::pair<std::string, std::string>> list;
  for (const OptionSpec& spec : schema_) {
    const OptionValue& held = values_.find(spec.name)->second;
    if (only_changed && held == spec.default_value) continue;
    const bool is_word = held == OptionValue(std::int64_t{0}) && !word_for_zero(spec).empty();
    list.emplace_back(spec.name, is_word ? std::string(word_for_zero(spec)) : to_string(held));
  }
  return list;
}

std::string Options::spec() const {
  std::string text;
  for (const auto& [name, value] : entries(true)) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text;
}

// By hand: Levenshtein's distance is these lines, and core has no library but fmt.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::vector<std::size_t> row;
  for (const std::string& candidate : candidates) {  // Levenshtein, one row at a time
    row.resize(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t substituted = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  // A word that goes on where this one ends was begun, and is not a slip of the finger: "float16" of "float16-mixed".
  const auto goes_on = [&](const std::string& candidate) {
    return candidate.size() > name.size() && candidate.starts_with(name) && candidate[name.size()] == '-';
  };
  if (!best.empty() && std::ranges::count_if(candidates, goes_on) == 1 && best_distance > 0)
    return *std::ranges::find_if(candidates, goes_on);
  if (!best.empty() || name.size() < 3) return best;
  // Too far, but the beginning of one, or begun by one.
  const auto begun = std::ranges::find_if(candidates, [&](const std::string& it) {
    return it.starts_with(name) || (it.size() > 3 && name.starts_with(it));
  });
  return begun == candidates.end() ? std::string() : *begun;
}

}  // namespace tenon
