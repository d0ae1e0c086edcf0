// What a run can record of its memory: the words of `--record` and of [report] record, and the names of the files.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

enum class RecordingKind : std::uint8_t {
  kEvents,   ///< written while the run goes on, whole up to the last step
  kPicture,  ///< written at the end, from the device's history
  kSeries,   ///< figures after each step
};

struct Recording {
  std::string_view word;
  std::string_view file;  ///< in the run's folder
  RecordingKind kind;
  bool is_read = false;     ///< others can be made of it
  bool has_stacks = false;  ///< call stacks; where it is not read itself, it is of nothing else
};

inline constexpr std::array<Recording, 6> kRecordings = {{
    {.word = "trace", .file = "memory.tenon", .kind = RecordingKind::kEvents, .is_read = true},
    {.word = "text", .file = "memory.trace.gz", .kind = RecordingKind::kEvents, .is_read = true},
    {.word = "snapshot", .file = "memory.pickle", .kind = RecordingKind::kPicture, .is_read = true, .has_stacks = true},
    {.word = "chrome", .file = "memory.chrome.json", .kind = RecordingKind::kPicture},
    {.word = "folded", .file = "memory.folded", .kind = RecordingKind::kPicture, .has_stacks = true},
    {.word = "tensorboard", .file = "tensorboard", .kind = RecordingKind::kSeries},
}};

/// Null where no recording has that name.
constexpr const Recording* find_recording_of_file(std::string_view file) {
  const auto found = std::ranges::find(kRecordings, file, &Recording::file);
  return found == kRecordings.end() ? nullptr : &*found;
}

/// The word for all of them.
inline constexpr std::string_view kAllRecordings = "all";

/// "trace, text, snapshot", and with their files "trace (memory.tenon), …" where those have other names.
inline std::string recording_words(bool with_files = false) {
  std::string words;
  for (const Recording& recording : kRecordings) {
    words.append(words.empty() ? "" : ", ").append(recording.word);
    if (with_files && recording.file != recording.word) words.append(" (").append(recording.file).append(")");
  }
  return words;
}

}  // namespace tenon
