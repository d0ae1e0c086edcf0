// What the decoders of a snapshot's parts share: the pickle, places in messages, and the budget that keeps a small file
// from becoming a large one.
#pragma once

#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/pytorch/pickle/pickle.h>
#include <tenon/replay/formats/pytorch/snapshot_file.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::replay {

/// What the name of a mark begins with where it is the END of an annotation.
inline constexpr std::string_view kEndOfAnnotation = "end of ";

class SnapshotFields {
 public:
  static constexpr std::uint64_t kMaxKeys = 256;  ///< of one entry, block or segment
  static constexpr std::int64_t kMaxDevices = 4096;

  explicit SnapshotFields(InputFile& input) : pickle(input), input_(input), budget_(pickle.word_count() + 1000) {}

  /// Throws TraceError: "file: place: reason".
  [[noreturn]] void fail(const std::string& place, const std::string& reason) const;
  /// "place[3]".
  static std::string at(const std::string& place, std::uint64_t index);
  /// Counts what is read of lists: a file may name one list as often as it likes.
  void spend(std::uint64_t count);

  /// An integer from 0 to `limit`; `key` is for the message.
  std::uint64_t number(PickleValue value, const char* key, const std::string& place, std::uint64_t limit) const;
  /// Stream handles are pointers; some writers print them signed.
  StreamRef stream(PickleValue value, const std::string& place) const;
  /// A dict with no more keys than a part of a snapshot has.
  bool is_small_dict(PickleValue value) const { return Pickle::is_dict(value) && pickle.size(value) <= kMaxKeys; }

  Pickle pickle;

 private:
  InputFile& input_;
  std::uint64_t budget_;
};

}  // namespace tenon::replay
