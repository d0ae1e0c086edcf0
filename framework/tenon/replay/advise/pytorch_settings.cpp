// The table of settings.
#include <tenon/core/units.h>
#include <tenon/replay/advise/pytorch_settings.h>

#include <algorithm>
#include <charconv>

namespace tenon::replay {

std::span<const PytorchSetting> pytorch_settings() {
  static const auto* settings = new std::vector<PytorchSetting>{
      {.key = kExpandableSegments, .searched = {"True"}, .tried = {"True"}},
      // With expandable segments memory grows without bound: free runs above the limit are refused to smaller requests
      // (PyTorch issue 123548).
      {.key = "max_split_size_mb",
       .searched = {"32", "64", "128", "256", "512", "1024", "2048", "4096"},
       .tried = {"32", "64", "128", "256", "512"},
       .limits_blocks = true,
       .suits_expandable = false},
      {.key = "roundup_power2_divisions", .searched = {"2", "4", "8", "16", "32", "64"}, .tried = {"8"}},
      {.key = "large_segment_size_mb", .searched = {"12", "16", "32", "64", "128", "256"}, .tried = {}},
      {.key = "max_non_split_rounding_mb",
       .searched = {"32", "64", "128", "256", "512", "1024", "2048", "4096"},
       .tried = {},
       .limits_blocks = true},
      // It gives back no expandable segment.
      {.key = "garbage_collection_threshold", .searched = {}, .tried = {"0.8"}, .suits_expandable = false}};
  return *settings;
}

const PytorchSetting* find_pytorch_setting(std::string_view key) {
  const auto found = std::ranges::find(pytorch_settings(), key, &PytorchSetting::key);
  return found == pytorch_settings().end() ? nullptr : &*found;
}

std::vector<std::string> settings_to_try(std::uint64_t max_request_bytes) {
  std::vector<std::string> settings;
  for (const PytorchSetting& setting : pytorch_settings()) {
    for (const std::string_view value : setting.tried) {
      std::uint64_t mebibytes = 0;
      std::from_chars(value.data(), value.data() + value.size(), mebibytes);
      if (!setting.limits_blocks || mebibytes * MiB < max_request_bytes)
        settings.push_back(std::string(setting.key) + ":" + std::string(value));
    }
  }
  return settings;
}

std::string_view key_of(std::string_view setting) { return setting.substr(0, setting.find(':')); }

}  // namespace tenon::replay
