// Recurrent modules against PyTorch: outputs, last states and gradients, plain and packed, in one and both directions.
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/sequence/rnn.h>
#include <tenon/nn/modules/sequence/rnn_cell.h>

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "../support/fingerprint.h"
#include "../support/message_of.h"

namespace tenon::test {
namespace {

namespace rnn_utils = nn::utils::rnn;
using Numbers = std::vector<double>;

Tensor sum_of(const std::vector<Tensor>& tensors) {
  Tensor sum = weighted_sum(tensors[0]);
  for (std::size_t i = 1; i < tensors.size(); ++i) sum = sum + weighted_sum(tensors[i]);
  return sum;
}
std::vector<Tensor> states(const Tensor& h) { return {h}; }
std::vector<Tensor> states(const std::tuple<Tensor, Tensor>& hc) { return {std::get<0>(hc), std::get<1>(hc)}; }

/// Output, states, gradient of the input, gradients of the parameters.
template <class Module>
Numbers figures(Module& module, const Tensor& x, std::vector<Tensor> results) {
  module->zero_grad(true);
  sum_of(results).backward();
  Numbers found;
  for (const Tensor& result : results) found.push_back(fingerprint(result));
  found.push_back(fingerprint(x.grad()));
  found.push_back(gradient_fingerprint(*module));
  return found;
}

void expect_numbers(const Numbers& found, const Numbers& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << what << ", number " << i;
  }
}

template <class Module>
void check(const std::string& what, Module module, const Numbers& plain, const Numbers& packed) {
  fill_parameters(*module);
  {
    const Tensor x = wave({4, 3, 5});
    const auto [y, h] = module->forward(x);
    std::vector<Tensor> results = states(h);
    results.insert(results.begin(), y);
    expect_numbers(figures(module, x, results), plain, what + " plain");
  }
  {
    const Tensor x = wave({4, 3, 5});
    const auto sequence = rnn_utils::pack_padded_sequence(x, tensor({2, 4, 3}), false, /*enforce_sorted=*/false);
    const auto [y, h] = module->forward_with_packed_input(sequence);
    std::vector<Tensor> results = states(h);
    results.insert(results.begin(), std::get<0>(rnn_utils::pad_packed_sequence(y)));
    expect_numbers(figures(module, x, results), packed, what + " packed");
  }
}

TEST(Recurrent, LstmAgreesWithPyTorch) {
  check("one way", nn::LSTM(nn::LSTMOptions(5, 4).num_layers(2)),
        {-0.259846488381, 1.5594398746, 4.06677233128, -0.439428095976, -10.8345282581},
        {0.310278680781, 1.50683614767, 4.0394371446, -0.995764024127, -10.8067270668});
  check("both ways", nn::LSTM(nn::LSTMOptions(5, 4).num_layers(2).bidirectional(true)),
        {0.330871454358, 2.5190783465, 5.97077935639, 1.65381225512, 105.449278618},
        {0.259528905298, 2.31650664394, 5.58938264897, 1.07238972617, 85.2154118282});
}

TEST(Recurrent, ProjectedLstmAgreesWithPyTorch) {
  check("one way", nn::LSTM(nn::LSTMOptions(5, 4).num_layers(2).proj_size(3)),
        {0.0210556942952, 0.0755659917822, 2.49725799287, -0.466263415123, -19.5546063287},
        {0.036429295281, 0.0579611123174, 2.71646109374, -0.675058611989, -23.9826903599});
  check("both ways", nn::LSTM(nn::LSTMOptions(5, 4).num_layers(2).bidirectional(true).proj_size(3)),
        {-0.0913234957268, 0.0253710491437, 1.46677170534, -0.863332988095, 48.4330688616},
        {0.106739666095, 0.0141134099957, 1.81456489607, -0.921914432006, 13.6010913183});
}

TEST(Recurrent, GruAgreesWithPyTorch) {
  check("one way", nn::GRU(nn::GRUOptions(5, 4).num_layers(2)),
        {-0.7345092056, 2.79802476256, 1.09740444244, 2.79704692012},
        {1.08457631113, 2.43371189709, 0.972316233842, -11.6717759312});
  check("both ways", nn::GRU(nn::GRUOptions(5, 4).num_layers(2).bidirectional(true)),
        {0.476713136621, 3.18784314586, 1.28911599003, 85.358191947},
        {0.827801766125, 2.90105134166, 0.581625720765, 76.0656983181});
}

TEST(Recurrent, RnnAgreesWithPyTorch) {
  check("tanh", nn::RNN(nn::RNNOptions(5, 4).num_layers(2)),
        {0.0467455036892, 1.60225018799, -1.06249922067, -5.77966262834},
        {0.959591969493, 2.27989762331, -0.097914057514, 14.3946140408});
  check("tanh both ways", nn::RNN(nn::RNNOptions(5, 4).num_layers(2).bidirectional(true)),
        {3.40609363367, 0.454280700372, 0.174981979419, -35.0595783433},
        {-0.816231034674, 1.45848161219, 0.327013796486, -13.0729382532});
  check("relu", nn::RNN(nn::RNNOptions(5, 4).num_layers(2).nonlinearity(kReLU)),
        {-1.09978617811, 1.30087722984, 0.815596475058, 11.5461789542},
        {1.21287518137, 1.68462549874, 0.420556611415, 75.1492445203});
  check("relu both ways", nn::RNN(nn::RNNOptions(5, 4).num_layers(2).nonlinearity(kReLU).bidirectional(true)),
        {0.377193717657, 1.53889976816, 2.75861353874, -42.536262134},
        {0.401276589529, 1.46121210157, 1.76379856311, -43.5581478131});
}

TEST(Recurrent, CellsTakeAnInputWithoutABatch) {
  const auto filled = [](auto cell) {
    const NoGradGuard guard;
    for (Tensor& p : cell->parameters()) p.copy_(tenon::arange(p.numel()).view(p.sizes()) * 0.1 - 0.3);
    return cell;
  };
  const auto same = [](const Tensor& y, const std::vector<double>& expected) {
    EXPECT_TRUE(y.allclose(tenon::tensor(expected, TensorOptions(kFloat32)), 1e-5, 1e-6));
  };
  const Tensor x = tenon::tensor({0.5, -1.0}, TensorOptions(kFloat32));
  const Tensor h = tenon::tensor({0.1, 0.2, 0.3}, TensorOptions(kFloat32));
  same(filled(nn::RNNCell(2, 3))(x, h), {-0.5716699957847595, -0.3539917767047882, -0.08975780010223389});
  same(filled(nn::GRUCell(2, 3))(x, h), {0.13929252326488495, 0.2650197148323059, 0.3824853003025055});
  const auto [first, second] = filled(nn::LSTMCell(2, 3))(x, std::tuple(h, h));
  same(first, {0.2683144509792328, 0.39693352580070496, 0.5211524367332458});
  same(second, {0.32017821073532104, 0.476168692111969, 0.6431388854980469});
  EXPECT_EQ(nn::GRUCell(2, 3)(x).sizes().vec(), (std::vector<std::int64_t>{3}));
  EXPECT_NE(message_of([] {
              nn::RNNCell(2, 3)(ones({2, 2, 2}));
            }).find("to be 1D or 2D, got 3D instead"),
            std::string::npos);
}

TEST(Recurrent, CellsAgreeWithPyTorch) {
  {
    nn::LSTMCell cell(5, 4);
    fill_parameters(*cell);
    const Tensor x = wave({3, 5});
    const auto h = cell(x * 0.5, cell(x));
    expect_numbers(figures(cell, x, states(h)), {0.681249592651, 1.25937322751, -0.955504571676, 5.71892567255},
                   "LSTMCell");
  }
  {
    nn::GRUCell cell(5, 4);
    fill_parameters(*cell);
    const Tensor x = wave({3, 5});
    expect_numbers(figures(cell, x, {cell(x * 0.5, cell(x))}), {0.365983271319, 0.131205728392, 3.51831183836},
                   "GRUCell");
  }
  {
    nn::RNNCell cell(5, 4);
    fill_parameters(*cell);
    const Tensor x = wave({3, 5});
    expect_numbers(figures(cell, x, {cell(x * 0.5, cell(x))}), {0.398853992579, 1.12542946029, -4.1588948677},
                   "RNNCell");
  }
}

TEST(Recurrent, BatchFirstOnlyExchangesDimensions) {
  manual_seed(5);
  nn::LSTM by_step(nn::LSTMOptions(3, 4).num_layers(2));
  nn::LSTM by_batch(nn::LSTMOptions(3, 4).num_layers(2).batch_first(true));
  for (const auto& item : by_step->named_parameters()) by_batch->named_parameters()[item.key()].set_data(item.value());
  const Tensor x = rand({6, 2, 3});
  EXPECT_TRUE(std::get<0>(by_step(x)).equal(std::get<0>(by_batch(x.transpose(0, 1))).transpose(0, 1)));
}

TEST(Recurrent, AStateThatIsGivenContinuesASequence) {
  manual_seed(6);
  nn::LSTM lstm(nn::LSTMOptions(3, 4).num_layers(2));
  const Tensor x = rand({6, 2, 3});
  const auto [whole, last] = lstm(x);
  const auto [first, middle] = lstm(x.narrow(0, 0, 4));
  const auto [second, end] = lstm(x.narrow(0, 4, 2), middle);
  EXPECT_TRUE(cat({first, second}).allclose(whole, 1e-6, 1e-6));
  EXPECT_TRUE(std::get<1>(end).allclose(std::get<1>(last), 1e-6, 1e-6));
}

TEST(Recurrent, DropoutActsBetweenLayersWhileTraining) {
  manual_seed(7);
  nn::GRU gru(nn::GRUOptions(3, 4).num_layers(2).dropout(0.5));
  const Tensor x = rand({6, 2, 3});
  EXPECT_FALSE(std::get<0>(gru(x)).equal(std::get<0>(gru(x))));
  gru->eval();
  EXPECT_TRUE(std::get<0>(gru(x)).equal(std::get<0>(gru(x))));
}

TEST(Recurrent, ACloneHasParametersOfItsOwn) {
  nn::LSTM lstm(nn::LSTMOptions(3, 4).bidirectional(true));
  auto copy = std::dynamic_pointer_cast<nn::LSTMImpl>(lstm->clone());
  const Tensor x = rand({5, 2, 3});
  EXPECT_TRUE(std::get<0>(copy->forward(x)).equal(std::get<0>(lstm(x))));
  NoGradGuard no_grad;
  for (const Tensor& parameter : copy->parameters()) parameter.zero_();
  EXPECT_FALSE(std::get<0>(copy->forward(x)).equal(std::get<0>(lstm(x))));
}

TEST(Recurrent, ConvertsWithItsModule) {
  nn::LSTM lstm(3, 4);
  lstm->to(kFloat64);
  EXPECT_EQ(std::get<0>(lstm(rand({5, 2, 3}, TensorOptions(kFloat64)))).scalar_type(), kFloat64);
}

TEST(Recurrent, WrongShapesAreNamed) {
  nn::LSTM lstm(3, 4);
  EXPECT_NE(message_of([&] { lstm(rand({5, 3})); }).find("input must have 3 dimensions, got 2"), std::string::npos);
  EXPECT_NE(message_of([&] { lstm(rand({5, 2, 7})); }).find("Expected 3, got 7"), std::string::npos);
  const auto state = std::make_tuple(zeros({1, 3, 4}), zeros({1, 2, 4}));
  EXPECT_NE(message_of([&] {
              lstm(rand({5, 2, 3}), state);
            }).find("Expected hidden[0] size [1, 2, 4], got [1, 3, 4]"),
            std::string::npos);
  EXPECT_NE(
      message_of([] { nn::LSTM(nn::LSTMOptions(3, 4).proj_size(4)); }).find("proj_size has to be a positive integer"),
      std::string::npos);
  EXPECT_NE(
      message_of([] { nn::GRU(nn::GRUOptions(3, 4).dropout(1.5)); }).find("dropout should be a number in range [0, 1]"),
      std::string::npos);
  EXPECT_NE(message_of([] {
              nn::GRUCell(3, 4)(rand({2, 5}));
            }).find("input has inconsistent input_size: got 5 expected 3"),
            std::string::npos);
}

TEST(Recurrent, SizesOutsideTheirLimitsAreNamedAndThoseAtThemTaken) {
  const auto refusal = [](const nn::LSTMOptions& options) { return message_of([&] { nn::LSTM lstm(options); }); };
  for (const std::int64_t size : {0, -1}) {
    EXPECT_EQ(refusal(nn::LSTMOptions(3, size)), "hidden_size must be greater than zero, got " + std::to_string(size));
    EXPECT_EQ(refusal(nn::LSTMOptions(3, 4).num_layers(size)),
              "num_layers must be greater than zero, got " + std::to_string(size));
  }
  for (const std::int64_t size : {-1, 4, 5})
    EXPECT_EQ(refusal(nn::LSTMOptions(3, 4).proj_size(size)),
              "proj_size has to be a positive integer, smaller than hidden_size or zero to disable projections, got " +
                  std::to_string(size) + " with hidden_size 4");
  for (const double p : {-0.01, 1.01, std::nan("")})
    EXPECT_NE(refusal(nn::LSTMOptions(3, 4).num_layers(2).dropout(p)).find("dropout should be a number in range"),
              std::string::npos)
        << p;
  for (const double p : {0.0, 1.0}) EXPECT_NO_THROW(nn::LSTM(nn::LSTMOptions(3, 4).num_layers(2).dropout(p))) << p;
  EXPECT_EQ(nn::LSTM(nn::LSTMOptions(3, 1))->all_weights()[1].sizes().vec(), (std::vector<std::int64_t>{4, 1}));
  const auto projected = nn::LSTM(nn::LSTMOptions(3, 4).proj_size(3))->all_weights();
  ASSERT_EQ(projected.size(), 5u);
  EXPECT_EQ(projected[4].sizes().vec(), (std::vector<std::int64_t>{3, 4}));
}

TEST(Recurrent, PrintsTheProjectionWhereThereIsOne) {
  const auto printed = [](const nn::LSTM& lstm) {
    std::ostringstream stream;
    stream << *lstm;
    return stream.str();
  };
  const std::string usual =
      "tenon::nn::LSTM(input_size=3, hidden_size=4, num_layers=1, bias=true, batch_first=false, dropout=0, "
      "bidirectional=false";
  EXPECT_EQ(printed(nn::LSTM(3, 4)), usual + ")");
  EXPECT_EQ(printed(nn::LSTM(nn::LSTMOptions(3, 4).proj_size(2))), usual + ", proj_size=2)");
  EXPECT_EQ(printed(nn::LSTM(nn::LSTMOptions(3, 4).proj_size(1))), usual + ", proj_size=1)");
}

TEST(Packing, RefusesWhatIsNotSorted) {
  EXPECT_NE(message_of([] {
              rnn_utils::pack_padded_sequence(rand({3, 3}), tensor({1, 3, 2}));
            }).find("enforce_sorted=False"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              rnn_utils::pack_padded_sequence(rand({2, 2, 1}), tensor({3, 1}));
            }).find("at most 2"),
            std::string::npos);
}

TEST(Packing, ReturnsSequencesInTheOrderTheyCameIn) {
  const Tensor a = wave({2, 3}), b = wave({4, 3}), c = wave({3, 3});
  const auto packed = rnn_utils::pack_sequence({a, b, c}, /*enforce_sorted=*/false);
  EXPECT_TRUE(packed.batch_sizes().equal(tensor({3, 3, 2, 1})));
  const auto [padded, lengths] = rnn_utils::pad_packed_sequence(packed, /*batch_first=*/true, /*padding_value=*/-1, 5);
  EXPECT_TRUE(lengths.equal(tensor({2, 4, 3})));
  EXPECT_TRUE(padded.select(0, 1).narrow(0, 0, 4).equal(b));
  EXPECT_EQ(padded.select(0, 0).narrow(0, 2, 3).sum().item<double>(), -9);
  padded.sum().backward();
  EXPECT_TRUE(c.grad().equal(ones({3, 3}, TensorOptions(kFloat64))));
}

}  // namespace
}  // namespace tenon::test
