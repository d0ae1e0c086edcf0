// Lines of text histories.
#include <tenon/memory/history/text_lines.h>

#include <algorithm>
#include <charconv>

namespace tenon {

namespace {

void append_on_one_line(std::string& text, std::string_view part) {
  const auto begin = static_cast<std::ptrdiff_t>(text.size());
  text += part;
  std::replace_if(
      text.begin() + begin, text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
}

}  // namespace

void TextLines::add(std::string_view record, std::initializer_list<std::uint64_t> numbers, std::string_view before) {
  text_ += before;
  text_ += record;
  for (const std::uint64_t number : numbers) {
    char digits[20];
    text_.push_back(' ');
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  text_.push_back('\n');
}

std::string_view TextLines::comment(std::string_view text) {
  text_ = "# ";
  append_on_one_line(text_, text);
  text_.push_back('\n');
  return text_;
}

std::string_view TextLines::header(std::string_view key, std::string_view value) {
  text_ = "# ";
  append_on_one_line(text_, key);
  text_ += ": ";
  append_on_one_line(text_, value);
  text_.push_back('\n');
  return text_;
}

std::string_view TextLines::allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream) {
  text_.clear();
  add("a", {id, bytes, stream});
  return text_;
}

std::string_view TextLines::failed(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream,
                                   std::uint64_t reserved_bytes, std::uint64_t device_free_bytes) {
  text_.clear();
  add(text_marks::kFailed, {id, reserved_bytes, device_free_bytes}, "m ");
  add("a", {id, bytes, stream});
  return text_;
}

std::string_view TextLines::free(std::uint64_t id) {
  text_.clear();
  add("f", {id});
  return text_;
}

std::string_view TextLines::deferred_free(std::uint64_t id) {
  text_.clear();
  add(text_marks::kDeferred, {id}, "m ");
  add("f", {id});
  return text_;
}

std::string_view TextLines::completed(std::uint64_t id) {
  text_.clear();
  add(text_marks::kCompleted, {id}, "m ");
  return text_;
}

std::string_view TextLines::use(std::uint64_t id, std::uint64_t stream) {
  text_.clear();
  add("u", {id, stream});
  return text_;
}

std::string_view TextLines::empty_cache() { return "e\n"; }

std::string_view TextLines::mark(std::string_view name) {
  const bool has_meaning = name.starts_with("tenon:") || name == text_marks::kRecordingStarts;
  text_ = "m ";
  if (has_meaning) text_.append(text_marks::kMark).push_back(' ');
  append_on_one_line(text_, name);
  text_.push_back('\n');
  return text_;
}

std::string_view TextLines::at(std::int64_t time_us) {
  text_.clear();
  if (time_us_ == time_us) return text_;
  // Later by so much, which is short; a clock that goes back has its time written out.
  const bool is_later = time_us_ && time_us > *time_us_;
  text_.append(kTextTime).append(is_later ? " +" : " ");
  text_ += std::to_string(is_later ? time_us - *time_us_ : time_us);
  text_.push_back('\n');
  time_us_ = time_us;
  return text_;
}

std::string_view TextLines::meant_for(Purpose purpose) {
  text_.clear();
  if (purpose_ == purpose) return text_;
  text_.append(kTextPurpose).append(" ").append(name_of(purpose)).push_back('\n');
  purpose_ = purpose;
  return text_;
}

std::string_view TextLines::recording_starts() {
  text_ = "m ";
  text_ += text_marks::kRecordingStarts;
  text_.push_back('\n');
  return text_;
}

}  // namespace tenon
