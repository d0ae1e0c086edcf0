// The sentence and its commands.
#include <tenon/report/kit_advice.h>

#include <tenon/core/spec_names.h>
#include <tenon/report/text/command_line.h>

#include <algorithm>
#include <filesystem>

namespace tenon {

std::string kit_advice(const std::vector<std::string>& specs) {
  if (specs.empty()) return {};
  std::string text = "The kit names the broken promise, and the shortest history that breaks it:";
  for (auto spec = specs.begin(); spec != specs.end(); ++spec)
    if (std::find(specs.begin(), spec, *spec) == spec) text += "\n  tenon plugins test " + shell_word(*spec);
  return text;
}

std::string spec_of_file(const std::string& file, const std::string& options) {
  std::error_code ignored;
  const std::filesystem::path near = std::filesystem::proximate(file, ignored);
  const bool is_below = !near.empty() && *near.begin() != "..";
  std::string spec = is_below ? near.string() : file;
  if (!is_plugin_path(spec)) spec = "./" + spec;
  return spec_with(spec, options);
}

}  // namespace tenon
