// The closed forms of a training step's peak, each term by itself.
#include <tenon/train/theory.h>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using train::fewest_checkpointed;
using train::Theory;
using train::theory_of;
using train::TheoryRequest;

/// Ten blocks that keep 100 numbers each for one example, and 8 of their input; an embedding of 50, a head of 30; of
/// 1000 parameters 200 are the head's, 60 each block's, and 200 the embedding's.
TheoryRequest request() {
  TheoryRequest request;
  request.form = {.embedding = 50, .block = 100, .block_input = 8, .blocks = 10, .head = 30};
  request.gradients = {.embedding = 200, .head_parameters = 200, .block_parameters = 60, .embedding_parameters = 200};
  request.element_bytes = 4;
  request.batch_size = 6;
  request.parameters = 1000;
  request.state.device = 8000;
  request.data_bytes = 500;
  return request;
}

constexpr double kAlways = 4000 + 8500;

TEST(Theory, ActivationsAreThoseOfAllBlocksUntilTheLoss) {
  const Theory theory = theory_of(request());
  EXPECT_EQ(theory.activation_bytes, 4. * 6 * (50 + 10 * 100 + 30));
  EXPECT_EQ(theory.gradient_bytes, 4. * (1000 + 6 * 8)) << "and what comes out of the first block";
  EXPECT_EQ(theory.relative_time, 1);
}

TEST(Theory, WhatPassesInTheLastBlockOrAtTheLossCounts) {
  TheoryRequest r = request();
  r.form.passing = 40;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 100 + 40)) << "more than the head keeps";
  r.form.head_passing = 15;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 100 + 30 + 15));
}

TEST(Theory, ACheckpointKeepsInputsAndOneBlock) {
  TheoryRequest r = request();
  r.checkpointed = 10;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 8 + 100 - 8)) << "while the last block runs again";
  EXPECT_EQ(theory_of(r).relative_time, 4. / 3);
  r.form.passing = 5;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 8 + 100 - 8 + 5)) << "in that second run";
  r.form.head = 200;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 8 + 200)) << "at the loss";
}

TEST(Theory, GradientsThatPassWhereABlockIsAskedForStandBesideItsSecondRun) {
  TheoryRequest r = request();
  r.checkpointed = 10;
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * (6 * (50 + 8 + 100 - 8 + 8) + 200 + 9 * 60)) << "the stream's";
  r.gradients.when_again = 7;
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * (6 * (50 + 8 + 100 - 8 + 8 + 7) + 200 + 9 * 60));
}

TEST(Theory, WhatIsGoneOfABlockLateInItsBackwardDoesNotStandBesideWhatPassesThen) {
  TheoryRequest r = request();
  r.gradients.late_passing = 80;
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * (6 * (50 + 10 * 100 + 80) + 200));
  r.gradients.gone_when_late = 9;
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * (6 * (50 + 10 * 100 + 80 - 9) + 200));
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (200 + 9 * 60 + 6 * 80)) << "of gradients nothing is gone";
}

TEST(Theory, OfSomeCheckpointedBlocksTheOthersAreKeptUntilTheLoss) {
  TheoryRequest r = request();
  r.checkpointed = 4;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 4 * 8 + 6 * 100 + 30)) << "at the loss";
  EXPECT_EQ(theory_of(r).relative_time, 1 + 4. / 10 / 3);
  r.checkpointed = 9;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 9 * 8 + 100 + 30)) << "the last block is there at the loss";
}

TEST(Theory, ABudgetTakesTheFewestBlocks) {
  // Of 1080 numbers each checkpointed block leaves out 92.
  EXPECT_EQ(fewest_checkpointed(request(), 1), 0);
  EXPECT_EQ(fewest_checkpointed(request(), 0.999), 1);
  EXPECT_EQ(fewest_checkpointed(request(), (1080 - 3 * 92) / 1080.), 3);
  EXPECT_EQ(fewest_checkpointed(request(), (1080 - 3 * 92 - 1) / 1080.), 4);
  EXPECT_EQ(fewest_checkpointed(request(), 0.05), -1) << "less than all of them leave";
}

TEST(Theory, MicroBatchesDivideTheActivationsAndHoldGradients) {
  TheoryRequest r = request();
  r.micro_batches = 3;
  const Theory theory = theory_of(r);
  EXPECT_EQ(theory.activation_bytes, 4. * 2 * 1080);
  EXPECT_EQ(theory.total_bytes, kAlways + 4000 + 4 * 200 + theory.activation_bytes) << "the head's, to be added";
}

TEST(Theory, TheLargestOfUnevenMicroBatchesCounts) {
  TheoryRequest r = request();
  r.micro_batches = 4;  // of 6 examples: 1, 2, 1 and 2
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 2 * 1080);
  r.micro_batches = 5;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 2 * 1080);
  r.micro_batches = 6;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 1080);
}

TEST(Theory, GradientsFromBeforeStandBesideTheActivations) {
  TheoryRequest r = request();
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * 6 * 1080 + 4 * 200)
      << "behind the head: the activations and the head's gradient";
  r.gradients_stay = true;
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4000 + 4. * 6 * 1080 + 4 * 200);
  r.gradients_stay = false;
  r.batch_size = 1;
  r.form = {.block = 10, .block_input = 1, .blocks = 1};
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4000 + 4) << "at the end: all gradients, no activations";
}

TEST(Theory, GradientsThatPassStandBesideThoseOfParameters) {
  TheoryRequest r = request();
  r.gradients.passing = 300;
  r.gradients.first = 30;
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (200 + 9 * 60 + 30 + 6 * 300)) << "in the first block";
  r.gradients_stay = true;
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (1000 + 6 * 300)) << "the first block's are there already";
  r.gradients.head_passing = 400;
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (1000 + 6 * 400));
}

TEST(Theory, ATableAtBothEndsHasTwoGradientsThatWaitForEachOther) {
  TheoryRequest r = request();
  r.gradients.embedding = 400;
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (800 + 400 + 6 * 8));
  r.optimizer_in_backward = true;
  r.gradients.passing = 100;
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (200 + 6 * 100)) << "one of them through all blocks";
}

TEST(Theory, CastsOfParametersStandBesideActivationsUntilTheyAreRead) {
  TheoryRequest r = request();
  r.casts = {.block = 20, .head = 70};
  EXPECT_EQ(theory_of(r).cast_bytes, 4. * (10 * 20 + 70));
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * 6 * 1080 + 4 * (200 + 70 + 10 * 20)) << "at the loss: all";
  r.checkpointed = 10;
  r.form.head = 0;
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * (6 * (50 + 100) + 200 + 9 * 60 + 6 * 8 + 20))
      << "the first block's, again";
  r.form.head = 1000;
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * (6 * 1130 + 10 * 20 + 70)) << "in the forward pass: all";
}

TEST(Theory, AnUpdateInBackwardLeavesTheLargestGradient) {
  TheoryRequest r = request();
  r.optimizer_in_backward = true;
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (200 + 6 * 8)) << "the table's";
  r.gradients.embedding = r.gradients.embedding_parameters = 0;
  r.gradients.head_parameters = 0;
  r.gradients.largest = 40;
  r.gradients.beside_largest = 7;
  EXPECT_EQ(theory_of(r).gradient_bytes, 4. * (40 + 6 * 7)) << "one of a block";
  EXPECT_EQ(theory_of(r).total_bytes, kAlways + 4. * (6 * 1080)) << "at the loss there is none";
}

}  // namespace
}  // namespace tenon::test
