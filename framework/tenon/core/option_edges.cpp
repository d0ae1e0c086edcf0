// Edges, option by option.
#include <tenon/core/option_edges.h>

namespace tenon {

std::vector<OptionEdge> option_edges(const OptionSchema& schema) {
  std::vector<OptionEdge> edges;
  for (const OptionSpec& option : schema) {
    const auto add = [&](const OptionValue& value) {
      Options options({option});
      options.set(option.name, value);
      if (!options.is_default(option.name)) edges.push_back({option.name, value});
    };
    if (option.type == OptionType::kBoolean) add(!std::get<bool>(option.default_value));
    if (option.minimum) add(*option.minimum);
    if (option.maximum) add(*option.maximum);
    for (const std::string& word : option.choices) add(word);
  }
  return edges;
}

}  // namespace tenon
