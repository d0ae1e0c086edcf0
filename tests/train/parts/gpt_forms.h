// The closed forms of a gpt of blocks that are 12 wide and see 10 positions: as they are asked for, compared figure by
// figure, and what they are without anything else.
#pragma once

#include "train/parts/silent_ranks.h"

#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test::forms {

using train::ActivationForm;
using train::CastForm;
using train::GradientForm;
using Settings = std::vector<std::pair<std::string, std::string>>;

inline constexpr double kWidth = 12, kSquare = 144;     // a vector, and a matrix
inline constexpr double kStream = 120;                  // of the positions of an example
inline constexpr double kSums = 30;                     // of each query's weights, in three heads
inline constexpr double kNorms = 40;                    // mean and deviation of two norms
inline constexpr double kLogits = 70, kTable = 7 * 12;  // seven symbols
inline constexpr std::int64_t kRank = 5;
inline constexpr double kRow = 60, kNarrow = 50;  // a matrix of low rank, and its product

struct Asked {
  Settings settings = {};
  bool inplace = false, mixed = false;
  std::int64_t lora_rank = 0;
  std::string lora_layers = {};
  bool lora_integers = false;
  std::int64_t element_bytes = 4;
  int ranks = 1;
};

inline train::Model gpt_of(const Asked& asked) {
  Options options(training_sections().front().options);
  for (const auto& [key, value] : Settings{{"name", "gpt"}, {"hidden", "12"}, {"heads", "3"}, {"layers", "2"}})
    options.set_text(key, value);
  for (const auto& [key, value] : asked.settings) options.set_text(key, value);
  return train::make_model({.options = options,
                            .data = {.vocabulary = 7, .context = 10},
                            .inplace_activations = asked.inplace,
                            .mixed_precision = asked.mixed,
                            .lora_rank = asked.lora_rank,
                            .lora_layers = asked.lora_layers,
                            .lora_integers = asked.lora_integers,
                            .element_bytes = asked.element_bytes,
                            .tensor_parallel = asked.ranks > 1
                                                   ? std::make_shared<train::TensorParallel>(silent_ranks(asked.ranks))
                                                   : nullptr});
}

template <class Form>
using Fields = std::vector<std::pair<const char*, double Form::*>>;

template <class Form>
void expect_fields(const Fields<Form>& fields, const Form& found, const Form& wanted, const char* what) {
  for (const auto& [name, field] : fields) EXPECT_NEAR(found.*field, wanted.*field, 1e-9) << what << ": " << name;
}

inline void expect_form(const ActivationForm& found, const ActivationForm& wanted, const char* what) {
  using Form = ActivationForm;
  EXPECT_EQ(found.blocks, wanted.blocks) << what;
  expect_fields<Form>({{"embedding", &Form::embedding},
                       {"block", &Form::block},
                       {"block_input", &Form::block_input},
                       {"first_less", &Form::first_less},
                       {"products", &Form::products},
                       {"attention", &Form::attention},
                       {"attention_share", &Form::attention_share},
                       {"low_rank_work", &Form::low_rank_work},
                       {"frozen", &Form::frozen},
                       {"frozen_first_less", &Form::frozen_first_less},
                       {"frozen_narrow", &Form::frozen_narrow},
                       {"frozen_late", &Form::frozen_late},
                       {"passing_late", &Form::passing_late},
                       {"frozen_head", &Form::frozen_head},
                       {"head", &Form::head},
                       {"passing", &Form::passing},
                       {"head_passing", &Form::head_passing},
                       {"head_input", &Form::head_input},
                       {"away_forward", &Form::away_forward},
                       {"away_backward", &Form::away_backward},
                       {"away_late", &Form::away_late}},
                      found, wanted, what);
}

inline void expect_form(const GradientForm& found, const GradientForm& wanted, const char* what) {
  using Form = GradientForm;
  expect_fields<Form>({{"passing", &Form::passing},
                       {"when_again", &Form::when_again},
                       {"beside_passing", &Form::beside_passing},
                       {"gone_when_passing", &Form::gone_when_passing},
                       {"first", &Form::first},
                       {"beside_largest", &Form::beside_largest},
                       {"beside_updated", &Form::beside_updated},
                       {"largest", &Form::largest},
                       {"late_passing", &Form::late_passing},
                       {"late", &Form::late},
                       {"gone_when_late", &Form::gone_when_late},
                       {"late_beside_away", &Form::late_beside_away},
                       {"last_passing", &Form::last_passing},
                       {"last", &Form::last},
                       {"head_passing", &Form::head_passing},
                       {"head_late_passing", &Form::head_late_passing},
                       {"chunk_passing", &Form::chunk_passing},
                       {"chunk_input", &Form::chunk_input},
                       {"chunk_parameters", &Form::chunk_parameters},
                       {"embedding", &Form::embedding},
                       {"head_parameters", &Form::head_parameters},
                       {"head_beside", &Form::head_beside},
                       {"block_parameters", &Form::block_parameters},
                       {"embedding_parameters", &Form::embedding_parameters}},
                      found, wanted, what);
}

inline void expect_form(const CastForm& found, const CastForm& wanted, const char* what) {
  expect_fields<CastForm>({{"block", &CastForm::block}, {"behind", &CastForm::behind}, {"head", &CastForm::head}},
                          found, wanted, what);
}

/// What a block keeps in float32: a word each for the header's list, and the sums.
inline ActivationForm plain_form() {
  return {.block = 12 * kStream + kSums + kNorms,
          .block_input = kStream,
          .blocks = 2,
          .products = 9 * kStream,
          .attention = kStream + kSums,
          .attention_share = 10 / (12 * kWidth + 10),
          .head = 2 * kStream + 20 + kLogits,
          .passing = 5 * kStream,
          .head_passing = kLogits,
          .away_forward = 12 * kStream,
          .away_backward = 4 * kStream,
          .away_late = 4 * kStream};
}

inline GradientForm plain_gradients() {
  return {.passing = 9 * kStream,
          .first = kWidth,
          .beside_largest = 13 * kStream,
          .beside_updated = 5 * kStream,
          .largest = 4 * kSquare,
          .late_passing = 7 * kStream,
          .late = 9 * kSquare + 10 * kWidth,
          .late_beside_away = 5 * kStream,
          .head_passing = 2 * kLogits,
          .head_late_passing = kLogits,
          .chunk_passing = 4 * kLogits,
          .chunk_input = kStream,
          .chunk_parameters = kTable,
          .embedding = 2 * kTable,
          .head_parameters = kTable + 2 * kWidth,
          .block_parameters = 12 * kSquare + 13 * kWidth,
          .embedding_parameters = kTable};
}

inline ActivationForm mixed_form() {
  ActivationForm form = plain_form();
  form.block = 7 * kStream + kSums + kNorms;
  form.products = 4.5 * kStream, form.attention = kStream / 2 + kSums;
  form.head = 1.5 * kStream + 20 + kLogits, form.head_input = kStream, form.head_passing = 1.5 * kLogits;
  form.passing = 3.5 * kStream;
  form.away_forward = 7.5 * kStream, form.away_backward = 2 * kStream, form.away_late = 2 * kStream;
  return form;
}

inline GradientForm mixed_gradients() {
  return {.passing = 7.5 * kStream,
          .beside_passing = 2 * kSquare,
          .first = kWidth,
          .beside_largest = 3 * kStream,
          .largest = 6 * kSquare,
          .late_passing = 4 * kStream,
          .late = 9 * kSquare + 10 * kWidth,
          .late_beside_away = 3 * kStream,
          .last_passing = 2 * kStream,
          .last = 13.5 * kSquare + 10 * kWidth,
          .head_passing = 2 * kLogits,
          .head_late_passing = kLogits / 2,
          .chunk_passing = 3.5 * kLogits,
          .chunk_input = kStream / 2,
          .chunk_parameters = kTable / 2,
          .embedding = 2 * kTable,
          .head_parameters = kTable + 2 * kWidth,
          .head_beside = kTable / 2,
          .block_parameters = 12 * kSquare + 13 * kWidth,
          .embedding_parameters = kTable};
}

}  // namespace tenon::test::forms
