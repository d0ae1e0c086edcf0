// `tenon completion`: scripts that let a shell complete verbs, options and their values.
#include <tenon/cli/manual/completion.h>
#include <tenon/cli/manual/verb_facts.h>
#include <tenon/cli/verb.h>

#include <tenon/core/error.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <memory>

namespace tenon::cli {

namespace {

void complete(Verb program, const std::string& shell) {
  if (shell == "bash") return print_exactly(bash_completion(facts_of(program)));
  if (shell == "zsh") return print_exactly(zsh_completion(facts_of(program)));
  if (shell == "fish") return print_exactly(fish_completion(facts_of(program)));
  if (shell == "allocators") {  // what the scripts ask for
    load_all_plugins();
    return print_exactly(fmt::format("{}\n", fmt::join(allocator_names(), "\n")));
  }
  throw ConfigError(fmt::format("no completion for \"{}\"; there are bash, zsh and fish", shell));
}

}  // namespace

void add_completion(Verb program, Outcome&) {
  auto shell = std::make_shared<std::string>();
  const Verb verb = program.add_verb("completion", "print a script that completes verbs and options in a shell");
  verb.add_option("shell", *shell, "bash, zsh or fish").required().type_name("SHELL").words({"bash", "zsh", "fish"});
  verb.footer(example("tenon completion bash > ~/.local/share/bash-completion/completions/tenon"));
  verb.callback([shell, program] { complete(program, *shell); });
}

}  // namespace tenon::cli
