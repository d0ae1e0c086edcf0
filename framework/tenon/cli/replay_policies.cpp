// From specs, strings of PyTorch and files to policies.
#include <tenon/cli/replay_policies.h>

#include <tenon/cli/sections.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/core/error.h>
#include <tenon/core/files/write_all.h>
#include <tenon/core/process/child_process.h>
#include <tenon/core/process/waited_time.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/plugins/plugins.h>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include <csignal>

namespace tenon::cli {

namespace {

constexpr double kConstructorSeconds = 2;

/// In a child, which ends without destroying what it made: whatever else goes wrong is told by the row.
void answer_with_refusal(const StackConfig& config, int answer_to) {
  leave_no_core_file();
  ::close(STDERR_FILENO);  // of std::terminate
  static AddressOnlySource device;
  try {
    static_cast<void>(config.policy.create({.source = device, .options = config.options}).release());
  } catch (const ConfigError& error) {
    write_all(answer_to, error.what());
  } catch (...) {  // told by the row
  }
}

/// What an allocator says of options that do not go together is the user's mistake, not the replay's result. Its
/// constructor may crash or hang: it is tried in a process of its own.
void check_options(const StackConfig& config) {
  if (config.options.spec().empty()) return;
  const ChildProcess child =
      fork_to_answer("the options of an allocator", [&](int answer_to) { answer_with_refusal(config, answer_to); });
  std::string refusal;
  pollfd wait{child.answer, POLLIN, 0};
  for (WaitedTime waited; !take_answer(child, refusal) && waited.seconds() < kConstructorSeconds; waited.lap())
    ::poll(&wait, 1, WaitedTime::kTickMilliseconds);
  ::kill(child.pid, SIGKILL);  // one that hangs
  wait_for_end(child.pid);
  ::close(child.answer);
  if (!refusal.empty())
    throw ConfigError(fmt::format("\"{}:{}\": {}", config.policy.name, config.options.spec(), refusal));
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
