// The verbs and options of the program as plain data, from the one table that also parses them: what completion and the
// manual pages are made of.
#pragma once

#include <tenon/cli/verb.h>

#include <string>
#include <vector>

namespace tenon::cli {

/// What stands behind an option, for completion.
enum class ValueKind { kNone, kFile, kFolder, kAllocator, kWords, kText };

struct OptionFacts {
  std::vector<std::string> names;  ///< with their dashes; of a positional its one name
  std::string value;               ///< "FILE"; empty for a flag
  std::string help;
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> words;  ///< of kWords
  bool is_positional = false;
  bool is_required = false;
  bool is_repeated = false;
};

struct VerbFacts {
  std::string name;  ///< "info"
  std::string path;  ///< "tenon trace info"
  std::string help;
  std::string footer;
  std::vector<OptionFacts> options;  ///< positionals too
  std::vector<VerbFacts> verbs;
};

/// Without what the help hides.
VerbFacts facts_of(Verb verb);

/// The words that an option takes.
void set_words(const CLI::Option* option, std::vector<std::string> words);

}  // namespace tenon::cli
