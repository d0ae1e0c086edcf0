// Attention and Transformers against PyTorch.
#include <tenon/nn/functional/attention.h>
#include <tenon/nn/modules/sequence/multihead_attention.h>
#include <tenon/nn/modules/sequence/transformer.h>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "../support/fingerprint.h"
#include "../support/message_of.h"

namespace tenon::test {
namespace {

void expect_number(double found, double expected, const char* what) {
  EXPECT_NEAR(found, expected, 1e-9 * std::max(1.0, std::abs(expected))) << what;
}

struct Operands {
  Tensor query = wave({2, 3, 5, 4});
  Tensor key = wave({2, 3, 6, 4}, 0.7).detach().set_requires_grad(true);
  Tensor value = wave({2, 3, 6, 3}, 1.3).detach().set_requires_grad(true);

  void expect(const Tensor& y, double output, double dquery, double dkey, double dvalue) const {
    weighted_sum(y).backward();
    expect_number(fingerprint(y), output, "output");
    expect_number(fingerprint(query.grad()), dquery, "gradient of the query");
    expect_number(fingerprint(key.grad()), dkey, "gradient of the key");
    expect_number(fingerprint(value.grad()), dvalue, "gradient of the value");
  }
};

TEST(ScaledDotProductAttention, AgreesWithPyTorch) {
  const Operands o;
  o.expect(scaled_dot_product_attention(o.query, o.key, o.value), 0.519869766802, -1.59192982711, -0.172766405173,
           1.4739058864);
}
TEST(ScaledDotProductAttention, CausalAgreesWithPyTorch) {
  const Operands o;
  o.expect(scaled_dot_product_attention(o.query, o.key, o.value, {}, 0, true), -3.51557311623, 1.73920660188,
           0.285006377442, 3.61428513765);
}
TEST(ScaledDotProductAttention, ScaleAgreesWithPyTorch) {
  const Operands o;
  o.expect(scaled_dot_product_attention(o.query, o.key, o.value, {}, 0, false, 0.3), 0.30490937269, -0.976860793241,
           -0.104138916548, 0.427344276682);
}
TEST(ScaledDotProductAttention, FloatingMaskAgreesWithPyTorch) {
  const Operands o;
  o.expect(scaled_dot_product_attention(o.query, o.key, o.value, wave({5, 6}, 2).detach()), 1.80250500204,
           -2.17649818772, -0.331066745372, -5.29891952198);
}
TEST(ScaledDotProductAttention, BooleanMaskAgreesWithPyTorch) {
  const Operands o;
  const Tensor mask = arange(30).view({5, 6}).remainder(4).ne(0);
  o.expect(scaled_dot_product_attention(o.query, o.key, o.value, mask), 0.108705914528, -1.47938811731, 0.752313046147,
           0.280762930813);
}

// Under the fused kernel (rank 4 and float32), under operators (a mask with a gradient), and for added masks.
TEST(ScaledDotProductAttention, AQueryThatMaySeeNothingGivesZerosAndNoGradient) {
  const Tensor sees = tensor({1, 0, 1, 0, 0, 0}).view({2, 3}).to(kBool);
  const Tensor added = zeros({2, 3}).masked_fill(sees.logical_not(), -std::numeric_limits<float>::infinity());
  const Tensor learned = added.clone().requires_grad_();
  for (const Tensor& mask : {sees, added, learned}) {
    for (const bool of_rank_4 : {false, true}) {
      Tensor q = rand({2, 4}).requires_grad_(), k = rand({3, 4}).requires_grad_(), v = rand({3, 4}).requires_grad_();
      const auto shaped = [&](const Tensor& t) { return of_rank_4 ? t.unsqueeze(0).unsqueeze(0) : t; };
      const Tensor y = scaled_dot_product_attention(shaped(q), shaped(k), shaped(v), mask).view({2, 4});
      EXPECT_TRUE(y[1].eq(0).all().item<bool>());
      EXPECT_TRUE(y[0].gt(0).all().item<bool>());
      (y * y).sum().backward();
      EXPECT_TRUE(q.grad()[1].eq(0).all().item<bool>());
      EXPECT_TRUE(k.grad()[1].eq(0).all().item<bool>());
      for (const Tensor& t : {q, k, v}) EXPECT_TRUE(t.grad().isfinite().all().item<bool>());
    }
  }
  EXPECT_TRUE(learned.grad()[1].eq(0).all().item<bool>());
}

TEST(ScaledDotProductAttention, DropsWeightsAndKeepsTheirMean) {
  manual_seed(4);
  const Tensor q = zeros({1, 1, 4}), k = zeros({1, 4000, 4}), v = ones({1, 4000, 2});
  const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0.25);
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.05);
  EXPECT_NE(y.select(-1, 0).item<double>(), 1);
}

TEST(ScaledDotProductAttention, RefusesOperandsThatDoNotFit) {
  EXPECT_THROW(scaled_dot_product_attention(rand({2, 4}), rand({3, 5}), rand({3, 4})), Error);
  EXPECT_THROW(scaled_dot_product_attention(rand({2, 4}), rand({3, 4}), rand({2, 4})), Error);
  EXPECT_THROW(scaled_dot_product_attention(rand({2, 4}), rand({3, 4}), rand({3, 4}), zeros({2, 3}), 0, true), Error);
}

TEST(MultiheadAttention, SelfAttentionAgreesWithPyTorch) {
  nn::MultiheadAttention attention(6, 2);
  fill_parameters(*attention);
  const Tensor q = wave({4, 2, 6});
  const auto [y, weights] = attention(q, q, q);
  weighted_sum(y).backward();
  expect_number(fingerprint(y), -0.44728583027, "output");
  expect_number(fingerprint(weights), 0.266957930073, "weights");
  expect_number(fingerprint(q.grad()), -0.361128727511, "gradient of the query");
  expect_number(gradient_fingerprint(*attention), 1.12311392425, "gradients of the parameters");
}

TEST(MultiheadAttention, MasksAgreeWithPyTorch) {
  const Tensor padding = tensor({0, 0, 1, 0, 1, 0}).view({2, 3}).to(kBool);
  for (const bool need_weights : {true, false}) {
    nn::MultiheadAttention attention(6, 2);
    fill_parameters(*attention);
    const Tensor q = wave({4, 2, 6}), k = wave({3, 2, 6});
    const auto [y, weights] = attention(q, k, k, padding, need_weights, wave({4, 3}, 2).detach());
    weighted_sum(y).backward();
    expect_number(fingerprint(y), -0.408414593737, "output");
    if (need_weights) expect_number(fingerprint(weights), -0.0235838171856, "weights");
    EXPECT_EQ(weights.defined(), need_weights);
    expect_number(fingerprint(q.grad()), -0.393962993527, "gradient of the query");
    expect_number(gradient_fingerprint(*attention), 5.8209987788, "gradients of the parameters");
  }
}

TEST(MultiheadAttention, OtherKeyAndValueSizesAgreeWithPyTorch) {
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(6, 2).kdim(5).vdim(7));
  fill_parameters(*attention);
  const Tensor q = wave({4, 2, 6}), k = wave({3, 2, 5}), v = wave({3, 2, 7});
  const auto [y, weights] = attention(q, k, v, Tensor(), true, Tensor(), /*average_attn_weights=*/false);
  weighted_sum(y).backward();
  expect_number(fingerprint(y), -0.406917450688, "output");
  expect_number(fingerprint(weights), -0.95974762595, "weights");
  expect_number(fingerprint(q.grad()), 0.00807914412372, "gradient of the query");
  expect_number(gradient_fingerprint(*attention), 0.312533792746, "gradients of the parameters");
}

TEST(MultiheadAttention, ExtraKeysAgreeWithPyTorch) {
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(6, 2).add_bias_kv(true).add_zero_attn(true));
  fill_parameters(*attention);
  const Tensor q = wave({4, 2, 6}), k = wave({3, 2, 6}), v = wave({3, 2, 6}, 0.5).detach();
  const auto [y, weights] = attention(q, k, v);
  weighted_sum(y).backward();
  expect_number(fingerprint(y), -0.462583020231, "output");
  expect_number(fingerprint(weights), 0.724999017758, "weights");
  expect_number(fingerprint(q.grad()), -0.469465378988, "gradient of the query");
  expect_number(gradient_fingerprint(*attention), 0.820503807887, "gradients of the parameters");
}

TEST(MultiheadAttention, ABooleanMaskForbidsWhereTrue) {
  manual_seed(3);
  nn::MultiheadAttention attention(6, 2);
  const Tensor q = rand({4, 2, 6});
  const Tensor later = ones({4, 4}, TensorOptions(kBool)).triu(1);
  const Tensor added = nn::TransformerImpl::generate_square_subsequent_mask(4);
  EXPECT_TRUE(std::get<0>(attention(q, q, q, Tensor(), true, later))
                  .equal(std::get<0>(attention(q, q, q, Tensor(), true, added))));
}

// The softmax of nothing, with and without the weights asked for; other samples are as they were.
TEST(MultiheadAttention, AQueryThatMaySeeNothingGivesNanAsInPyTorch) {
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(6, 2).dropout(0));
  const Tensor x = rand({3, 2, 6});
  const Tensor padding = tensor({0, 0, 1, 1, 1, 1}).view({2, 3}).to(kBool);
  for (const bool need_weights : {true, false}) {
    const Tensor y = std::get<0>(attention(x, x, x, padding, need_weights));
    EXPECT_TRUE(y.select(1, 1).isnan().all().item<bool>()) << need_weights;
    EXPECT_TRUE(y.select(1, 0).isfinite().all().item<bool>()) << need_weights;
  }
}

TEST(MultiheadAttention, RefusesHeadsThatDoNotDivide) {
  EXPECT_THROW(nn::MultiheadAttention(6, 4), Error);
  EXPECT_THROW(nn::MultiheadAttention(6, 2)(rand({4, 2, 5}), rand({4, 2, 6}), rand({4, 2, 6})), Error);
}

TEST(MultiheadAttention, RefusesAKeyOfAnotherBatchSize) {
  const std::string message = message_of([] {
    nn::MultiheadAttention(4, 2)(ones({2, 1, 4}), ones({1, 2, 4}), ones({1, 2, 4}));
  });
  EXPECT_NE(message.find("query and key must have the same batch size, got 1 and 2"), std::string::npos) << message;
}

TEST(Transformer, EncoderLayerAgreesWithPyTorch) {
  nn::TransformerEncoderLayer layer(
      nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0).activation(kGELU));
  fill_parameters(*layer);
  const Tensor x = wave({4, 2, 6});
  const Tensor y = layer(x, nn::TransformerImpl::generate_square_subsequent_mask(4));
  weighted_sum(y).backward();
  expect_number(fingerprint(y), -0.774992766581, "output");
  expect_number(fingerprint(x.grad()), -0.0620157718665, "gradient of the input");
  expect_number(gradient_fingerprint(*layer), 12.5364581348, "gradients of the parameters");
}

TEST(Transformer, AnActivationThatIsAnEmptyFunctionIsRefusedWhenItIsUsed) {
  const std::function<Tensor(const Tensor&)> none, triple = [](const Tensor&x) { return x * 3; };
  const auto run = [](const std::function<Tensor(const Tensor&)>& function) {
    nn::TransformerEncoderLayer layer(
        nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0).activation(function));
    fill_parameters(*layer);
    return layer(wave({4, 2, 6}));
  };
  EXPECT_EQ(run(triple).sizes(), (std::vector<std::int64_t>{4, 2, 6}));
  EXPECT_NE(message_of([&] { run(none); }).find("but the callable is empty"), std::string::npos);
}

TEST(Transformer, AgreesWithPyTorch) {
  nn::Transformer model(nn::TransformerOptions(6, 2, 2, 1).dim_feedforward(8).dropout(0));
  fill_parameters(*model);
  const Tensor x = wave({4, 2, 6}), target = wave({3, 2, 6});
  const Tensor y = model(x, target, Tensor(), nn::TransformerImpl::generate_square_subsequent_mask(3));
  weighted_sum(y).backward();
  expect_number(fingerprint(y), 0.0665330755406, "output");
  EXPECT_NEAR(fingerprint(x.grad()), -0.00151472114291, 1e-9);
  EXPECT_NEAR(fingerprint(target.grad()), -0.0637126541676, 1e-9);
}

TEST(Transformer, LayersOfAStackAreCopies) {
  nn::TransformerEncoderLayer layer(4, 2);
  nn::TransformerEncoder encoder(layer, 3);
  EXPECT_EQ(encoder->parameters().size(), 3 * layer->parameters().size());
  EXPECT_FALSE(encoder->parameters()[0].is_same(layer->parameters()[0]));
  encoder->eval();
  EXPECT_FALSE(encoder->layers->at<nn::TransformerEncoderLayerImpl>(2).dropout->is_training());
}

}  // namespace
}  // namespace tenon::test
