// The settings of PyTorch's allocator that are worth trying, in one table: `tenon tune` searches their values, and
// where memory ran out `tenon doctor` tries the few that most often help.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

struct PytorchSetting {
  std::string_view key;
  std::vector<std::string_view> searched;  ///< besides its default; none: no search tries it
  std::vector<std::string_view> tried;     ///< where memory ran out
  bool limits_blocks = false;              ///< values are mebibytes, and matter where some request is as large
  /// Whether it does no harm to expandable segments.
  bool suits_expandable = true;
};

/// In the order in which they are tried.
std::span<const PytorchSetting> pytorch_settings();
/// Null for a key that is not in the table.
const PytorchSetting* find_pytorch_setting(std::string_view key);

/// "max_split_size_mb:128" and the others to try where memory ran out in a history whose largest request that is.
std::vector<std::string> settings_to_try(std::uint64_t max_request_bytes);

/// "max_split_size_mb" of "max_split_size_mb:128".
std::string_view key_of(std::string_view setting);

/// The setting that turns expandable segments on.
inline constexpr std::string_view kExpandableSegments = "expandable_segments";
inline constexpr std::string_view kExpandableSetting = "expandable_segments:True";

}  // namespace tenon::replay
