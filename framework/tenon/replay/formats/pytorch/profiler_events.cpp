// The SAX handler that picks memory events out of a Chrome trace.
#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/pytorch/profiler_events.h>
#include <tenon/replay/trace/id_map.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

namespace tenon::replay {

namespace {

using Json = nlohmann::json;
constexpr std::int64_t kMaxTime = std::numeric_limits<std::int64_t>::max() / 1000 - 1;  // microseconds

/// The parser's view of the file: one byte after the other.
class ByteIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  ByteIterator() = default;
  explicit ByteIterator(InputFile& input) : input_(&input) {}
  char operator*() const { return static_cast<char>(input_->peek()); }
  ByteIterator& operator++() {
    input_->consume(1);
    return *this;
  }
  bool operator==(const ByteIterator& other) const { return at_end() == other.at_end(); }
  bool operator!=(const ByteIterator& other) const { return !(*this == other); }

 private:
  bool at_end() const { return input_ == nullptr || input_->peek() < 0; }
  InputFile* input_ = nullptr;
};

/// A time stamp in microseconds as nanoseconds. Since 2.3 the profiler writes three decimals below a number of sixteen
/// digits, more than a double holds: events would change places. Empty for what is not a plain number.
std::optional<std::int64_t> nanoseconds(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  auto [next, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc() || whole > kMaxTime) return std::nullopt;
  std::int64_t rest = 0;
  if (next != end && *next == '.') {
    ++next;
    for (const int place : {100, 10, 1}) {
      if (next == end || *next < '0' || *next > '9') break;
      rest += (*next++ - '0') * place;
    }
    while (next != end && *next >= '0' && *next <= '9') ++next;
  }
  if (next != end) return std::nullopt;
  return is_negative ? -(whole * 1000 + rest) : whole * 1000 + rest;
}

/// Collects the memory events; everything else of the file passes by.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(InputFile& input) : input_(input) {}

  ProfilerEvents found;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t number) override {
    if (wanted() == Field::kAddress) address(static_cast<std::uint64_t>(number));
    return number_value(number);
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (wanted() == Field::kAddress) address(number);
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return number_value(std::nullopt);
    return number_value(static_cast<std::int64_t>(number));
  }
  bool number_float(number_float_t number, const string_t& text) override {
    if (wanted() == Field::kTime) {
      const auto exact = nanoseconds(text);
      has_bad_time_ = !exact && !(std::abs(number) < 9e15);
      if (!has_bad_time_) current_.time = exact ? *exact : static_cast<std::int64_t>(number * 1000);
      return true;
    }
    // Tools that rewrite a trace write whole numbers as 1.4e+14.
    const bool is_whole = std::abs(number) < 9007199254740992.0 && std::trunc(number) == number;
    if (is_whole && wanted() == Field::kAddress) address(static_cast<std::uint64_t>(number));
    return number_value(is_whole ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt);
  }
  bool string(string_t& text) override {
    if (is_in_event() && depth_ == event_depth_ && key_ == "name") {
      is_memory_ = text == "[memory]";
      is_out_of_memory_ = text == "[OutOfMemory]";
      if (text.starts_with("ProfilerStep#")) step_name_ = text;
    }
    // Of a step on a GPU the profiler writes a second one, of when its kernels ran there.
    if (is_in_event() && depth_ == event_depth_ && key_ == "cat") is_on_gpu_ = text == "gpu_user_annotation";
    if (wanted() == Field::kAddress) {
      const bool is_hex = text.starts_with("0x");
      const char* const end = text.data() + text.size();
      std::uint64_t number = 0;
      const auto [next, error] = std::from_chars(text.data() + (is_hex ? 2 : 0), end, number, is_hex ? 16 : 10);
      if (error != std::errc() || next != end)
        input_.fail_at(input_.position(),
                       "expected an address as \"Addr\" of an event, not \"" + text.substr(0, 40) + "\"");
      address(number);
    }
    if (wanted() == Field::kTime) {
      const auto exact = nanoseconds(text);
      has_bad_time_ = !exact;
      current_.time = exact.value_or(0);
    }
    return value();
  }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override {
    ++depth_;
    if (event_depth_ == 0 && !lists_.empty() && lists_.back() == depth_ - 1) {
      event_depth_ = depth_;
      current_ = {};
      has_bytes_ = has_address_ = has_bad_time_ = is_memory_ = is_out_of_memory_ = is_on_gpu_ = false;
      step_name_.clear();
    } else if (is_in_event() && depth_ == event_depth_ + 1) {
      is_args_ = key_ == "args";
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_ + 1) is_args_ = false;
    if (depth_ == event_depth_) {
      finish_event();
      event_depth_ = 0;
    }
    --depth_;
    return value();
  }
  // Events are the objects of the list "traceEvents", or of a list that is the whole file.
  bool start_array(std::size_t) override {
    ++depth_;
    if (event_depth_ == 0 && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) lists_.push_back(depth_);
    return true;
  }
  bool end_array() override {
    if (!lists_.empty() && lists_.back() == depth_) lists_.pop_back();
    --depth_;
    return value();
  }
  bool key(string_t& name) override {
    if (depth_ <= 1 || (is_in_event() && depth_ <= event_depth_ + 1)) key_ = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const Json::exception& error) override {
    static_cast<void>(token);
    std::string reason = error.what();
    if (const std::size_t from = reason.find("parse error"); from != std::string::npos) {
      reason.erase(0, from);
    } else if (const std::size_t name = reason.find("] "); reason.starts_with('[') && name != std::string::npos) {
      reason.erase(0, name + 2);  // the library's name for the mistake
    }
    input_.fail_at(position == 0 ? 0 : position - 1, "invalid JSON: " + reason.substr(0, 300));
  }

 private:
  enum class Field { kNone, kTime, kAddress, kBytes, kTotal, kReserved, kDeviceType, kDeviceId };

  bool is_in_event() const { return event_depth_ != 0; }
  Field wanted() const {
    if (!is_in_event()) return Field::kNone;
    if (depth_ == event_depth_) return key_ == "ts" ? Field::kTime : Field::kNone;
    if (!is_args_ || depth_ != event_depth_ + 1) return Field::kNone;
    if (key_ == "Addr") return Field::kAddress;
    if (key_ == "Bytes") return Field::kBytes;
    if (key_ == "Total Allocated") return Field::kTotal;
    if (key_ == "Total Reserved") return Field::kReserved;
    if (key_ == "Device Type") return Field::kDeviceType;
    if (key_ == "Device Id") return Field::kDeviceId;
    return Field::kNone;
  }
  bool value() { return true; }
  void address(std::uint64_t number) {
    current_.address = number;
    has_address_ = true;
  }
  /// Empty: no integer of 64 bits.
  bool number_value(std::optional<std::int64_t> whole) {
    const Field field = wanted();
    switch (field) {
      case Field::kNone:
      case Field::kAddress:
        break;
      case Field::kTime:
        has_bad_time_ = !whole || *whole > kMaxTime || *whole < -kMaxTime;
        current_.time = has_bad_time_ ? 0 : *whole * 1000;
        break;
      case Field::kBytes:
        current_.bytes = whole.value_or(0);
        has_bytes_ = whole.has_value();
        break;
      case Field::kTotal:
        current_.total_allocated = whole.value_or(-1);
        break;
      case Field::kReserved:
        current_.total_reserved = whole.value_or(-1);
        break;
      case Field::kDeviceType:
        current_.device_type = static_cast<std::int32_t>(std::clamp<std::int64_t>(whole.value_or(0), -1, 1 << 20));
        break;
      case Field::kDeviceId:
        current_.device_index = static_cast<std::int32_t>(std::clamp<std::int64_t>(whole.value_or(0), -1, 1 << 20));
        break;
    }
    return true;
  }
  void finish_event() {
    if (!step_name_.empty() && !is_on_gpu_ && !has_bad_time_) found.steps.push_back({current_.time, step_name_});
    if (is_out_of_memory_ && has_bytes_ && !has_bad_time_ && current_.bytes > 0) found.failures.push_back(current_);
    if (!is_memory_) return;
    if (!has_bytes_)
      input_.fail_at(input_.position(),
                     "a [memory] event without \"Bytes\", or with something else than an integer of 64 bits there");
    if (has_bad_time_) input_.fail_at(input_.position(), "\"ts\" of a [memory] event is not a time, or out of range");
    if (current_.bytes == std::numeric_limits<std::int64_t>::min() ||
        static_cast<std::uint64_t>(std::abs(current_.bytes)) > kMaxBlockBytes) {
      input_.fail_at(input_.position(),
                     "\"Bytes\" of a [memory] event is out of range: " + std::to_string(current_.bytes));
    }
    if (current_.address >= IdMap::kErased)
      input_.fail_at(input_.position(), "\"Addr\" of a [memory] event is out of range");
    if (current_.bytes != 0 && !has_address_) {
      input_.fail_at(
          input_.position(),
          "a [memory] event without \"Addr\": allocations and frees cannot be paired (PyTorch writes addresses "
          "from 1.11 on)");
    }
    if (current_.bytes != 0) found.memory.push_back(current_);
  }

  InputFile& input_;
  std::size_t depth_ = 0;
  std::size_t event_depth_ = 0;
  std::vector<std::size_t> lists_;
  std::string key_;
  ProfilerMemoryEvent current_;
  std::string step_name_;
  bool is_args_ = false;
  bool is_memory_ = false;
  bool is_out_of_memory_ = false;
  bool is_on_gpu_ = false;
  bool has_bytes_ = false;
  bool has_address_ = false;
  bool has_bad_time_ = false;
};

}  // namespace

ProfilerEvents read_profiler_events(InputFile& input) {
  Handler handler(input);
  Json::sax_parse(ByteIterator(input), ByteIterator(), &handler);
  return std::move(handler.found);
}

}  // namespace tenon::replay
