// The screen of standard output, and tones as colours.
#include <tenon/report/text/screen.h>

#include <fmt/color.h>
#include <fmt/format.h>

namespace tenon {

namespace {

Screen& standard_output() {
  static Screen screen;
  return screen;
}

/// From the sixteen colours, which follow the terminal's own theme.
fmt::text_style style_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      break;
    case Tone::kTitle:
      return fmt::emphasis::bold;
    case Tone::kFaint:
      return fmt::emphasis::faint;
    case Tone::kGood:
      return fmt::fg(fmt::terminal_color::green);
    case Tone::kWarning:
      return fmt::fg(fmt::terminal_color::yellow);
    case Tone::kBad:
      return fmt::emphasis::bold | fmt::fg(fmt::terminal_color::red);
  }
  return {};
}

}  // namespace

const Screen& output_screen() { return standard_output(); }
void set_output_screen(const Screen& screen) { standard_output() = screen; }

std::string toned(std::string_view text, Tone tone, const Screen& screen) {
  if (!screen.has_colour || tone == Tone::kPlain || text.empty()) return std::string(text);
  return fmt::format(style_of(tone), "{}", text);
}

}  // namespace tenon
