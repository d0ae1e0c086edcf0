// The closed forms of a training step's peak, each term by itself.
#include <tenon/train/theory.h>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using train::ActivationForm;
using train::Theory;
using train::theory_of;
using train::TheoryRequest;

/// Ten blocks that keep 100 numbers each for one example, and 8 of their input; an embedding of 50, a head of 30.
TheoryRequest request() {
  TheoryRequest request;
  request.form = ActivationForm{.embedding = 50, .block = 100, .block_input = 8, .blocks = 10, .head = 30};
  request.element_bytes = 4;
  request.batch_size = 6;
  request.micro_batches = 1;
  request.parameters = 1000;
  request.head_parameters = 200;
  request.state_bytes = 8000;
  request.data_bytes = 500;
  request.gradients_stay = false;
  request.checkpoint = false;
  return request;
}

TEST(Theory, ActivationsAreThoseOfAllBlocksUntilTheLoss) {
  const Theory theory = theory_of(request());
  EXPECT_EQ(theory.activation_bytes, 4. * 6 * (50 + 10 * 100 + 30));
  EXPECT_EQ(theory.gradient_bytes, 4000);
  EXPECT_EQ(theory.relative_time, 1);
}

TEST(Theory, ACheckpointKeepsInputsAndOneBlock) {
  TheoryRequest r = request();
  r.checkpoint = true;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 8 + 100 - 8)) << "while the last block runs again";
  EXPECT_EQ(theory_of(r).relative_time, 4. / 3);
  r.form.head = 200;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 8 + 200)) << "at the loss";
}

TEST(Theory, ABlockMayComputeAgainInItsBackward) {
  TheoryRequest r = request();
  r.form.computed_again = 25;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 100 + 30)) << "less than the head keeps";
  r.form.computed_again = 40;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 100 + 40));
  r.checkpoint = true;
  EXPECT_EQ(theory_of(r).activation_bytes, 4. * 6 * (50 + 10 * 8 + 100 - 8 + 40));
}

TEST(Theory, MicroBatchesDivideTheActivationsAndHoldGradients) {
  TheoryRequest r = request();
  r.micro_batches = 3;
  const Theory theory = theory_of(r);
  EXPECT_EQ(theory.activation_bytes, 4. * 2 * 1080);
  EXPECT_EQ(theory.total_bytes, 4000 + 8500 + 4000 + theory.activation_bytes);
}

TEST(Theory, GradientsFromBeforeStandBesideTheActivations) {
  TheoryRequest r = request();
  EXPECT_EQ(theory_of(r).total_bytes, 4000 + 8500 + 4. * 6 * 1080 + 4 * 200)
      << "at the loss: the activations and the head's gradient";
  r.gradients_stay = true;
  EXPECT_EQ(theory_of(r).total_bytes, 4000 + 8500 + 4000 + 4. * 6 * 1080);
  r.gradients_stay = false;
  r.batch_size = 1;
  r.form = ActivationForm{.embedding = 0, .block = 10, .block_input = 1, .blocks = 1, .head = 0};
  EXPECT_EQ(theory_of(r).total_bytes, 4000 + 8500 + 4000) << "at the end: all gradients, no activations";
}

}  // namespace
}  // namespace tenon::test
