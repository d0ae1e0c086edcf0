// Terms of a step's theory that few models have, each by itself: what is offloaded, a loss in chunks, frozen weights,
// the optimiser's state that is brought for an update, masters' gradients, and what all that costs in time.
#include <tenon/train/theory.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using train::Theory;
using train::theory_of;
using train::TheoryRequest;

/// Four blocks that keep 100 numbers each for one example, and 10 of their input; an embedding of 20, a head of 50; of
/// 1000 parameters 300 are the head's, 150 each block's, and 100 the embedding's. Two bytes a number.
TheoryRequest small() {
  TheoryRequest request;
  request.form = {.embedding = 20, .block = 100, .block_input = 10, .blocks = 4, .head = 50};
  request.gradients = {.embedding = 100, .head_parameters = 300, .block_parameters = 150, .embedding_parameters = 100};
  request.element_bytes = 2;
  request.batch_size = 3;
  request.parameters = 1000;
  return request;
}

/// All peaks of a step, in numbers rather than bytes.
double activations(const TheoryRequest& r) { return theory_of(r).activation_bytes / 2; }
double gradients(const TheoryRequest& r) { return theory_of(r).gradient_bytes / 2; }
/// Beside the parameters themselves.
double together(const TheoryRequest& r) { return theory_of(r).total_bytes / 2 - 1000; }

TEST(TheoryTerms, WhatIsThereAlwaysIsCountedInBytes) {
  TheoryRequest r = small();
  const double total = theory_of(r).total_bytes;
  r.data_bytes = 7, r.bucket_bytes = 40, r.state.device = 300;
  EXPECT_EQ(theory_of(r).total_bytes, total + 347);
  r.parameter_bytes = 5000;
  EXPECT_EQ(theory_of(r).total_bytes, total + 347 + 5000 - 2000) << "with those that do not learn";
  EXPECT_EQ(theory_of(r).optimizer_bytes, 300);
  r.state.update = 11;
  EXPECT_EQ(theory_of(r).optimizer_bytes, 311);
}

TEST(TheoryTerms, OffloadedNothingIsKeptOnTheDevice) {
  TheoryRequest r = small();
  r.offloaded = true;
  r.gradients.head_passing = 60;  // logits of 30 numbers
  EXPECT_EQ(activations(r), 3 * 30) << "those of the loss";
  r.form.away_forward = 70;
  EXPECT_EQ(activations(r), 3 * 70) << "what a block works on";
  r.form.away_backward = 90;
  EXPECT_EQ(activations(r), 3 * 90) << "what its backward has brought back";
  r.form.away_late = 95;
  EXPECT_EQ(activations(r), 3 * 95);
  r.form.head_passing = 80;
  EXPECT_EQ(activations(r), 3 * (30 + 80));
  r.casts = {.block = 8, .head = 0};
  r.form.away_late = 4000, r.gradients.late_beside_away = 5, r.gradients.late = 6;
  EXPECT_EQ(together(r), 3 * (4000 + 5) + 300 + 3 * 150 + 6) << "casts are brought back one by one";
  r.gradients_stay = true;
  EXPECT_EQ(together(r), 3 * (4000 + 5) + 1000);
}

TEST(TheoryTerms, AnOffloadedLossInChunksHasWhatItReads) {
  TheoryRequest r = small();
  r.offloaded = true, r.loss_chunks = 3;
  r.gradients.head_passing = 60, r.gradients.chunk_input = 25;
  r.form.head_input = 4, r.form.head_passing = 15;
  EXPECT_EQ(activations(r), 3 * (25 + 4 + (30 + 15) / 3.0)) << "and the logits and what passes of one chunk";
}

TEST(TheoryTerms, ALossInChunksKeepsNoLogits) {
  TheoryRequest r = small();
  r.gradients.head_passing = 60;  // the head's 50 numbers have 30 of logits
  r.form.head_passing = 12, r.form.head_input = 5;
  EXPECT_EQ(activations(r), 3 * (20 + 400 + 50 + 12));
  r.loss_chunks = 4;
  EXPECT_EQ(activations(r), 3 * (20 + 400 + 20 + 5 + (30 + 12) / 4.0));
  r.gradients.chunk_passing = 4000, r.gradients.chunk_input = 7, r.gradients.chunk_parameters = 90;
  EXPECT_EQ(gradients(r), 90 + 3 * (4000 / 4.0 + 7)) << "of one chunk, beside those that grow";
  EXPECT_EQ(together(r), 3 * (20 + 400 + 20) + 90 + 3 * (1000 + 7.0));
  r.gradients_stay = true;
  EXPECT_EQ(gradients(r), 1000 + 90 + 3 * (1000 + 7));
  EXPECT_NEAR(theory_of(r).relative_time, 1 + 0.3 / 3, 1e-12) << "the head is computed again";
}

TEST(TheoryTerms, GradientsOfTheHeadPassWhenLogitsAreGone) {
  TheoryRequest r = small();
  r.gradients.head_passing = 60, r.gradients.head_late_passing = 500, r.gradients.head_beside = 9;
  EXPECT_EQ(gradients(r), 300 + 9 + 3 * 500);
  EXPECT_EQ(together(r), 3 * (20 + 400 + 50 - 30) + 300 + 9 + 3 * 500);
}

TEST(TheoryTerms, FrozenWeightsStandBesideTheBlocksThatWillReadThem) {
  TheoryRequest r = small();
  r.form.frozen = 11, r.form.frozen_head = 6;
  EXPECT_EQ(activations(r), 3 * 470 + 4 * 11 + 6) << "at the loss: all";
  r.form.first_less = 3, r.form.frozen_first_less = 2;
  EXPECT_EQ(activations(r), 3 * (470 - 3) + 4 * 11 - 2 + 6) << "the first block needs less";
  r.checkpointed = 1;
  EXPECT_EQ(activations(r), 3 * (20 + 10 + 300 + 50) + 3 * 11 + 6) << "but not where it runs again";
  r.checkpointed = 0;
  r.form.passing = 500, r.form.frozen_late = 7;
  EXPECT_EQ(activations(r), 3 * (420 - 3 + 500) + 44 - 2 - 7) << "before the late ones are there";
  r.form.passing_late = 499;
  EXPECT_EQ(activations(r), 3 * (420 - 3 + 499) + 44 - 2) << "or behind them";
  r.form.frozen_late = 0, r.form.passing_late = 5000;
  EXPECT_EQ(activations(r), 3 * (420 - 3 + 500) + 44 - 2) << "there are none";
}

TEST(TheoryTerms, FrozenWeightsAndCastsStandBesideTheLossHoweverItIsComputed) {
  TheoryRequest r = small();
  r.gradients.head_passing = 60;  // logits of 30 numbers
  r.form.frozen = 11, r.form.frozen_head = 6, r.casts = {.block = 8, .head = 5};
  const double beside = 4 * 11 + 6 + 4 * 8 + 5;
  r.form.head_passing = 7000;
  EXPECT_EQ(together(r), 3 * (470 + 7000) + beside) << "in the forward pass";
  r.form.head_passing = 0, r.gradients.head_passing = 7000, r.form.head = 3550;
  EXPECT_EQ(together(r), 3 * (420 + 3550) + 3 * 7000 + beside) << "while its gradients come";
  r.form.head = 50, r.gradients.head_passing = 60, r.gradients.head_late_passing = 7000;
  EXPECT_EQ(together(r), 3 * (470 - 30) + 300 + 3 * 7000 + 4 * 11 + 4 * 8 + 5) << "when the output layer's is gone";
  r.gradients.head_late_passing = 0, r.loss_chunks = 2, r.form.head_input = 7000;
  EXPECT_EQ(together(r), 3 * (420 + 20 + 7000 + 15) + beside) << "in chunks";
  r.form.head_input = 0, r.gradients.chunk_passing = 7000;
  EXPECT_EQ(together(r), 3 * (420 + 20) + 3 * 3500 + beside) << "in backward in chunks";
  r.gradients.chunk_passing = 0, r.gradients.late_passing = 7000;
  EXPECT_EQ(together(r), 3 * 420 + 300 + 3 * 7000 + 3 * 11 + 3 * 8) << "late in the last block, those of the others";
}

TEST(TheoryTerms, InABlocksBackwardSomeFrozenWeightsAreGone) {
  TheoryRequest r = small();
  r.form.frozen = 11, r.form.frozen_narrow = 5;
  r.gradients.passing = 2000, r.gradients.gone_when_passing = 8, r.gradients.first = 13;
  EXPECT_EQ(together(r), 3 * (420 - 8) + 44 - 5 + 300 + 3 * 2000 + 13);
  r.checkpointed = 4;
  EXPECT_EQ(together(r), 3 * (20 + 10 + 100 - 10 - 8) + 11 - 5 + 300 + 3 * 150 + 3 * 2000 + 13)
      << "of blocks that run again its own alone";
}

TEST(TheoryTerms, ASecondRunHasTheFrozenWeightsOfItsBlockAlone) {
  TheoryRequest r = small();
  r.checkpointed = 4;
  r.form.frozen = 11, r.form.passing = 900, r.form.frozen_late = 7;
  const double inputs = 20 + 4 * 10, again = inputs + 100 - 10;
  EXPECT_EQ(activations(r), 3 * (again + 900) + 11 - 7);
  r.form.passing_late = 1000;
  EXPECT_EQ(activations(r), 3 * (again + 1000) + 11);
}

TEST(TheoryTerms, WhatABlockKeepsIsNotThereTwiceInItsSecondRun) {
  TheoryRequest r = small();
  r.checkpointed = 4, r.kept = {.elements = 15, .share = 0.25};
  EXPECT_EQ(activations(r), std::max(3 * (20 + 4 * 25 + 50), 3 * (20 + 4 * 25 - 15 + 90)));
  r.form.head = 0;
  EXPECT_EQ(activations(r), 3 * (20 + 4 * 25 - 15 + 90));
  EXPECT_NEAR(theory_of(r).relative_time, 1 + 0.75 / 3, 1e-12) << "nor is it computed again";
  r.checkpointed = 2;
  EXPECT_NEAR(theory_of(r).relative_time, 1 + 0.5 * 0.75 / 3, 1e-12);
  r.form.low_rank_work = 0.1;
  EXPECT_NEAR(theory_of(r).relative_time, 2.0 / 3 + 0.1 + 0.5 * 0.75 / 3, 1e-12) << "a frozen layer has two products";
}

TEST(TheoryTerms, AnUpdateBringsTheStateOfTheLargestParameter) {
  TheoryRequest r = small();
  r.form = {.blocks = 1};
  EXPECT_EQ(together(r), 1000) << "all gradients";
  r.state.largest = 400, r.state.update = 90;
  EXPECT_EQ(together(r), 1000 + 45) << "in elements of two bytes";
  r.state.gradient = 60;
  EXPECT_EQ(together(r), 1000 + 45 + 30) << "and its gradient for a master";
  EXPECT_EQ(gradients(r), 1030);
}

TEST(TheoryTerms, InBackwardAParameterHasItsShareOfThat) {
  TheoryRequest r = small();
  r.optimizer_in_backward = true;
  r.state.largest = 400, r.state.update = 90, r.state.gradient = 60;
  r.gradients = {.largest = 100};
  r.form = {.blocks = 1};
  EXPECT_EQ(gradients(r), 100 + 30 / 4.0) << "a quarter of the largest parameter's";
  EXPECT_EQ(together(r), 100 + 30 / 4.0 + 45 / 4.0);
  r.gradients = {.head_parameters = 800};
  EXPECT_EQ(gradients(r), 800 + 30) << "of a larger one no more than that";
  EXPECT_EQ(together(r), 800 + 30 + 45);
  r.gradients = {.embedding = 200, .embedding_parameters = 200};
  EXPECT_EQ(gradients(r), 200 + 15);
  EXPECT_EQ(together(r), 200 + 22.5) << "what is brought, or what the master gets";
}

TEST(TheoryTerms, ABlocksLargestGradientStandsBesideWhatPassesThen) {
  TheoryRequest r = small();
  r.gradients.largest = 40, r.gradients.beside_largest = 700, r.gradients.first = 5;
  EXPECT_EQ(gradients(r), 300 + 3 * 150 + 3 * 700 + 40 + 5);
  r.gradients.passing = 720;
  EXPECT_EQ(gradients(r), 750 + 3 * 720 + 5) << "or most passes without it";
  r.gradients.beside_passing = 30;
  EXPECT_EQ(gradients(r), 750 + 3 * 720 + 30 + 5);
  r.gradients.beside_updated = 800;
  EXPECT_EQ(gradients(r), 750 + 3 * 800 + 40 + 5);
}

TEST(TheoryTerms, BehindABlockTheGradientsOfItsParametersAreThere) {
  TheoryRequest r = small();
  r.gradients.late_passing = 900, r.gradients.late = 70;
  EXPECT_EQ(gradients(r), 750 + 70 + 3 * 900);
  r.gradients.last_passing = 950, r.gradients.last = 80;
  EXPECT_EQ(gradients(r), 750 + 80 + 3 * 950);
  r.micro_batches = 3;
  EXPECT_EQ(gradients(r), 1000 + 900) << "where all are there they are added up";
}

TEST(TheoryTerms, CastsGoAsTheirBlocksAreLeft) {
  TheoryRequest r = small();
  r.casts = {.block = 30, .behind = 12, .head = 5};
  r.gradients.passing = 5000;
  EXPECT_EQ(together(r), 3 * (20 + 400) + 4 * 30 - 12 + 300 + 3 * 5000) << "in the last block's backward";
  r.checkpointed = 3;
  EXPECT_EQ(together(r), 3 * (20 + 10 + 90) + 30 - 12 + 300 + 3 * 150 + 3 * 5000)
      << "in the first one's, which runs again, its own alone";
  r.gradients.passing = 0, r.gradients.late_passing = 5000, r.checkpointed = 0;
  EXPECT_EQ(together(r), 3 * (20 + 400) + 3 * 30 + 300 + 3 * 5000) << "late in it those of the others";
}

TEST(TheoryTerms, FiguresOfARunAreTheseAndOfMixedPrecisionThereIsNoTime) {
  TheoryRequest r = small();
  r.casts = {.block = 3, .head = 4};
  const Theory theory = theory_of(r);
  using Figures = std::vector<std::pair<std::string, double>>;
  Figures plain, mixed;
  train::note(r, false, plain);
  train::note(r, true, mixed);
  const Figures both = {{"expected_activation_bytes", theory.activation_bytes},
                        {"expected_gradient_bytes", theory.gradient_bytes},
                        {"expected_total_bytes", theory.total_bytes}};
  Figures wanted = both;
  wanted.emplace_back("expected_relative_time", theory.relative_time);
  EXPECT_EQ(plain, wanted);
  wanted = both;
  wanted.emplace_back("expected_cast_bytes", 2 * (4 * 3 + 4));
  EXPECT_EQ(mixed, wanted);
}

}  // namespace
}  // namespace tenon::test
