// Gates and their sentences, one line each.
#include <tenon/cli/gate_sentences.h>
#include <tenon/cli/terminal/print.h>

namespace tenon::cli {

bool say_trips(const std::vector<std::vector<std::string>>& sentences_of_gates) {
  bool is_tripped = false;
  for (const std::vector<std::string>& sentences : sentences_of_gates) {
    for (const std::string& sentence : sentences) say(sentence);
    is_tripped |= !sentences.empty();
  }
  return is_tripped;
}

}  // namespace tenon::cli
