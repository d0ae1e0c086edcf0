// The screen that text is shown on: how wide it is, and whether it has colours.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon {

/// The default is a file or a pipe: any width, no colours.
struct Screen {
  std::size_t columns = 0;  ///< 0: any width
  bool has_colour = false;
};

/// What standard output is: `render` fits tables to it. A program says it once, before it prints; without that it is
/// any width without colours.
TENON_API const Screen& output_screen();
TENON_API void set_output_screen(const Screen& screen);

/// What a word says, for its colour.
enum class Tone : unsigned char { kPlain, kTitle, kFaint, kGood, kWarning, kBad };

/// The text with the escapes for its tone; as it is where the screen has no colours.
TENON_API std::string toned(std::string_view text, Tone tone, const Screen& screen);

}  // namespace tenon
