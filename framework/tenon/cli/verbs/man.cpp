// `tenon man`: manual pages, which an installation has as tenon(1), tenon-replay(1) …
#include <tenon/cli/manual/man_page.h>
#include <tenon/cli/manual/mistyped.h>
#include <tenon/cli/verb.h>

#include <tenon/runtime/environment.h>

#include <memory>

namespace tenon::cli {

void add_man(Verb program, Outcome&) {
  auto words = std::make_shared<std::vector<std::string>>();
  const Verb verb = program.add_verb("man", "print a manual page in roff: tenon man replay | man -l -");
  verb.add_option("verb", *words, "the verb; default: the program").type_name("VERB");
  verb.footer(example("tenon man replay > tenon-replay.1"));
  verb.callback([words, program] {
    if (const std::string problem = unknown_verb(facts_of(program), *words); !problem.empty())
      throw ConfigError(problem);
    print_exactly(man_page(facts_of(program.below(*words)), environment().version));
  });
}

}  // namespace tenon::cli
