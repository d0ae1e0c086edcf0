// torch.profiler's Chrome trace: the "[memory]" instant events, streamed through a SAX parser, paired by address in
// time order.
#include <tenon/core/units.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/trace_builder.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

namespace tenon::replay {

namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;
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

struct MemoryEvent {
  std::int64_t time = 0;  ///< nanoseconds
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t total_allocated = -1;
  std::int64_t total_reserved = -1;
  std::int32_t device_type = 0;
  std::int32_t device_index = 0;
};

struct Step {
  std::int64_t time = 0;
  std::string name;
};

/// A time stamp in microseconds as nanoseconds. Since 2.3 the profiler writes three decimals below a number of sixteen
/// digits, more than a double holds: events would change places. Empty for what is no plain number.
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

  std::vector<MemoryEvent> events;
  std::vector<Step> steps;
  std::vector<MemoryEvent> failures;  ///< requests that ran out of memory

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
    if (wanted() == Field::kAddress) {
      const bool is_hex = text.starts_with("0x");
      const char* const end = text.data() + text.size();
      std::uint64_t number = 0;
      const auto [next, error] = std::from_chars(text.data() + (is_hex ? 2 : 0), end, number, is_hex ? 16 : 10);
      if (error != std::errc() || next != end)
        input_.fail_at(input_.position(), "\"Addr\" of an event is no address: \"" + text.substr(0, 40) + "\"");
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
      has_bytes_ = has_address_ = has_bad_time_ = is_memory_ = is_out_of_memory_ = false;
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
    input_.fail_at(position == 0 ? 0 : position - 1, "no valid JSON: " + reason.substr(0, 300));
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
    if (!step_name_.empty() && !has_bad_time_) steps.push_back({current_.time, step_name_});
    if (is_out_of_memory_ && has_bytes_ && !has_bad_time_ && current_.bytes > 0) failures.push_back(current_);
    if (!is_memory_) return;
    if (!has_bytes_)
      input_.fail_at(input_.position(),
                     "a [memory] event without \"Bytes\", or with what is no integer of 64 bits there");
    if (has_bad_time_) input_.fail_at(input_.position(), "\"ts\" of a [memory] event is no time, or out of range");
    if (current_.bytes == std::numeric_limits<std::int64_t>::min() ||
        static_cast<std::uint64_t>(std::abs(current_.bytes)) > kMaxBytes) {
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
    if (current_.bytes != 0) events.push_back(current_);
  }

  InputFile& input_;
  std::size_t depth_ = 0;
  std::size_t event_depth_ = 0;
  std::vector<std::size_t> lists_;
  std::string key_;
  MemoryEvent current_;
  std::string step_name_;
  bool is_args_ = false;
  bool is_memory_ = false;
  bool is_out_of_memory_ = false;
  bool has_bytes_ = false;
  bool has_address_ = false;
  bool has_bad_time_ = false;
};

constexpr std::int32_t kCpuDeviceType = 0;  // c10::DeviceType

std::string device_name(const MemoryEvent& event) {
  if (event.device_type == kCpuDeviceType) return "cpu";
  return (event.device_type == 1 ? "cuda:" : "device" + std::to_string(event.device_type) + ":") +
         std::to_string(event.device_index);
}

Trace rebuild(const InputFile& input, std::vector<MemoryEvent> events, std::vector<MemoryEvent> failures,
              const std::vector<Step>& steps, const std::string& suffix) {
  // The profiler writes thread by thread; the list within one moment is in the order of recording.
  std::ranges::stable_sort(events, {}, &MemoryEvent::time);
  std::ranges::stable_sort(failures, {}, &MemoryEvent::time);
  TraceBuilder builder(input.path());
  Trace& trace = builder.trace();
  trace.format = "chrome";
  trace.name += suffix;
  const bool is_cpu = events.front().device_type == kCpuDeviceType;
  trace.sizes_are_rounded = is_cpu ? 0 : 512;

  // What is freed without having been allocated lived before the recording.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seeds;
  {
    IdMap is_known;
    for (const MemoryEvent& event : events) {
      if (is_known.find(event.address) != nullptr) continue;
      is_known.insert(event.address, 1);
      if (event.bytes < 0) seeds.emplace_back(event.address, static_cast<std::uint64_t>(-event.bytes));
    }
  }
  const auto check = [&](std::uint64_t bytes) {
    if (builder.would_overflow(bytes)) throw TraceError(input.path() + ": the live bytes exceed 2^62");
  };
  IdMap slots;
  std::uint64_t seeded = 0;
  for (const auto& [address, bytes] : seeds) {
    check(bytes);
    const std::uint32_t slot = builder.allocate(bytes, 0);
    slots.insert(address, slot);
    seeded += bytes;
  }
  // The running total says how much lived before in all: the rest was never freed, and its blocks are unknown.
  const MemoryEvent& first = events.front();
  if (first.total_allocated >= 0) {
    const std::int64_t before = first.total_allocated - first.bytes;
    if (before > 0 && static_cast<std::uint64_t>(before) > seeded && static_cast<std::uint64_t>(before) < kMaxBytes) {
      const std::uint64_t rest = static_cast<std::uint64_t>(before) - seeded;
      check(rest);
      builder.allocate(rest, 0);
      trace.facts.unplaced_bytes = rest;
      trace.notes.push_back(format_bytes(rest) +
                            " lived before the recording and are never freed in it: only their sum is known, put at "
                            "the start as one block");
    }
  }
  builder.recording_starts();
  if (!seeds.empty()) {
    trace.notes.push_back(std::to_string(seeds.size()) + " blocks of " + format_bytes(seeded) +
                          " lived before the recording began: known from their frees, put at the start");
  }

  RecordedAllocator recorded;
  recorded.has_device_calls = false;
  std::size_t next_step = 0;
  std::uint64_t lost = 0;
  std::uint64_t mismatches = 0;
  std::size_t next_failure = 0;
  const auto fail_before = [&](std::int64_t time) {
    for (; next_failure < failures.size() && failures[next_failure].time < time; ++next_failure) {
      const auto bytes = static_cast<std::uint64_t>(failures[next_failure].bytes);
      if (!builder.would_overflow(bytes)) builder.fail({.bytes = bytes});
    }
  };
  for (const MemoryEvent& event : events) {
    fail_before(event.time);
    while (next_step < steps.size() && steps[next_step].time <= event.time) builder.mark(steps[next_step++].name);
    if (event.bytes > 0) {
      if (const std::uint32_t* old = slots.find(event.address)) {
        builder.free(*old);
        slots.erase(event.address);
        ++lost;
      }
      check(static_cast<std::uint64_t>(event.bytes));
      slots.insert(event.address, builder.allocate(static_cast<std::uint64_t>(event.bytes), 0));
    } else if (const std::uint32_t* slot = slots.find(event.address)) {
      builder.free(*slot);
      slots.erase(event.address);
    } else {
      ++lost;
    }
    if (event.total_allocated >= 0 && static_cast<std::uint64_t>(event.total_allocated) != builder.live_bytes())
      ++mismatches;
    if (event.total_reserved > 0)
      recorded.peak_reserved_bytes =
          std::max(recorded.peak_reserved_bytes, static_cast<std::uint64_t>(event.total_reserved));
  }
  fail_before(std::numeric_limits<std::int64_t>::max());
  if (!failures.empty()) {
    trace.notes.push_back(std::to_string(failures.size()) + (failures.size() == 1 ? " request" : " requests") +
                          " ran out of memory in the recording");
  }
  if (events.back().total_reserved > 0)
    recorded.reserved_bytes = static_cast<std::uint64_t>(events.back().total_reserved);
  if (lost != 0)
    trace.notes.push_back(std::to_string(lost) +
                          " events contradict the ones before (allocated twice or freed twice) and were put right");
  if (mismatches != 0)
    trace.notes.push_back(std::to_string(mismatches) + " of " + std::to_string(events.size()) +
                          " events disagree with the recorded running total of allocated bytes");
  if (trace.sizes_are_rounded != 0)
    trace.notes.push_back("the profiler records sizes after PyTorch's rounding to 512 bytes");
  if (recorded.peak_reserved_bytes != 0) trace.recorded = std::move(recorded);
  return std::move(builder).finish();
}

}  // namespace

std::vector<Trace> read_chrome(InputFile& input) {
  Handler handler(input);
  Json::sax_parse(ByteIterator(input), ByteIterator(), &handler);
  if (handler.events.empty()) {
    throw TraceError(input.path() +
                     ": no [memory] events in this JSON; record with torch.profiler.profile(profile_memory=True)");
  }
  std::ranges::stable_sort(handler.steps, {}, &Step::time);
  std::map<std::tuple<std::int32_t, std::int32_t>, std::vector<MemoryEvent>> by_device;
  for (const MemoryEvent& event : handler.events) by_device[{event.device_type, event.device_index}].push_back(event);
  handler.events = {};
  // Host tensors are no business of a device's allocator: they count where the file holds nothing else.
  const bool has_device =
      std::ranges::any_of(by_device, [](const auto& entry) { return std::get<0>(entry.first) != kCpuDeviceType; });
  std::uint64_t left_out = 0;
  if (has_device) {
    std::erase_if(by_device, [&](const auto& entry) {
      if (std::get<0>(entry.first) != kCpuDeviceType) return false;
      left_out += entry.second.size();
      return true;
    });
  }
  const auto homeless = std::ranges::count_if(handler.failures, [&](const MemoryEvent& failure) {
    return !by_device.contains({failure.device_type, failure.device_index});
  });
  std::vector<Trace> traces;
  for (auto& [key, events] : by_device) {
    const std::string suffix = by_device.size() > 1 ? "@" + device_name(events.front()) : "";
    std::vector<MemoryEvent> failures;
    std::ranges::copy_if(handler.failures, std::back_inserter(failures), [&key = key](const MemoryEvent& failure) {
      return std::tuple(failure.device_type, failure.device_index) == key;
    });
    traces.push_back(rebuild(input, std::move(events), std::move(failures), handler.steps, suffix));
    traces.back().device = std::get<1>(key);
    if (homeless != 0) {
      traces.back().notes.push_back(std::to_string(homeless) +
                                    " requests ran out of memory on a device without history here, and are left out");
    }
    if (left_out != 0) traces.back().notes.push_back(std::to_string(left_out) + " events of host memory are left out");
  }
  return traces;
}

}  // namespace tenon::replay
