// Settings taken apart, tried one by one, and made into options.
#include <tenon/core/error.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <utility>

namespace tenon {

std::vector<std::string> conf_settings(std::string_view conf) {
  std::vector<std::string> settings;
  std::string item;
  int depth = 0;
  const auto end_item = [&] {
    if (!item.empty()) settings.push_back(item.find(':') == std::string::npos ? item + ":" : item);
    item.clear();
  };
  for (const char c : conf) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0) {
      end_item();
    } else if (c != ' ') {
      item.push_back(c);
    }
  }
  end_item();
  return settings;
}

bool add_if_valid(std::string& conf, const std::string& setting) {
  std::string longer = conf + (conf.empty() ? "" : ",") + setting;
  try {
    static_cast<void>(parse_pytorch_conf(longer));
  } catch (const Error&) {
    return false;
  }
  conf = std::move(longer);
  return true;
}

std::string valid_part(std::string_view conf, std::vector<std::string>* dropped) {
  std::string valid;
  for (const std::string& setting : conf_settings(conf)) {
    if (!add_if_valid(valid, setting) && dropped != nullptr) dropped->push_back(setting);
  }
  return valid;
}

StackConfig policy_of_conf(const PytorchConf& conf) {
  StackConfig config;
  config.policy = find_allocator(conf.allocator);
  config.options = Options(config.policy.options);
  for (const auto& [name, value] : conf.options) config.options.set_text(name, value);
  return config;
}

StackConfig policy_of_conf(std::string_view conf) { return policy_of_conf(parse_pytorch_conf(conf)); }

std::string conf_of_policy(const StackConfig& policy) {
  if (!policy.policy.traits.pytorch_conf) return {};
  std::string conf = *policy.policy.traits.pytorch_conf;
  for (const auto& [name, value] : policy.options.entries(true))
    add_if_valid(conf, setting_of_option(name, value));  // not those that are ours alone
  return conf;
}

}  // namespace tenon
