// Leaks are looked for while other threads make, train and end tensors, as the workers of a loader do.
#include <tenon/autograd/leaks/leak_watch.h>
#include <tenon/autograd/leaks/live_memory.h>
#include <tenon/data/data_loader.h>
#include <tenon/data/transforms.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

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

/// Of which a loader's workers make batches, in threads in which no function of the program calls one.
struct Squares : data::datasets::Dataset<Squares> {
  data::Example<> get(std::size_t index) override {
    const auto x = static_cast<double>(index);
    return {full({3}, x), full({1}, x * x)};
  }
  std::optional<std::size_t> size() const override { return 400; }
};

TEST(LeaksBesideThreads, ABatchThatWorkersMadeIsNamedByWhatMadeIt) {
  memory::LeakWatch watch;
  auto loader =
      data::make_data_loader(Squares().map(data::transforms::Stack<>()), data::DataLoaderOptions(8).workers(2));
  std::vector<Tensor> kept;
  for (auto& batch : *loader) {
    kept.push_back(batch.data);
    watch.step();
  }
  const memory::LeakReport report = watch.report();
  ASSERT_FALSE(report.leaks.empty()) << report.text();
  EXPECT_THAT(report.text(), testing::AllOf(testing::HasSubstr("apply_batch ("), testing::HasSubstr("Squares"),
                                            testing::Not(testing::HasSubstr("StackTable"))));
}

}  // namespace
}  // namespace tenon
