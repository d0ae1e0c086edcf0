// The closed forms of a transformer's memory, figure by figure: plain, in mixed precision, and divided over ranks. That
// a run takes what they say is asked elsewhere (ClosedForm, MemoryTechniques), to three percent.
#include "../../support/message_of.h"
#include "train/parts/gpt_forms.h"

namespace tenon::test::forms {
namespace {

TEST(ClosedForms, InFloat32AreThoseOfTheBlocksLayers) {
  const train::Model plain = gpt_of({});
  expect_form(plain.activations, plain_form(), "plain");
  expect_form(plain.gradients, plain_gradients(), "plain");
  expect_form(plain.casts, CastForm{}, "plain");

  ActivationForm form = plain_form();
  GradientForm gradients = plain_gradients();
  gradients.first = 4 * kSquare + kWidth, gradients.beside_largest = 6 * kStream;
  expect_form(gpt_of({.settings = {{"activation", "relu"}}}).activations, form, "relu");
  expect_form(gpt_of({.settings = {{"activation", "relu"}}}).gradients, gradients, "relu");
  expect_form(gpt_of({.inplace = true}).activations, form, "GELU overwrites nothing");
  form.passing = kStream, form.away_forward = 8 * kStream;
  expect_form(gpt_of({.settings = {{"activation", "relu"}}, .inplace = true}).activations, form, "relu in place");

  gradients = plain_gradients();
  gradients.embedding = kTable;
  expect_form(gpt_of({.settings = {{"tied", "false"}}}).gradients, gradients, "an output layer of its own");
}

TEST(ClosedForms, WithDropoutHaveItsMasks) {
  ActivationForm form = plain_form();
  form.block += 2 * kStream, form.embedding = kStream, form.passing = 4 * kStream;
  GradientForm gradients = plain_gradients();
  gradients.beside_largest = 14 * kStream;
  const train::Model dropped = gpt_of({.settings = {{"dropout", "0.5"}}});
  expect_form(dropped.activations, form, "dropout");
  expect_form(dropped.gradients, gradients, "dropout");
  form.passing = kStream, form.away_forward = 8 * kStream;
  expect_form(gpt_of({.settings = {{"dropout", "0.5"}, {"activation", "relu"}}, .inplace = true}).activations, form,
              "relu in place");
}

TEST(ClosedForms, InMixedPrecisionHaveHalfAnElementForEachOf16Bits) {
  const train::Model mixed = gpt_of({.mixed = true});
  ActivationForm form = mixed_form();
  GradientForm gradients = mixed_gradients();
  CastForm casts = {.block = 6 * kSquare + 4.5 * kWidth, .behind = 0, .head = kTable / 2};
  expect_form(mixed.activations, form, "gelu");
  expect_form(mixed.gradients, gradients, "gelu");
  expect_form(mixed.casts, casts, "gelu");

  const train::Model relu = gpt_of({.settings = {{"activation", "relu"}}, .inplace = true, .mixed = true});
  form.away_forward = 5.5 * kStream;
  gradients.passing = 5 * kStream, gradients.beside_passing = 0, gradients.first = 4 * kSquare + kWidth;
  casts.behind = 2 * kSquare;
  expect_form(relu.activations, form, "relu");
  expect_form(relu.gradients, gradients, "relu");
  expect_form(relu.casts, casts, "relu");

  form = mixed_form();
  form.block += kStream, form.embedding = kStream;
  expect_form(gpt_of({.settings = {{"dropout", "0.5"}}, .mixed = true}).activations, form, "dropout");
}

TEST(ClosedForms, OfDividedLayersHaveARanksPartOfWhatIsDivided) {
  const auto divided = [](Settings settings = {}, bool inplace = false, bool mixed = false) {
    settings.emplace_back("heads", "4");
    return gpt_of({.settings = std::move(settings), .inplace = inplace, .mixed = mixed, .ranks = 2});
  };
  const double sums = 20;
  ActivationForm form = plain_form();
  form.block = 8 * kStream + sums + kNorms, form.passing = 3 * kStream;
  form.products = 5.5 * kStream, form.attention = kStream / 2 + sums;
  expect_form(divided().activations, form, "gelu");
  GradientForm gradients = plain_gradients();
  gradients.passing = 5 * kStream, gradients.beside_largest = 7 * kStream, gradients.beside_updated = 3 * kStream;
  gradients.largest = 2 * kSquare, gradients.late_passing = 4 * kStream, gradients.late_beside_away = 3 * kStream;
  gradients.late = 4.5 * kSquare + 8 * kWidth, gradients.block_parameters = 6 * kSquare + 9.5 * kWidth;
  gradients.last_passing = 3 * kStream, gradients.last = 6 * kSquare + 7.5 * kWidth;
  expect_form(divided().gradients, gradients, "gelu");
  EXPECT_EQ(divided({{"activation", "relu"}}).activations.passing, 4 * kStream) << "a product and the sum of all";
  EXPECT_EQ(divided({{"activation", "relu"}}, true).activations.passing, 2 * kStream);
  EXPECT_EQ(divided({{"dropout", "0.5"}}).activations.passing, 2 * kStream);
  EXPECT_EQ(divided({}, false, true).activations.block, 5 * kStream + sums + kNorms);
  EXPECT_EQ(divided({}, false, true).casts.block, 3 * kSquare + 2.75 * kWidth);
  const GradientForm mixed = divided({}, false, true).gradients;
  EXPECT_EQ(mixed.passing, 4.5 * kStream);
  EXPECT_EQ(mixed.beside_largest, 2 * kStream);
  EXPECT_EQ(mixed.late_passing, 2.5 * kStream);
  EXPECT_EQ(mixed.last, 6.75 * kSquare + 8 * kWidth);
}

TEST(ClosedForms, LayersThatRanksCannotDivideEvenlyAreRefused) {
  EXPECT_EQ(message_of([] { gpt_of({.ranks = 2}); }),
            "train.tensor_parallel = 2 does not divide model.heads = 3 evenly: start as many ranks as divide it");
}

}  // namespace
}  // namespace tenon::test::forms
