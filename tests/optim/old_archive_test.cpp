// Archives of optimisers as libtorch wrote them before 1.5 are read, with a warning.
#include "support/expect_error.h"

#include <tenon/nn/modules/linear.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/optim.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

void write_list(OutputArchive& archive, const std::string& key, const std::vector<Tensor>& tensors) {
  archive.write(key + "/size", tenon::tensor(static_cast<std::int64_t>(tensors.size())));
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.write(key + "/" + std::to_string(i), tensors[i]);
}
InputArchive read_back(const OutputArchive& written) {
  InputArchive archive;
  archive.load_from(written.content());
  return archive;
}

TEST(OldArchive, GivesAdamItsStepsAndAverages) {
  manual_seed(4);
  nn::Linear layer(2, 1);
  OutputArchive written;
  write_list(written, "step_buffers", {tenon::tensor(std::int64_t{7}), tenon::tensor(std::int64_t{8})});
  write_list(written, "exp_average_buffers", {tenon::full({1, 2}, 0.5), tenon::full({1}, 0.25)});
  write_list(written, "exp_average_sq_buffers", {tenon::full({1, 2}, 2.0), tenon::full({1}, 3.0)});
  write_list(written, "max_exp_average_sq_buffers", {});
  optim::Adam adam(layer->parameters(), optim::AdamOptions());
  InputArchive archive = read_back(written);
  adam.load(archive);
  ASSERT_EQ(adam.state().size(), 2);
  OutputArchive again;
  adam.save(again);
  EXPECT_EQ(read_back(again).read_integer("state.1.step"), 8);
}

/// The state of the layer's weight, or of its bias, out of an archive with these lists of two elements each: the first
/// has (1, 2), the second (3, 4) …
template <class State>
State loaded_state(optim::Optimizer& optimizer, const nn::Linear& layer, const std::vector<std::string>& lists,
                   std::size_t parameter) {
  OutputArchive written;
  double value = 0;
  for (const std::string& list : lists) {
    const Tensor weight = tenon::full({1, 2}, ++value);
    write_list(written, list, {weight, tenon::full({1}, ++value)});
  }
  write_list(written, "step_buffers", {tenon::tensor(std::int64_t{7}), tenon::tensor(std::int64_t{8})});
  InputArchive archive = read_back(written);
  optimizer.load(archive);
  return static_cast<const State&>(*optimizer.state().at(optim::state_key(layer->parameters().at(parameter))));
}

TEST(OldArchive, GivesEachParameterItsElementOfEveryList) {
  nn::Linear layer(2, 1);
  optim::SGD sgd(layer->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  optim::Adam adam(layer->parameters());
  optim::RMSprop rmsprop(layer->parameters());
  optim::Adagrad adagrad(layer->parameters());
  for (const std::size_t i : {0u, 1u}) {
    const Tensor ones = tenon::ones(layer->parameters().at(i).sizes());
    const auto of_list = [&](std::size_t list) { return ones * static_cast<double>(2 * list + i + 1); };
    EXPECT_TRUE(
        loaded_state<optim::SGDParamState>(sgd, layer, {"momentum_buffers"}, i).momentum_buffer().equal(of_list(0)));
    const auto of_adam = loaded_state<optim::AdamParamState>(
        adam, layer, {"exp_average_buffers", "exp_average_sq_buffers", "max_exp_average_sq_buffers"}, i);
    EXPECT_EQ(of_adam.step(), 7 + static_cast<std::int64_t>(i));
    EXPECT_TRUE(of_adam.exp_avg().equal(of_list(0)));
    EXPECT_TRUE(of_adam.exp_avg_sq().equal(of_list(1)));
    EXPECT_TRUE(of_adam.max_exp_avg_sq().equal(of_list(2)));
    const auto of_rmsprop = loaded_state<optim::RMSpropParamState>(
        rmsprop, layer, {"square_average_buffers", "momentum_buffers", "grad_average_buffers"}, i);
    EXPECT_TRUE(of_rmsprop.square_avg().equal(of_list(0)));
    EXPECT_TRUE(of_rmsprop.momentum_buffer().equal(of_list(1)));
    EXPECT_TRUE(of_rmsprop.grad_avg().equal(of_list(2)));
    const auto of_adagrad = loaded_state<optim::AdagradParamState>(adagrad, layer, {"sum_buffers"}, i);
    EXPECT_EQ(of_adagrad.step(), 7 + static_cast<std::int64_t>(i));
    EXPECT_TRUE(of_adagrad.sum().equal(of_list(0)));
  }
}

class OldArchiveOfLBFGS : public ::testing::Test {
 protected:
  OldArchiveOfLBFGS() {
    optim::LBFGS first(std::vector<Tensor>{x_}, options_);
    descend(first);
    old_ = static_cast<const optim::LBFGSParamState&>(*first.state().begin()->second);
    OutputArchive written;
    written.write("d", old_.d(), true);
    written.write("H_diag", old_.H_diag(), true);
    written.write("prev_flat_grad", old_.prev_flat_grad(), true);
    written.write("t", tenon::full({}, old_.t(), TensorOptions(kFloat64)), true);
    written.write("prev_loss", tenon::full({}, old_.prev_loss(), TensorOptions(kFloat64)), true);
    write_list(written, "old_dirs", {old_.old_dirs().begin(), old_.old_dirs().end()});
    write_list(written, "old_stps", {old_.old_stps().begin(), old_.old_stps().end()});
    InputArchive archive = read_back(written);
    second_.load(archive);
  }
  Tensor descend(optim::LBFGS& optimizer) const {
    return optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = (x_[1] - x_[0].square()).square() * 100 + (1 - x_[0]).square();
      loss.backward();
      return loss;
    });
  }
  optim::LBFGSParamState& loaded() { return static_cast<optim::LBFGSParamState&>(*second_.state().begin()->second); }

  const optim::LBFGSOptions options_ = optim::LBFGSOptions(0.2).max_iter(4);
  const Tensor x_ = tenon::tensor({-1.2, 1.0}, TensorOptions(kFloat64)).set_requires_grad(true);
  optim::LBFGS second_{std::vector<Tensor>{x_}, options_};
  optim::LBFGSParamState old_;
};

TEST_F(OldArchiveOfLBFGS, HasItsHistoryAndItGoesOn) {
  ASSERT_FALSE(old_.old_dirs().empty());
  EXPECT_TRUE(loaded().ro().back().allclose(old_.ro().back()));
  loaded().func_evals(old_.func_evals());
  loaded().n_iter(old_.n_iter());
  loaded().ro(old_.ro());
  loaded().al(old_.al());
  EXPECT_TRUE(loaded() == old_);
  const double before = descend(second_).item<double>();
  EXPECT_LT(descend(second_).item<double>(), before);
}

// The counts are not in such an archive: its first iteration is a first one, which forgets what was before.
TEST_F(OldArchiveOfLBFGS, CountsAnewAndForgetsItsHistoryInItsFirstIteration) {
  const std::size_t pairs = old_.old_dirs().size();
  ASSERT_EQ(pairs, 3u);
  descend(second_);
  EXPECT_EQ(loaded().n_iter(), 4);
  EXPECT_EQ(loaded().old_dirs().size(), pairs);
  EXPECT_EQ(loaded().old_stps().size(), pairs);
  EXPECT_EQ(loaded().ro().size(), pairs);
}

TEST(OldArchive, OfLBFGSWithoutANumberOrHalfOfAPairIsRefused) {
  const Tensor x = tenon::ones({2}).set_requires_grad(true);
  optim::LBFGS lbfgs(std::vector<Tensor>{x});
  const auto load = [&](const std::vector<std::string>& numbers, std::size_t gradients, std::size_t steps) {
    OutputArchive written;
    written.write("prev_flat_grad", tenon::ones({2}), true);
    for (const std::string& number : numbers) written.write(number, tenon::full({}, 0.5), true);
    write_list(written, "old_dirs", std::vector<Tensor>(gradients, tenon::ones({2})));
    write_list(written, "old_stps", std::vector<Tensor>(steps, tenon::ones({2})));
    InputArchive archive = read_back(written);
    lbfgs.load(archive);
  };
  expect_error([&] { load({"prev_loss"}, 1, 1); }, "lacks 't'");
  expect_error([&] { load({"t"}, 1, 1); }, "lacks 'prev_loss'");
  expect_error([&] { load({"t", "prev_loss"}, 2, 1); }, "has 2 'old_dirs' and 1 'old_stps'");
  EXPECT_NO_THROW(load({"t", "prev_loss"}, 2, 2));
}

TEST(OldArchive, RefusesListsThatAreTooLongOrLackAnElement) {
  nn::Linear layer(2, 1);
  optim::SGD sgd(layer->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  OutputArchive too_long;
  write_list(too_long, "momentum_buffers", std::vector<Tensor>(3, tenon::ones({1})));
  InputArchive archive = read_back(too_long);
  expect_error([&] { sgd.load(archive); }, "has 3 elements, the optimiser has 2");
  OutputArchive torn;
  torn.write("momentum_buffers/size", tenon::tensor(std::int64_t{1}));
  InputArchive torn_archive = read_back(torn);
  expect_error([&] { sgd.load(torn_archive); }, "lacks 'momentum_buffers/0'");
  OutputArchive other;
  other.write("weight", tenon::ones({1}));
  InputArchive other_archive = read_back(other);
  expect_error([&] { sgd.load(other_archive); }, "'groups'");
}

}  // namespace
}  // namespace tenon::test
