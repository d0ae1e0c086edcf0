// Keys and their checks: as lenient and as strict as PyTorch itself.
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/pytorch/conf_tokens.h>
#include <tenon/memory/pytorch/sizes.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace tenon {

namespace {

constexpr std::uint64_t kMostMiB = ~std::uint64_t{0} / MiB;

std::uint32_t to_divisions(std::string_view text, const std::string& word, bool zero_allowed) {
  const std::uint64_t divisions = conf_number(text, word, "roundup_power2_divisions");
  if (!(zero_allowed && divisions == 0) && !is_power_of_two(divisions))
    refuse_conf(text, zero_allowed ? "For roundups, the divisions has to be power of 2 or 0 to disable roundup"
                                   : "For roundups, the divisions has to be power of 2");
  // From here on only sizes beyond a tebibyte would be rounded.
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(divisions, std::uint64_t{1} << 31));
}

/// After the opening bracket, up to and with the closing one.
std::array<std::uint32_t, 16> take_division_list(ConfTokens& tokens) {
  std::array<std::uint32_t, 16> table{};
  bool first = true;
  std::size_t last = 0;
  tokens.take_list([&](const std::string& bound, const std::string& value) {
    const std::uint32_t divisions = to_divisions(tokens.text(), value, true);
    if (bound == ">") {
      std::fill(table.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(last + 1, 16)), table.end(),
                divisions);
      return;
    }
    const std::uint64_t megabytes = conf_number(tokens.text(), bound, "roundup_power2_divisions");
    if (!is_power_of_two(megabytes)) refuse_conf(tokens.text(), "For roundups, the intervals have to be power of 2");
    last = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(megabytes) - 1), 15);
    if (first)
      std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(last + 1), divisions);
    else
      table[last] = divisions;
    first = false;
  });
  return table;
}

/// Our spelling of a table; a list entry names the interval that it governs.
std::string divisions_text(const std::array<std::uint32_t, 16>& table) {
  if (std::all_of(table.begin(), table.end(), [&](std::uint32_t d) { return d == table[0]; }))
    return std::to_string(table[0]);
  std::string text = "[";
  for (std::size_t i = 0; i < table.size(); ++i)
    text += (i ? "," : "") + std::to_string(std::size_t{1} << i) + ":" + std::to_string(table[i]);
  return text + "]";
}

std::string in_mib(std::uint64_t megabytes) { return std::to_string(std::min(megabytes, kMostMiB)) + "MiB"; }

/// large_segment_size_mb counts wherever it stands, because other keys are checked against it.
std::uint64_t large_segment_mib(const ConfTokens& tokens) {
  std::uint64_t size = pytorch::kLargeSegmentBytes / MiB;
  const std::vector<std::string>& all = tokens.all();
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    if (all[i] != "large_segment_size_mb") continue;
    size = conf_number(tokens.text(), all[i + 2], all[i]);
    if (size <= 10) refuse_conf(tokens.text(), "CachingAllocator option large_segment_size_mb must be > 10 MB");
  }
  return size;
}

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {"backend",
                                                "expandable_segments",
                                                "expandable_segments_reserve",
                                                "expandable_segments_reserve_by_class",
                                                "garbage_collection_threshold",
                                                "graph_capture_record_stream_reuse",
                                                "large_segment_size_mb",
                                                "max_non_split_rounding_mb",
                                                "max_split_size_mb",
                                                "per_process_memory_fraction",
                                                "pinned_free_catch_all",
                                                "pinned_max_cached_size_mb",
                                                "pinned_max_round_threshold_mb",
                                                "pinned_num_register_threads",
                                                "pinned_reserve_segment_size_mb",
                                                "pinned_use_background_threads",
                                                "pinned_use_cuda_host_register",
                                                "pinned_use_hip_host_register",
                                                "release_lock_on_cudamalloc",
                                                "release_lock_on_hipmalloc",
                                                "roundup_power2_divisions",
                                                "throw_on_cudamalloc_oom"};
  return keys;
}

[[noreturn]] void refuse_key(std::string_view text, const std::string& key) {
  std::string hint;
  if (const std::string nearest = nearest_name(key, known_keys()); !nearest.empty())
    hint = "; the nearest known one is '" + nearest + "'";
  if (key.find('=') != std::string::npos) hint += "; a ':' stands between a key and its value";
  refuse_conf(text, "Unrecognized key '" + key + "' in Accelerator allocator config" + hint);
}

void set(PytorchConf& conf, const std::string& name, std::string value) {
  std::erase_if(conf.options, [&](const auto& option) { return option.first == name; });  // later duplicates win
  conf.options.emplace_back(name, std::move(value));
}

/// As few digits as read back as the same number.
std::string real_text(double value) {
  std::string text(32, '\0');
  text.resize(static_cast<std::size_t>(std::to_chars(text.data(), text.data() + text.size(), value).ptr - text.data()));
  return text;
}

std::string checked_threshold(std::string_view text, const std::string& word, const char* too_small,
                              const char* too_big) {
  const double threshold = conf_real(text, word, "garbage_collection_threshold");
  if (!(threshold > 0)) refuse_conf(text, too_small);
  if (!(threshold < 1)) refuse_conf(text, too_big);
  return real_text(threshold);
}

std::string fraction_text(std::string_view text, const std::string& word) {
  const double fraction = conf_real(text, word, "per_process_memory_fraction");
  if (!(fraction >= 0 && fraction <= 1))
    refuse_conf(text, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
  return real_text(fraction);
}

/// "0.5" as a share of the device, "1.5G" or "1.5g" as a size. Of what makes no sense PyTorch warns, and goes on as if
/// it were not there: nothing then.
std::optional<std::string> reserve_text(std::string word) {
  const bool is_size = word.ends_with('G') || word.ends_with('g');
  if (is_size) word.pop_back();
  if (word.empty() || word.find_first_not_of("+-.0123456789eE") != word.npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value) || !(value > 0)) return std::nullopt;
  if (!is_size) return real_text(value);
  constexpr double kMostGiB = 1 << 30;
  if (value >= kMostGiB) return "0";  // more than any device has: the range is as long as without the key
  const auto bytes = std::max<std::uint64_t>(static_cast<std::uint64_t>(value * static_cast<double>(GiB)), 1);
  const std::string exact = format_size_exact(bytes);
  return exact.find_first_not_of("0123456789") == exact.npos ? exact + "B" : exact;  // a bare number is a share
}

/// Keys that change nothing about where a request goes; their values are checked as PyTorch checks them.
bool take_ignored(ConfTokens& tokens, const std::string& key) {
  const std::string_view text = tokens.text();
  if (key == "release_lock_on_cudamalloc" || key == "release_lock_on_hipmalloc" ||
      key == "pinned_use_cuda_host_register" || key == "pinned_use_hip_host_register" ||
      key == "pinned_use_background_threads" || key == "graph_capture_record_stream_reuse" ||
      key == "pinned_free_catch_all") {
    tokens.take_boolean();
  } else if (key == "pinned_num_register_threads") {
    const std::uint64_t threads = conf_number(text, tokens.take(), key);
    if (!is_power_of_two(threads))
      refuse_conf(text, "Number of register threads has to be power of 2, got " + std::to_string(threads));
    if (threads > 128)
      refuse_conf(text,
                  "Number of register threads should be less than or equal to 128, got " + std::to_string(threads));
  } else if (key == "pinned_reserve_segment_size_mb" || key == "pinned_max_round_threshold_mb" ||
             key == "pinned_max_cached_size_mb") {
    if (conf_number(text, tokens.take(), key) == 0 && key == "pinned_reserve_segment_size_mb")
      refuse_conf(text, "Pinned reserve segment size has to be greater than 0");
  } else if (key == "expandable_segments_reserve_by_class") {
    // Classes are given to streams by the program, and no history says to which. An opening bracket is a separator too.
    tokens.take_separator();
    tokens.take_list([](const std::string&, const std::string&) {});
  } else {
    return false;
  }
  return true;
}

PytorchConf parse_current(std::string_view text) {
  PytorchConf conf;
  ConfTokens tokens(text);
  const std::uint64_t large = large_segment_mib(tokens);
  const auto megabytes = [&](const std::string& key) {
    const std::uint64_t size = conf_number(text, tokens.take(), key);
    if (size < large)
      refuse_conf(text, "CachingAllocator option " + key + " too small, must be >= " + std::to_string(large));
    return in_mib(size);
  };
  std::optional<std::string> reserve;
  bool is_expandable = false;
  while (!tokens.done()) {
    const std::string key = tokens.take();
    if (std::ranges::find(known_keys(), key) == known_keys().end()) refuse_key(text, key);
    tokens.take_separator();
    if (key == "max_split_size_mb") {
      set(conf, "max_split_size", megabytes(key));
    } else if (key == "max_non_split_rounding_mb") {
      set(conf, "max_non_split_rounding", megabytes(key));
    } else if (key == "large_segment_size_mb") {
      set(conf, "large_segment_size", in_mib(conf_number(text, tokens.take(), key)));
    } else if (key == "garbage_collection_threshold") {
      constexpr const char* kInvalid = "garbage_collect_threshold is invalid, set it in (0.0, 1.0)";
      set(conf, key, checked_threshold(text, tokens.take(), kInvalid, kInvalid));
    } else if (key == "roundup_power2_divisions") {
      const std::string value = tokens.take();
      set(conf, key,
          value == "[" ? divisions_text(take_division_list(tokens)) : std::to_string(to_divisions(text, value, false)));
    } else if (key == "per_process_memory_fraction") {
      set(conf, key, fraction_text(text, tokens.take()));
    } else if (key == "throw_on_cudamalloc_oom") {
      set(conf, key, tokens.take_boolean() ? "true" : "false");
    } else if (key == "expandable_segments") {
      is_expandable = tokens.take_boolean();
      conf.allocator = is_expandable ? kExpandableAllocator : kNativeAllocator;
    } else if (key == "expandable_segments_reserve") {
      if (const auto given = reserve_text(tokens.take()))
        reserve = given;
      else
        conf.ignored.push_back(key);
    } else if (key == "backend") {
      const std::string backend = tokens.take();
      if (backend == "cudaMallocAsync" || backend == "hipMallocAsync")
        refuse_conf(text, "backend " + backend + " is the driver's own allocator, which Tenon has no counterpart of");
      if (backend != "native") refuse_conf(text, "Unknown allocator backend, options are native and cudaMallocAsync");
    } else if (take_ignored(tokens, key)) {
      conf.ignored.push_back(key);
    }
    if (!tokens.done()) tokens.take_separator();
  }
  if (!reserve) return conf;
  // Wherever it stands in the string, it is for expandable segments only.
  constexpr const char* kReserve = "expandable_segments_reserve";
  if (is_expandable)
    set(conf, kReserve, *reserve);
  else
    conf.ignored.emplace_back(kReserve);
  return conf;
}

/// Options apart at white space and commas, key from value at colons; a key without a value is passed over.
PytorchConf parse_1_13(std::string_view text) {
  PytorchConf conf;
  set(conf, "compat", "1.13");
  std::size_t at = 0;
  const auto is_gap = [](char c) { return c == ',' || std::isspace(static_cast<unsigned char>(c)); };
  while (at < text.size()) {
    while (at < text.size() && is_gap(text[at])) ++at;
    std::vector<std::string> fields;
    while (at < text.size() && !is_gap(text[at])) {
      std::string field;
      while (at < text.size() && text[at] != ':' && !is_gap(text[at])) field += text[at++];
      while (at < text.size() && text[at] == ':') ++at;
      fields.push_back(std::move(field));
    }
    if (fields.size() < 2) continue;
    const std::string& key = fields[0];
    if (key == "max_split_size_mb") {
      const std::uint64_t size = conf_number(text, fields[1], key);
      if (size <= 20) refuse_conf(text, "CachingAllocator option max_split_size_mb too small, must be > 20");
      set(conf, "max_split_size", in_mib(size));
    } else if (key == "garbage_collection_threshold") {
      set(conf, key,
          checked_threshold(text, fields[1], "garbage_collect_threshold too small, set it 0.0~1.0",
                            "garbage_collect_threshold too big, set it 0.0~1.0"));
    } else if (key == "roundup_power2_divisions") {
      set(conf, key, std::to_string(to_divisions(text, fields[1], false)));
    } else if (key == "roundup_bypass_threshold_mb") {
      set(conf, "roundup_bypass_threshold", in_mib(conf_number(text, fields[1], key)));
    } else {
      refuse_conf(text, "Unrecognized CachingAllocator option: " + key);
    }
  }
  return conf;
}

}  // namespace

std::string conf_of_line(std::string_view line) {
  const auto trim = [&line] {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  };
  std::string whole(line);
  trim();
  if (line.starts_with("export ")) line.remove_prefix(7);
  trim();
  bool is_line = false;
  for (const std::string_view name : {"PYTORCH_ALLOC_CONF=", "PYTORCH_CUDA_ALLOC_CONF=", "PYTORCH_HIP_ALLOC_CONF="}) {
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    is_line = true;
    break;
  }
  if (!is_line) return whole;
  if (line.starts_with('"') || line.starts_with('\'')) {
    const std::size_t end = line.find(line.front(), 1);
    if (end == line.npos) return whole;
    return std::string(line.substr(1, end - 1));
  }
  return std::string(line.substr(0, line.find_first_of(" \t\n#")));
}

PytorchConf parse_pytorch_conf(std::string_view text, PytorchRelease release) {
  return release == PytorchRelease::k1_13 ? parse_1_13(text) : parse_current(text);
}

std::string setting_of_option(std::string_view name, std::string_view value) {
  const std::string key(name);
  if (name == "max_split_size" || name == "max_non_split_rounding" || name == "large_segment_size" ||
      name == "roundup_bypass_threshold")
    return key + "_mb:" + std::to_string(parse_size(value) / MiB);
  if (name == "throw_on_cudamalloc_oom") return key + (value == "true" ? ":True" : ":False");
  if (name == "expandable_segments_reserve" && value.find_first_not_of("+-.0123456789eE") != value.npos)
    return key + ":" + real_text(static_cast<double>(parse_size(value)) / static_cast<double>(GiB)) + "G";
  return key + ":" + std::string(value);
}

std::array<std::uint32_t, 16> parse_roundup_divisions(std::string_view text) {
  ConfTokens tokens(text);
  std::array<std::uint32_t, 16> table{};
  if (tokens.done()) return table;
  if (tokens.peek() == "[") {
    tokens.take();
    table = take_division_list(tokens);
  } else {
    table.fill(to_divisions(text, tokens.take(), true));
  }
  if (!tokens.done()) refuse_conf(text, "roundup_power2_divisions is N or [MiB:N,...,>:N]");
  return table;
}

}  // namespace tenon
