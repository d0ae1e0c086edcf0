// Words as values: kReLU, kMean, kBilinear … Each is a type of its own, so that an option takes one of the words that
// make sense for it and anything else does not compile (libtorch: torch::enumtype).
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>
#include <type_traits>

#define TENON_FOR_EACH_WORD(X) \
  X(Linear)                    \
  X(Conv1D)                    \
  X(Conv2D)                    \
  X(Conv3D)                    \
  X(ConvTranspose1D)           \
  X(ConvTranspose2D)           \
  X(ConvTranspose3D)           \
  X(Sigmoid)                   \
  X(Tanh)                      \
  X(ReLU)                      \
  X(GELU)                      \
  X(SiLU)                      \
  X(Mish)                      \
  X(LeakyReLU)                 \
  X(FanIn)                     \
  X(FanOut)                    \
  X(Constant)                  \
  X(Reflect)                   \
  X(Replicate)                 \
  X(Circular)                  \
  X(Nearest)                   \
  X(Bilinear)                  \
  X(Bicubic)                   \
  X(Trilinear)                 \
  X(Area)                      \
  X(NearestExact)              \
  X(Sum)                       \
  X(Mean)                      \
  X(Max)                       \
  X(None)                      \
  X(BatchMean)                 \
  X(Zeros)                     \
  X(Border)                    \
  X(Reflection)                \
  X(RNN_TANH)                  \
  X(RNN_RELU)                  \
  X(LSTM)                      \
  X(GRU)                       \
  X(Valid)                     \
  X(Same)

namespace tenon::enumtype {

/// Which word it is.
enum class Id : std::uint8_t {
#define TENON_WORD(name) k##name,
  TENON_FOR_EACH_WORD(TENON_WORD)
#undef TENON_WORD
};

#define TENON_WORD(name)                  \
  struct k##name {                        \
    constexpr k##name() = default;        \
    static constexpr Id id = Id::k##name; \
  };
TENON_FOR_EACH_WORD(TENON_WORD)
#undef TENON_WORD

/// Note [Words are no variants]: a std::variant of empty words is a megabyte and a half of a compiler's memory, and
/// twenty of them are in every include of tenon.h. This is what options need of one: made of any of its words and of a
/// choice among some of them; a word that is not among them does not compile. The first word is its default.
template <class... Words>
class OneOf {
 public:
  constexpr OneOf() = default;
  template <class Word>
  requires(std::is_same_v<Word, Words> || ...) constexpr OneOf(Word) : id_(Word::id) {}  // NOLINT: as a variant
  template <class... Fewer>
  constexpr OneOf(const OneOf<Fewer...>& other) : id_(other.id()) {  // NOLINT
    static_assert((allows<Fewer>() && ...), "a word that this option does not take");
  }

  /// Whether it is this word, one of those it can be.
  template <class Word>
  requires(std::is_same_v<Word, Words> || ...) constexpr bool is() const { return id_ == Word::id; }
  /// The word that it is.
  constexpr Id id() const { return id_; }
  friend constexpr bool operator==(OneOf a, OneOf b) { return a.id_ == b.id_; }

 private:
  template <class Word>
  static constexpr bool allows() {
    return (std::is_same_v<Word, Words> || ...);
  }
  template <class First, class...>
  static constexpr Id first() {
    return First::id;
  }
  Id id_ = first<Words...>();
};

/// "kMean" for kMean. Throws Error for a number that stands for no word.
TENON_API std::string name_of(Id word);
/// The constants of at::Reduction: 0 none, 1 mean, 2 sum. Throws Error for a word that is not a reduction ("kBatchMean"
/// counts as a sum: the caller divides).
TENON_API std::int64_t reduction_of(Id word);

/// See name_of().
template <class... Words>
std::string get_enum_name(const OneOf<Words...>& word) {
  return name_of(word.id());
}
/// Of a program's own std::variant of words, as libtorch's options are.
template <template <class...> class Variant, class... Words>
requires requires(const Variant<Words...>& word) { word.index(); }
std::string get_enum_name(const Variant<Words...>& word) {
  constexpr Id ids[] = {Words::id...};
  return name_of(ids[word.index()]);
}
/// See reduction_of().
template <class... Words>
std::int64_t reduction_get_enum(const OneOf<Words...>& word) {
  return reduction_of(word.id());
}

}  // namespace tenon::enumtype

namespace tenon {

#define TENON_WORD(name) inline constexpr enumtype::k##name k##name{};
TENON_FOR_EACH_WORD(TENON_WORD)
#undef TENON_WORD

using LossReductionWord = enumtype::OneOf<enumtype::kNone, enumtype::kMean, enumtype::kSum>;

}  // namespace tenon
