// Names of words, and which reductions they are.
#include <tenon/nn/options/enum.h>

#include <tenon/core/error.h>

namespace tenon::enumtype {

std::string name_of(Id word) {
  switch (word) {
#define TENON_WORD(name) \
  case Id::k##name:      \
    return "k" #name;
    TENON_FOR_EACH_WORD(TENON_WORD)
#undef TENON_WORD
  }
  throw Error("not a word");
}

std::int64_t reduction_of(Id word) {
  if (word == Id::kNone) return 0;
  if (word == Id::kMean) return 1;
  if (word == Id::kSum || word == Id::kBatchMean) return 2;
  throw Error(name_of(word) + " is not a valid value for reduction");
}

}  // namespace tenon::enumtype
