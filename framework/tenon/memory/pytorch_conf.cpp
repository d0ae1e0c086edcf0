// Tokens, keys, checks: as lenient and as strict as PyTorch itself.
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/memory/pytorch_conf.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>

namespace tenon {

namespace {

constexpr std::uint64_t kMostMiB = ~std::uint64_t{0} / MiB;

[[noreturn]] void refuse(std::string_view text, const std::string& message) {
  throw ConfigError("\"" + std::string(text) + "\": " + message);
}

/// C's stoull: a sign is taken, what follows the digits is not looked at.
std::uint64_t to_number(std::string_view text, const std::string& word, const std::string& key) {
  char* end = nullptr;
  errno = 0;
  const std::uint64_t value = std::strtoull(word.c_str(), &end, 10);
  if (end == word.c_str()) refuse(text, key + " needs a number, not '" + word + "'");
  if (errno == ERANGE) refuse(text, key + " is out of range: " + word);
  return value;
}

double to_real(std::string_view text, const std::string& word, const std::string& key) {
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(word.c_str(), &end);
  if (end == word.c_str()) refuse(text, key + " needs a number, not '" + word + "'");
  if (errno == ERANGE) refuse(text, key + " is out of range: " + word);
  return value;
}

/// The characters , : [ ] each by themselves, and runs of anything else with white space taken out.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) tokens.push_back(std::move(word));
    word.clear();
  };
  for (const char c : text) {
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      flush();
      tokens.emplace_back(1, c);
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      word += c;
    }
  }
  flush();
  return tokens;
}

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text), tokens_(tokens_of(text)) {}
  bool done() const { return next_ >= tokens_.size(); }
  std::size_t index() const { return next_; }
  const std::string& peek() const {
    if (done()) refuse(text_, "it ends in the middle of an option (PyTorch: Index out of bounds in ConfigTokenizer)");
    return tokens_[next_];
  }
  std::string take() {
    std::string word = peek();
    ++next_;
    return word;
  }
  /// PyTorch takes any token where it wants a separator.
  void take_separator() { take(); }
  std::string_view text() const { return text_; }
  const std::vector<std::string>& all() const { return tokens_; }

 private:
  std::string_view text_;
  std::vector<std::string> tokens_;
  std::size_t next_ = 0;
};

std::uint32_t to_divisions(std::string_view text, const std::string& word, bool zero_allowed) {
  const std::uint64_t divisions = to_number(text, word, "roundup_power2_divisions");
  if (!(zero_allowed && divisions == 0) && (!is_power_of_two(divisions) || divisions > (1u << 30)))
    refuse(text, zero_allowed ? "For roundups, the divisions has to be power of 2 or 0 to disable roundup"
                              : "For roundups, the divisions has to be power of 2");
  return static_cast<std::uint32_t>(divisions);
}

/// After the opening bracket, up to and with the closing one.
std::array<std::uint32_t, 16> take_division_list(Tokens& tokens) {
  std::array<std::uint32_t, 16> table{};
  bool first = true;
  std::size_t last = 0;
  while (tokens.peek() != "]") {
    const std::string bound = tokens.take();
    tokens.take_separator();
    const std::uint32_t divisions = to_divisions(tokens.text(), tokens.take(), true);
    if (bound == ">") {
      std::fill(table.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(last + 1, 16)), table.end(),
                divisions);
    } else {
      const std::uint64_t megabytes = to_number(tokens.text(), bound, "roundup_power2_divisions");
      if (!is_power_of_two(megabytes)) refuse(tokens.text(), "For roundups, the intervals have to be power of 2");
      last = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(megabytes) - 1), 15);
      if (first)
        std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(last + 1), divisions);
      else
        table[last] = divisions;
      first = false;
    }
    if (tokens.peek() != "]") tokens.take_separator();
  }
  tokens.take();
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

bool to_boolean(Tokens& tokens) {
  const std::size_t index = tokens.index();
  const std::string word = tokens.take();
  if (word == "True") return true;
  if (word == "False") return false;
  refuse(tokens.text(),
         "Expected 'True' or 'False' at index " + std::to_string(index) + " in ConfigTokenizer but got '" + word + "'");
}

std::string in_mib(std::uint64_t megabytes) { return std::to_string(std::min(megabytes, kMostMiB)) + "MiB"; }

/// large_segment_size_mb counts wherever it stands, because other keys are checked against it.
std::uint64_t large_segment_mib(const Tokens& tokens) {
  std::uint64_t size = 20;
  const std::vector<std::string>& all = tokens.all();
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    if (all[i] != "large_segment_size_mb") continue;
    size = to_number(tokens.text(), all[i + 2], all[i]);
    if (size <= 10) refuse(tokens.text(), "CachingAllocator option large_segment_size_mb must be > 10 MB");
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
  const std::string nearest = nearest_name(key, known_keys());
  refuse(text, "Unrecognized key '" + key + "' in Accelerator allocator config" +
                   (nearest.empty() ? "" : "; the nearest known one is '" + nearest + "'"));
}

void set(PytorchConf& conf, const std::string& name, std::string value) {
  std::erase_if(conf.options, [&](const auto& option) { return option.first == name; });  // later duplicates win
  conf.options.emplace_back(name, std::move(value));
}

std::string checked_threshold(std::string_view text, const std::string& word, const char* too_small,
                              const char* too_big) {
  const double threshold = to_real(text, word, "garbage_collection_threshold");
  if (!(threshold > 0)) refuse(text, too_small);
  if (!(threshold < 1)) refuse(text, too_big);
  return word.substr(0, word.find_first_not_of("+-.0123456789eE"));
}

PytorchConf parse_current(std::string_view text) {
  PytorchConf conf;
  Tokens tokens(text);
  const std::uint64_t large = large_segment_mib(tokens);
  const auto megabytes = [&](const std::string& key) {
    const std::uint64_t size = to_number(text, tokens.take(), key);
    if (size < large)
      refuse(text, "CachingAllocator option " + key + " too small, must be >= " + std::to_string(large));
    return in_mib(size);
  };
  while (!tokens.done()) {
    const std::string key = tokens.take();
    if (std::ranges::find(known_keys(), key) == known_keys().end()) refuse_key(text, key);
    tokens.take_separator();
    if (key == "max_split_size_mb") {
      set(conf, "max_split_size", megabytes(key));
    } else if (key == "max_non_split_rounding_mb") {
      set(conf, "max_non_split_rounding", megabytes(key));
    } else if (key == "large_segment_size_mb") {
      set(conf, "large_segment_size", in_mib(to_number(text, tokens.take(), key)));
    } else if (key == "garbage_collection_threshold") {
      constexpr const char* kInvalid = "garbage_collect_threshold is invalid, set it in (0.0, 1.0)";
      set(conf, "garbage_collection_threshold", checked_threshold(text, tokens.take(), kInvalid, kInvalid));
    } else if (key == "roundup_power2_divisions") {
      if (tokens.peek() == "[") {
        tokens.take();
        set(conf, "roundup_power2_divisions", divisions_text(take_division_list(tokens)));
      } else {
        set(conf, "roundup_power2_divisions", std::to_string(to_divisions(text, tokens.take(), false)));
      }
    } else if (key == "per_process_memory_fraction") {
      const std::string word = tokens.take();
      const double fraction = to_real(text, word, key);
      if (!(fraction >= 0 && fraction <= 1))
        refuse(text, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
      set(conf, key, word.substr(0, word.find_first_not_of("+-.0123456789eE")));
    } else if (key == "expandable_segments") {
      conf.allocator = to_boolean(tokens) ? kExpandableAllocator : kNativeAllocator;
    } else if (key == "backend") {
      const std::string backend = tokens.take();
      if (backend == "cudaMallocAsync" || backend == "hipMallocAsync")
        refuse(text, "backend " + backend + " is the driver's own allocator, which Tenon has no counterpart of");
      if (backend != "native") refuse(text, "Unknown allocator backend, options are native and cudaMallocAsync");
    } else if (key == "release_lock_on_cudamalloc" || key == "release_lock_on_hipmalloc" ||
               key == "pinned_use_cuda_host_register" || key == "pinned_use_hip_host_register" ||
               key == "pinned_use_background_threads" || key == "graph_capture_record_stream_reuse" ||
               key == "throw_on_cudamalloc_oom" || key == "pinned_free_catch_all") {
      to_boolean(tokens);
      conf.ignored.push_back(key);
    } else if (key == "pinned_num_register_threads") {
      const std::uint64_t threads = to_number(text, tokens.take(), key);
      if (!is_power_of_two(threads))
        refuse(text, "Number of register threads has to be power of 2, got " + std::to_string(threads));
      if (threads > 128)
        refuse(text, "Number of register threads should be less than or equal to 128, got " + std::to_string(threads));
      conf.ignored.push_back(key);
    } else if (key == "pinned_reserve_segment_size_mb" || key == "pinned_max_round_threshold_mb" ||
               key == "pinned_max_cached_size_mb") {
      if (to_number(text, tokens.take(), key) == 0 && key == "pinned_reserve_segment_size_mb")
        refuse(text, "Pinned reserve segment size has to be greater than 0");
      conf.ignored.push_back(key);
    } else if (key == "expandable_segments_reserve" || key == "expandable_segments_reserve_by_class") {
      // PyTorch warns of values that make no sense, and goes on; but the second is a list.
      const std::string value = tokens.take();
      if (key.ends_with("by_class") && value != "[")
        refuse(text, key + " needs a list in brackets, not '" + value + "'");
      if (key.ends_with("by_class"))
        while (tokens.take() != "]") {
        }
      conf.ignored.push_back(key);
    }
    if (!tokens.done()) tokens.take_separator();
  }
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
      const std::uint64_t size = to_number(text, fields[1], key);
      if (size <= 20) refuse(text, "CachingAllocator option max_split_size_mb too small, must be > 20");
      set(conf, "max_split_size", in_mib(size));
    } else if (key == "garbage_collection_threshold") {
      set(conf, key,
          checked_threshold(text, fields[1], "garbage_collect_threshold too small, set it 0.0~1.0",
                            "garbage_collect_threshold too big, set it 0.0~1.0"));
    } else if (key == "roundup_power2_divisions") {
      set(conf, key, std::to_string(to_divisions(text, fields[1], false)));
    } else if (key == "roundup_bypass_threshold_mb") {
      set(conf, "roundup_bypass_threshold", in_mib(to_number(text, fields[1], key)));
    } else {
      refuse(text, "Unrecognized CachingAllocator option: " + key);
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
  const std::string whole(line);
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

std::array<std::uint32_t, 16> parse_roundup_divisions(std::string_view text) {
  Tokens tokens(text);
  std::array<std::uint32_t, 16> table{};
  if (tokens.done()) return table;
  if (tokens.peek() == "[") {
    tokens.take();
    table = take_division_list(tokens);
  } else {
    table.fill(to_divisions(text, tokens.take(), true));
  }
  if (!tokens.done()) refuse(text, "roundup_power2_divisions is N or [MiB:N,...,>:N]");
  return table;
}

}  // namespace tenon
