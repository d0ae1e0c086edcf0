// From specs, strings of PyTorch and files to policies.
#include <tenon/cli/replay_policies.h>

#include <tenon/cli/sections.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/core/error.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

namespace tenon::cli {

namespace {

/// What an allocator says of options that do not go together is the user's mistake, not the replay's result.
void check_options(const StackConfig& config) {
  if (config.options.spec().empty()) return;
  AddressOnlySource device;
  try {
    config.policy.create({.source = device, .options = config.options});
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("allocator \"{}:{}\": {}", config.policy.name, config.options.spec(), error.what()));
  } catch (const std::exception&) {  // told by the row
  }
}

}  // namespace

std::vector<std::string> unnamed_allocators(bool quiet) {
  for (const PluginProblem& problem : load_all_plugins()) {
    if (!quiet) say(fmt::format("tenon: left out: {}", problem.problem));
  }
  std::vector<std::string> names = default_allocators();
  if (names.empty())
    throw PluginError("no allocator plugin was found; name one with --allocator, or set TENON_PLUGIN_PATH");
  return names;
}

std::vector<NamedPolicy> choose_policies(const PolicyChoice& choice, bool quiet) {
  std::vector<NamedPolicy> policies;
  if (!choice.config.empty()) {
    StackConfig config = Config::load(experiment_request(choice.config, {})).experiment().allocator;
    std::string label = config.policy.name;
    if (const std::string spec = config.options.spec(); !spec.empty()) label += ":" + spec;
    policies.push_back({std::move(config), std::move(label)});
  }
  for (const std::string& spec : choice.allocators) policies.push_back({allocator_from_spec(spec), spec});
  for (const std::string& line : choice.pytorch_confs) {
    const std::string text = conf_of_line(line);
    const PytorchConf conf = parse_pytorch_conf(text);
    if (!conf.ignored.empty() && !quiet)
      say(fmt::format("tenon: of \"{}\", {} {} nothing in a replay", text, fmt::join(conf.ignored, ", "),
                      conf.ignored.size() == 1 ? "changes" : "change"));
    policies.push_back({policy_of_conf(conf), text.empty() ? conf.allocator : text});
  }
  for (const NamedPolicy& policy : policies) check_options(policy.config);
  if (!policies.empty()) return policies;
  for (const std::string& name : unnamed_allocators(quiet)) policies.push_back({allocator_from_spec(name), name});
  return policies;
}

}  // namespace tenon::cli
