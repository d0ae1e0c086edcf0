// The closed forms of a transformer's memory where its layers are frozen and matrices of low rank beside them learn.
#include "train/parts/gpt_forms.h"

namespace tenon::test::forms {
namespace {

/// Beside all layers, in float32.
ActivationForm low_rank_form() {
  ActivationForm form = plain_form();
  form.block += 4 * kNarrow + 4 * kStream;
  form.first_less = kStream + 20;
  form.low_rank_work = 16 * 5 / (12 * kWidth);
  form.passing_late = 3 * kStream, form.passing = 4 * kStream - kNarrow;
  form.head -= kStream, form.head_input = kStream;
  return form;
}
GradientForm low_rank_gradients() {
  GradientForm form = plain_gradients();
  form.passing = 13 * kStream, form.when_again = kStream, form.gone_when_passing = 4 * kStream;
  form.first = 5 * kRow, form.largest = 4 * kRow, form.block_parameters = 16 * kRow;
  form.beside_largest = form.beside_updated = form.late = form.late_beside_away = 0;
  form.head_parameters = form.chunk_parameters = form.embedding = form.embedding_parameters = 0;
  return form;
}

TEST(ClosedForms, BesideFrozenLayersHaveWhatMatricesOfLowRankKeep) {
  const train::Model all = gpt_of({.lora_rank = kRank});
  expect_form(all.activations, low_rank_form(), "all");
  expect_form(all.gradients, low_rank_gradients(), "all");
  expect_form(all.casts, CastForm{}, "all");

  // ReLU's values are what the narrow layer reads; nothing of them is computed again.
  ActivationForm form = low_rank_form();
  form.block -= 4 * kStream, form.passing_late = 7 * kStream, form.passing = 8 * kStream - kNarrow;
  GradientForm gradients = low_rank_gradients();
  gradients.gone_when_passing = 0;
  const train::Model relu = gpt_of({.settings = {{"activation", "relu"}}, .lora_rank = kRank});
  expect_form(relu.activations, form, "relu");
  expect_form(relu.gradients, gradients, "relu");

  form = low_rank_form();
  form.block += 2 * kStream, form.passing_late = 2 * kStream, form.passing = 3 * kStream - kNarrow;
  gradients = low_rank_gradients();
  gradients.when_again = 0;
  const train::Model dropped = gpt_of({.settings = {{"dropout", "0.5"}}, .lora_rank = kRank});
  expect_form(dropped.activations, form, "dropout");
  expect_form(dropped.gradients, gradients, "dropout");
}

TEST(ClosedForms, BesideSomeLayersLeaveOutWhatIsBeforeTheFirstThatLearns) {
  const auto beside = [](const char* layer, Settings settings = {}) {
    return gpt_of({.settings = std::move(settings), .lora_rank = kRank, .lora_layers = layer});
  };
  struct Row {
    const char* layer;
    double rows, block, first_less, passing;
  };
  const double all = 12 * kStream + kSums + kNorms + kNarrow, upto_out = 4 * kStream + 20 + kSums;
  for (const Row& row : {Row{"qkv", 4, all - kStream, kStream + 20, 6 * kStream},
                         Row{"out", 2, all - 2 * kStream, upto_out, 6 * kStream},
                         Row{"widen", 5, all - kStream, upto_out + 2 * kStream + 20, 8 * kStream - kNarrow},
                         Row{"narrow", 5, all + 2 * kStream, upto_out + 6 * kStream + 20, 4 * kStream}}) {
    const train::Model model = beside(row.layer);
    const ActivationForm& form = model.activations;
    EXPECT_EQ(form.block, row.block) << row.layer;
    EXPECT_EQ(form.first_less, row.first_less) << row.layer;
    EXPECT_EQ(form.passing, row.passing) << row.layer;
    EXPECT_NEAR(form.low_rank_work, row.rows * 5 / 144, 1e-12) << row.layer;
    EXPECT_EQ(model.gradients.block_parameters, row.rows * kRow) << row.layer;
    const bool is_narrow = std::string(row.layer) == "narrow";
    EXPECT_EQ(model.gradients.first, is_narrow ? 5 * kRow : 0) << row.layer;
    EXPECT_EQ(model.gradients.gone_when_passing, is_narrow ? 4 * kStream : 0) << row.layer;
    EXPECT_EQ(model.gradients.when_again, is_narrow ? kStream : 0) << row.layer;
    EXPECT_EQ(model.gradients.passing, 13 * kStream) << row.layer;
    EXPECT_EQ(form.blocks, 2);
  }
  EXPECT_EQ(beside("narrow", {{"activation", "relu"}}).activations.first_less, upto_out + 2 * kStream + 20);
  EXPECT_EQ(beside("narrow", {{"dropout", "0.5"}}).activations.first_less, upto_out + 7 * kStream + 20);
  EXPECT_EQ(beside("qkv", {{"activation", "relu"}}).gradients.passing, 9 * kStream);
  EXPECT_EQ(beside("qkv", {{"dropout", "0.5"}}).gradients.passing, 14 * kStream);
  EXPECT_EQ(beside("block").activations.blocks, 2) << "all of both";
  EXPECT_EQ(beside("block1").activations.blocks, 0) << "blocks are not alike: no form is known";
}

TEST(ClosedForms, BesideFrozenLayersUnderAutocastHaveTheirWeightsIn16Bits) {
  ActivationForm form = mixed_form();
  form.block += 4 * kNarrow / 2 + 2 * kStream;
  form.first_less = kStream + 20;
  form.low_rank_work = 16 * 5 / (12 * kWidth);
  form.passing = form.passing_late = 3.5 * kStream;
  form.head -= kStream / 2, form.head_input += kStream / 2;
  form.frozen = 6 * kSquare, form.frozen_first_less = 1.5 * kSquare, form.frozen_narrow = 2 * kSquare;
  form.frozen_head = kTable / 2;
  const train::Model gelu = gpt_of({.mixed = true, .lora_rank = kRank});
  expect_form(gelu.activations, form, "gelu");
  expect_form(gelu.casts, {.block = 8 * kRow, .behind = 0, .head = 0}, "gelu");
  GradientForm gradients = low_rank_gradients();
  gradients.passing = 7 * kStream, gradients.late_passing = 4 * kStream, gradients.gone_when_passing = 2 * kStream;
  gradients.head_late_passing = kLogits / 2, gradients.chunk_passing = 3.5 * kLogits;
  gradients.chunk_input = kStream / 2;
  expect_form(gelu.gradients, gradients, "gelu");

  // Most passes at the wide layer, before the narrow one's weight is cast.
  form.block -= 2 * kStream, form.passing_late = 4.5 * kStream, form.passing = 5 * kStream - kNarrow / 2;
  form.frozen_late = 2 * kSquare;
  expect_form(gpt_of({.settings = {{"activation", "relu"}}, .mixed = true, .lora_rank = kRank}).activations, form,
              "relu");

  const auto frozen_before = [](const char* layer) {
    return gpt_of({.mixed = true, .lora_rank = kRank, .lora_layers = layer}).activations.frozen_first_less;
  };
  EXPECT_EQ(frozen_before("qkv"), 1.5 * kSquare);
  EXPECT_EQ(frozen_before("out"), 2 * kSquare);
  EXPECT_EQ(frozen_before("widen"), 4 * kSquare);
  EXPECT_EQ(frozen_before("narrow"), 6 * kSquare);
  const ActivationForm integers = gpt_of({.mixed = true, .lora_rank = kRank, .lora_integers = true}).activations;
  EXPECT_EQ(integers.frozen + integers.frozen_first_less + integers.frozen_narrow + integers.frozen_late, 0);
}

TEST(ClosedForms, BesideIntegersHaveWhatTheirProductsConvert) {
  const auto beside = [](std::int64_t element_bytes, Settings settings = {}, bool mixed = false,
                         const char* layers = "") {
    return gpt_of({.settings = std::move(settings),
                   .mixed = mixed,
                   .lora_rank = kRank,
                   .lora_layers = layers,
                   .lora_integers = true,
                   .element_bytes = element_bytes});
  };
  expect_form(beside(4).activations, low_rank_form(), "float32 has no need of it");
  expect_form(beside(4).gradients, low_rank_gradients(), "float32 has no need of it");
  EXPECT_EQ(beside(4, {}, false, "qkv").gradients.passing, 9 * kStream) << "the values are not made again";

  // Of 16 bits a number of float32 is two elements.
  ActivationForm form = low_rank_form();
  form.passing = form.passing_late = 10 * kStream;
  GradientForm gradients = low_rank_gradients();
  gradients.passing = 19 * kStream, gradients.late_passing = 17 * kStream;
  gradients.late = 10 * kRow, gradients.gone_when_late = 9 * kStream;
  expect_form(beside(2).activations, form, "16 bits");
  expect_form(beside(2).gradients, gradients, "16 bits");
  EXPECT_EQ(beside(2, {{"dropout", "0.5"}}).gradients.passing, 20 * kStream);
  EXPECT_EQ(beside(2, {{"dropout", "0.5"}}).gradients.gone_when_late, 10 * kStream);
  const GradientForm some = beside(2, {}, false, "qkv").gradients;
  EXPECT_EQ(some.passing, 15 * kStream);
  EXPECT_EQ(some.late_passing, 16 * kStream);
  EXPECT_EQ(some.when_again, 2 * kStream);
  EXPECT_EQ(some.late, 0);
  EXPECT_EQ(some.gone_when_late, 4 * kStream);
  const GradientForm mixed = beside(4, {}, true).gradients;
  EXPECT_EQ(mixed.passing, 10.5 * kStream);
  EXPECT_EQ(mixed.late_passing, 9.5 * kStream);
  EXPECT_EQ(mixed.gone_when_late, 4.5 * kStream);
}

}  // namespace
}  // namespace tenon::test::forms
