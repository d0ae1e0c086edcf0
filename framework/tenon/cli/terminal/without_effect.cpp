// One sentence for one option or several.
#include <tenon/cli/terminal/without_effect.h>

#include <tenon/cli/terminal/print.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tenon::cli {

void say_without_effect(const std::vector<std::string>& options, std::string_view why) {
  if (options.empty()) return;
  say(fmt::format("tenon: {} {} nothing here: {}", fmt::join(options, " and "),
                  options.size() == 1 ? "changes" : "change", why));
}

}  // namespace tenon::cli
