// Leaks are looked for while other threads make, train and end tensors, as the workers of a loader do.
#include <tenon/autograd/function.h>
#include <tenon/autograd/leaks/last_uses.h>
#include <tenon/autograd/leaks/leak_watch.h>
#include <tenon/autograd/leaks/live_memory.h>
#include <tenon/data/data_loader.h>
#include <tenon/data/transforms.h>
#include <tenon/device/device_state.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace program {

using tenon::Tensor;
namespace data = tenon::data;

struct Squares : data::datasets::Dataset<Squares> {
  data::Example<> get(std::size_t index) override {
    const auto x = static_cast<double>(index);
    return {tenon::full({3}, x), tenon::full({1}, x * x)};
  }
  std::optional<std::size_t> size() const override { return 400; }
};

int line_of_loader = 0, line_of_batches = 0;
/// Makes the leak of a list that keeps what a loader made, by its workers or by itself. Two passes: at the end of one
/// alone the last batches have been made ahead.
tenon::memory::LeakReport keep_all_batches(std::size_t workers) {
  tenon::memory::LeakWatch watch;
  line_of_loader = __LINE__ + 2;
  auto loader =
      data::make_data_loader(Squares().map(data::transforms::Stack<>()), data::DataLoaderOptions(8).workers(workers));
  std::vector<Tensor> kept;
  for (int pass = 0; pass < 2; ++pass) {
    line_of_batches = __LINE__ + 1;
    for (auto& batch : *loader) {
      kept.push_back(batch.data);
      watch.step();
    }
  }
  return watch.report();
}

/// Of batches that are not stacked.
std::vector<Tensor> keep_examples() {
  auto loader = data::make_data_loader(Squares(), data::DataLoaderOptions(8).workers(1));
  std::vector<Tensor> kept;
  for (auto& batch : *loader)
    for (const auto& example : batch) kept.push_back(example.data);
  return kept;
}

}  // namespace program

namespace tenon {
namespace {

/// Two threads that do `work` over and over while it lives.
template <class Work>
class Beside {
 public:
  explicit Beside(const Work& work) {
    for (int i = 0; i < 2; ++i)
      threads_.emplace_back([this, work] {
        nn::Linear model(8, 8);
        do {
          work(model);
          rounds_.fetch_add(1);
        } while (!stops_);
      });
  }
  ~Beside() {
    stops_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  /// Until they have done some more.
  void await_rounds(std::size_t count) const {
    const std::size_t until = rounds_ + count;
    while (rounds_ < until) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stops_{false};
  std::atomic<std::size_t> rounds_{0};
  std::vector<std::thread> threads_;
};

void train(nn::Linear& model) {
  model->forward(rand({4, 8})).sum().backward();
  model->zero_grad(/*set_to_none=*/true);
}

TEST(LeaksBesideThreads, AreLookedForWhileGraphsAreMadeAndEnd) {
  const memory::LeakWatch outer;
  const Beside others(train);
  for (int look = 0; look < 30; ++look) {
    memory::LeakWatch watch;
    for (int step = 0; step < 8; ++step) {
      others.await_rounds(2);
      watch.step();
    }
    for (const memory::Leak& leak : watch.report().leaks) EXPECT_FALSE(leak.sentence.empty());
  }
}

TEST(LeaksBesideThreads, LiveTensorsAreListedWhileOthersComeAndGo) {
  const memory::LeakWatch watch;
  const Tensor kept = ones({3, 5});
  const Beside others(train);
  for (int look = 0; look < 100; ++look) {
    others.await_rounds(1);
    bool is_there = false;
    for (const memory::LiveTensor& tensor : memory::live_tensors())
      is_there = is_there || tensor.sizes == std::vector<std::int64_t>{3, 5};
    EXPECT_TRUE(is_there);
  }
}

TEST(LeaksBesideThreads, ABatchIsNamedByTheLineThatAskedForItOrStartedItsWorkers) {
  for (const std::size_t workers : {0, 2}) {
    const memory::LeakReport report = program::keep_all_batches(workers);
    ASSERT_EQ(report.leaks.size(), 1U) << report.text();
    const int at = workers == 0 ? program::line_of_batches : program::line_of_loader;
    const std::string line = "program::keep_all_batches (threads_test.cpp:" + std::to_string(at) + ")";
    EXPECT_EQ(report.leaks[0].allocated_at.substr(0, line.size()), line);
  }
}

TEST(LeaksBesideThreads, WhatADataSetMadeInAWorkerIsNamedByItsLineAndTheLoadersThen) {
  const memory::LiveRecording recording;
  const memory::Mark before = memory::mark();
  const std::vector<Tensor> kept = program::keep_examples();
  const memory::MarkDiff diff = memory::diff(before, memory::mark());
  ASSERT_FALSE(diff.rows.empty());
  EXPECT_THAT(diff.rows[0].site, testing::MatchesRegex("program::Squares::get \\(threads_test.cpp:[0-9]+\\) < "
                                                       "program::keep_examples \\(threads_test.cpp:[0-9]+\\).*"));
}

/// Looks for who holds what, over and over, while two others do `work`.
template <class Work>
void look_beside(const Work& work) {
  memory::LeakWatch watch;
  const Beside others(work);
  for (int step = 0; step < 8; ++step) {
    others.await_rounds(1);
    watch.step();
  }
  for (int look = 0; look < 50; ++look) {
    others.await_rounds(1);
    for (const memory::Leak& leak : watch.report().leaks) EXPECT_FALSE(leak.sentence.empty());
    EXPECT_FALSE(memory::live_tensors().empty());
  }
}

TEST(LeaksBesideThreads, OfOthersThatAreInTheMiddleOfAStepIsNoAlarm) {
  for (int round = 0; round < 5; ++round) {
    memory::LeakWatch watch;
    const Beside others([](nn::Linear& model) {
      const Tensor hidden = model->forward(rand({64, 8})).tanh();
      hidden.retain_grad();
      hidden.mul(hidden).sum().backward();
      model->zero_grad(/*set_to_none=*/true);
    });
    for (int step = 0; step < 60; ++step) {
      others.await_rounds(1);
      watch.step();
    }
    EXPECT_TRUE(watch.report().leaks.empty()) << watch.report().text();
  }
}

TEST(LeaksBesideThreads, GraphsThatAnotherThreadLeavesInEachStepAreTold) {
  memory::LeakWatch watch;
  const Tensor weight = ones({4096}).requires_grad_();
  std::vector<Tensor> losses;
  for (int step = 0; step < 12; ++step) {
    std::thread([&] { losses.push_back(weight.exp().sum()); }).join();
    watch.step();
  }
  const memory::LeakReport report = watch.report();
  ASSERT_EQ(report.leaks.size(), 1U) << report.text();
  EXPECT_EQ(report.leaks[0].kind, memory::LeakKind::kKeptGraph);
  EXPECT_TRUE(report.leaks[0].grows);
}

TEST(LeaksBesideThreads, HooksAreAskedWhileOthersHangThemUpAndTakeThemDown) {
  const Tensor kept = ones({3});
  look_beside([](nn::Linear& model) {
    for (const Tensor& hooked : {rand({4}).set_requires_grad(true), model->weight * 2}) {
      for (unsigned i = 0; i < 40; ++i)
        EXPECT_EQ(hooked.register_hook([scale = rand({2})](const Tensor& gradient) { return gradient * scale[0]; }), i);
      for (unsigned i = 0; i < 40; ++i) hooked.remove_hook(i);
    }
    const Tensor written = model->weight * 2;
    written.register_hook([](const Tensor& gradient) { return gradient * 2; });
    written.mul_(3);  // its hooks end with its former history
  });
}

struct Product : autograd::Function<Product> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& a, const Tensor& b) {
    context->save_for_backward({a, b, a + 1, b + 1, a + 2, b + 2});
    return a * b;
  }
  static autograd::variable_list backward(autograd::AutogradContext* context, autograd::variable_list gradients) {
    const autograd::variable_list saved = context->get_saved_variables();
    return {gradients[0] * saved[1], gradients[0] * saved[0]};
  }
};

TEST(LeaksBesideThreads, WhatFunctionsOfProgramsSavedIsAskedForWhileTheyGiveItUp) {
  const Tensor kept = ones({3});
  look_beside([](nn::Linear& model) {
    const Tensor product = Product::apply(model->weight, model->weight * 2);
    Tensor written = model->weight * 1;
    written[0].mul_(2);  // through a view, so the base's history has the view's in it
    (product + written).sum().backward();
    model->zero_grad();
  });
}

TEST(LeaksBesideThreads, WhatNodesKeepIsAskedForWhileOthersMakeRunAndEndThem) {
  AllocatorStack& stack = device_state(Device(kCPU)).allocator();
  memory::Attribution attribution(stack, stack.stats());
  const memory::LastUses uses(attribution);
  const Tensor kept = ones({4});
  const Tensor product = rand({4}).set_requires_grad(true) * kept;
  const Beside others([](nn::Linear& model) {
    train(model);
    Product::apply(model->weight, model->weight * 2).sum().backward();
    model->zero_grad();
  });
  for (int look = 0; look < 100; ++look) {
    others.await_rounds(1);
    EXPECT_EQ(uses.kept_for_backward().count(kept.impl().storage().block().data), 1U);
  }
}

TEST(LeaksBesideThreads, TensorsAreAskedForTheirMemoryWhileOthersPutThemOnOther) {
  const Tensor kept = ones({3});
  look_beside([](nn::Linear&) {
    const Tensor moved = rand({4});
    for (int i = 0; i < 50; ++i) moved.set_data(rand({4}));
  });
}

}  // namespace
}  // namespace tenon
