// `tenon help VERB`: the same as `tenon VERB --help`.
#include <tenon/cli/manual/help_text.h>
#include <tenon/cli/manual/mistyped.h>
#include <tenon/cli/verb.h>

#include <memory>

namespace tenon::cli {

void add_help(Verb program, Outcome&) {
  auto words = std::make_shared<std::vector<std::string>>();
  const Verb verb = program.add_verb("help", "show what a verb does, and its options");
  verb.add_option("verb", *words, "the verb, as in: tenon help trace info; default: the program").type_name("VERB");
  verb.footer(example("tenon help replay"));
  verb.callback([words, program] {
    if (const std::string problem = unknown_verb(facts_of(program), *words); !problem.empty())
      throw ConfigError(problem);
    print_exactly(help_text(program.below(*words), output_screen().columns));
  });
}

}  // namespace tenon::cli
