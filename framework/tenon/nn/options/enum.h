// Words as values: kReLU, kMean, kBilinear … Each is a type of its own, so that an option takes a variant of the words
// that make sense for it and anything else does not compile (libtorch: torch::enumtype).
#pragma once

#include <tenon/core/error.h>

#include <cstdint>
#include <string>
#include <variant>

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

#define TENON_WORD(name)                       \
  struct k##name {                             \
    constexpr k##name() = default;             \
    static constexpr const char* text = #name; \
  };
TENON_FOR_EACH_WORD(TENON_WORD)
#undef TENON_WORD

/// "kMean" for kMean.
template <class... Words>
std::string get_enum_name(const std::variant<Words...>& word) {
  return std::visit([](const auto& w) { return std::string("k") + w.text; }, word);
}

}  // namespace tenon::enumtype

namespace tenon {

#define TENON_WORD(name) inline constexpr enumtype::k##name k##name{};
TENON_FOR_EACH_WORD(TENON_WORD)
#undef TENON_WORD

using LossReductionWord = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;

namespace enumtype {
/// The constants of at::Reduction: 0 none, 1 mean, 2 sum. Throws Error for a word that is not a reduction ("kBatchMean"
/// counts as a sum: the caller divides).
template <class... Words>
std::int64_t reduction_get_enum(const std::variant<Words...>& word) {
  const std::string name = get_enum_name(word);
  if (name == "kNone") return 0;
  if (name == "kMean") return 1;
  if (name == "kSum" || name == "kBatchMean") return 2;
  throw Error(name + " is not a valid value for reduction");
}
}  // namespace enumtype

}  // namespace tenon
