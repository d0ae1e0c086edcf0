// PyTorch's configuration string (PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF): its grammar and checks, and what it
// means in Tenon's terms.
//
// It stands here and not beside the readers of PyTorch's files because the caching allocator reads its option
// roundup_power2_divisions by the same grammar, and an allocator sees only core, memory and plugin.
#pragma once

#include <tenon/core/export.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// Whose rules a string is read by: they differ in lexing, limits and known keys.
enum class PytorchRelease { k1_13, kCurrent };

/// The allocators of ours that stand for PyTorch's: its native one, and the same with expandable segments.
inline constexpr std::string_view kNativeAllocator = "caching";
inline constexpr std::string_view kExpandableAllocator = "expandable";

/// "expandable_segments:True,roundup_power2_divisions:8" as an allocator and options of ours.
struct PytorchConf {
  std::string allocator{kNativeAllocator};                   ///< or kExpandableAllocator
  std::vector<std::pair<std::string, std::string>> options;  ///< for Options::set_text, in our spelling
  std::vector<std::string> ignored;                          ///< keys that PyTorch knows and that have no meaning here
};

/// Throws ConfigError with PyTorch's own message where it would refuse the string, quoting the string.
TENON_API PytorchConf parse_pytorch_conf(std::string_view text, PytorchRelease release = PytorchRelease::kCurrent);

/// The way back: an option of those allocators as PyTorch spells it, "max_split_size_mb:128" of max_split_size and
/// "128MiB". Of an option that is ours alone the result is one that PyTorch refuses.
TENON_API std::string setting_of_option(std::string_view name, std::string_view value);

/// The string in a line as a shell takes it, `export PYTORCH_ALLOC_CONF="a:1"   # remark`; any other text is given back
/// as it is.
TENON_API std::string conf_of_line(std::string_view line);

/// The value of roundup_power2_divisions as PyTorch's table: [i] governs requests in [2^(20+i), 2^(21+i)) bytes, the
/// first also everything below and the last everything above. "8", "[256:1,512:2,1024:4,>:8]"; "0" and "" are all
/// zeros.
TENON_API std::array<std::uint32_t, 16> parse_roundup_divisions(std::string_view text);

}  // namespace tenon
