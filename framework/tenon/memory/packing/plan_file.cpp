// Plans as text, and recordings as problems.
#include <tenon/core/error.h>
#include <tenon/core/files/file_text.h>
#include <tenon/core/files/nearest_file.h>
#include <tenon/core/text/trimmed.h>
#include <tenon/core/units.h>
#include <tenon/memory/packing/plan_file.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

namespace tenon::packing {

namespace {

constexpr std::string_view kMagic = "tenon-plan";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kColumns = "# purpose stream bytes offset size from until\n";
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 31;

/// FNV-1a over 64 bits, as sixteen hexadecimal digits.
std::string checksum_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); i-- > 0; hash >>= 4) digits[i] = "0123456789abcdef"[hash & 15];
  return digits;
}

std::optional<Purpose> purpose_of(std::string_view word) {
  for (int i = 0; i < kPurposeCount; ++i)
    if (name_of(static_cast<Purpose>(i)) == word) return static_cast<Purpose>(i);
  return std::nullopt;
}

/// Lines one after the other, with complaints that name them.
class PlanReader {
 public:
  PlanReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Plan read() {
    Plan plan;
    const std::string_view version = value_of(kMagic);
    if (version != kVersion)
      fail("a plan of version " + std::string(version.substr(0, 20)) + "; this Tenon reads version " +
           std::string(kVersion) + ". Make the plan anew: tenon plan HISTORY -o FILE");
    plan.name = value_of("name");
    const std::uint64_t count = number(value_of("blocks"));
    plan.height = number(value_of("height"));
    plan.lower_bound = number(value_of("lower_bound"));
    if (count > kMostBlocks || count > text_.size()) fail("more blocks than the file has bytes");
    plan.blocks.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) plan.blocks.push_back(block(i));
    const std::string_view stated = value_of("checksum");
    if (const std::string sum = checksum_of(text_.substr(0, begin_)); stated != sum)
      fail("the file was changed after it was written: its checksum would be " + sum +
           ". Make the plan anew: tenon plan HISTORY -o FILE");
    check(plan);
    return plan;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw ConfigError(name_ + ":" + std::to_string(std::max<std::size_t>(line_, 1)) + ": " + reason);
  }

  /// The next line that is not a remark.
  std::string_view line() {
    while (next_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', next_), text_.size());
      const std::string_view line = trimmed(text_.substr(next_, end - next_), " \t\r");
      begin_ = next_;
      next_ = std::min(end + 1, text_.size());
      ++line_;
      if (!line.empty() && line.front() != '#') return line;
    }
    ++line_;
    fail(line_ == 1 ? "an empty file, and no plan" : "the plan ends here, before its checksum");
  }

  std::string_view value_of(std::string_view key) {
    const std::string_view text = line();
    if (!text.starts_with(key) || (text.size() > key.size() && text[key.size()] != ' '))
      fail("expected '" + std::string(key) + "', not '" + std::string(text.substr(0, 40)) + "'" +
           (key == kMagic ? "; this is not a plan of `tenon plan`" : ""));
    return trimmed(text.substr(key.size()), " ");
  }

  std::uint64_t number(std::string_view text) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value >= kMaxBytes)
      fail("expected a number below 2^62, not '" + std::string(text.substr(0, 40)) + "'");
    return value;
  }

  PlannedBlock block(std::uint64_t ordinal) {
    std::string_view text = line();
    std::array<std::string_view, 7> fields;
    for (std::string_view& field : fields) {
      const std::size_t end = std::min(text.find(' '), text.size());
      field = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (field.empty()) fail("a block has seven fields: purpose, stream, bytes, offset, size, from, until");
    }
    if (!text.empty()) fail("a block has seven fields: purpose, stream, bytes, offset, size, from, until");
    PlannedBlock block;
    block.purpose = purpose_of(fields[0]);
    if (!block.purpose && fields[0] != "-") fail("there is no purpose '" + std::string(fields[0].substr(0, 40)) + "'");
    const std::uint64_t stream = number(fields[1]);
    if (stream > ordinal) fail("a stream's number is above that of the request");
    block.stream = static_cast<std::uint32_t>(stream);
    block.bytes = number(fields[2]);
    block.offset = number(fields[3]);
    block.size = number(fields[4]);
    block.until = number(fields[6]);
    if (number(fields[5]) != ordinal || block.until <= ordinal)
      fail("a block that does not live from its own request on");
    if (block.bytes == 0 || block.size < block.bytes) fail("a block that is smaller than its request");
    if (block.offset % kPlanGranule != 0 || block.size % kPlanGranule != 0)
      fail("an offset or a size that is not a multiple of " + std::to_string(kPlanGranule));
    return block;
  }

  void check(const Plan& plan) const {
    std::vector<Buffer> buffers;
    std::vector<std::uint64_t> offsets;
    for (const PlannedBlock& block : plan.blocks) {
      const auto from = static_cast<std::int64_t>(buffers.size());
      buffers.push_back({.lower = from, .upper = static_cast<std::int64_t>(block.until), .size = block.size});
      offsets.push_back(block.offset);
    }
    if (height_of(buffers, offsets) != plan.height) fail("the blocks do not end at the plan's height");
    if (const std::string flaw = flaw_of(buffers, offsets); !flaw.empty()) fail(flaw);
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t begin_ = 0;  ///< of the last line
  std::size_t next_ = 0;
  std::size_t line_ = 0;
};

}  // namespace

std::vector<Buffer> buffers_of(const std::vector<RecordedRequest>& recording) {
  std::vector<Buffer> buffers;
  buffers.reserve(recording.size());
  for (const RecordedRequest& request : recording) {
    if (request.bytes >= kMaxBytes) throw ValueError("a request of 2^62 bytes or more cannot be planned");
    buffers.push_back({.lower = static_cast<std::int64_t>(buffers.size()),
                       .upper = static_cast<std::int64_t>(request.until),
                       .size = align_up(request.bytes, kPlanGranule),
                       .alignment = std::max(request.alignment, kPlanGranule)});
  }
  return buffers;
}

Plan plan_of(std::string name, const std::vector<RecordedRequest>& recording, const PackResult& result) {
  Plan plan{.name = std::move(name), .height = result.height, .lower_bound = result.lower_bound};
  plan.blocks.reserve(recording.size());
  for (std::size_t i = 0; i < recording.size(); ++i) {
    plan.blocks.push_back({.bytes = recording[i].bytes,
                           .stream = recording[i].stream,
                           .purpose = recording[i].purpose,
                           .offset = result.offsets[i],
                           .size = align_up(recording[i].bytes, kPlanGranule),
                           .until = recording[i].until});
  }
  return plan;
}

std::string text_of(const Plan& plan) {
  std::string name = plan.name;
  std::ranges::replace(name, '\n', ' ');
  std::string text(kMagic);
  text.append(" ").append(kVersion);
  text.append("\nname ").append(name);
  text.append("\nblocks ").append(std::to_string(plan.blocks.size()));
  text.append("\nheight ").append(std::to_string(plan.height));
  text.append("\nlower_bound ").append(std::to_string(plan.lower_bound)).append("\n").append(kColumns);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const PlannedBlock& block = plan.blocks[i];
    text.append(block.purpose ? name_of(*block.purpose) : "-");
    for (const std::uint64_t number : {std::uint64_t{block.stream}, block.bytes, block.offset, block.size,
                                       static_cast<std::uint64_t>(i), block.until})
      text.append(" ").append(std::to_string(number));
    text.append("\n");
  }
  const std::string sum = checksum_of(text);
  return text.append("checksum ").append(sum).append("\n");
}

Plan parse_plan(std::string_view text, const std::string& name) { return PlanReader(text, name).read(); }

Plan read_plan(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw ConfigError(path + ": there is no such plan" + nearest_file_hint(path) +
                      "; `tenon plan HISTORY -o FILE` makes one");
  return parse_plan(text_of_file(path), path);
}

}  // namespace tenon::packing
