// A data set of one's own: which of the licences on this machine does a line of text come from? Windows of letters,
// each labelled with the file it was cut from, read on demand by two workers.
//   custom_dataset [EPOCHS]
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

constexpr std::int64_t kWindow = 48;
const std::vector<std::string> kFiles = {"Apache-2.0", "Artistic", "GFDL-1.3", "GPL-3", "LGPL-2.1", "MPL-2.0"};

class Lines : public tenon::data::datasets::Dataset<Lines> {
 public:
  /// Every fifth window is for testing.
  Lines(const std::string& folder, bool testing) {
    for (std::size_t label = 0; label < kFiles.size(); ++label) {
      std::ifstream file(folder + "/" + kFiles[label], std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      for (std::size_t at = 0, n = 0; at + kWindow <= text.size(); at += kWindow, ++n) {
        if ((n % 5 == 0) == testing) windows_.push_back({text.substr(at, kWindow), static_cast<std::int64_t>(label)});
      }
    }
  }
  tenon::data::Example<> get(std::size_t index) override {
    const auto& [text, label] = windows_[index];
    tenon::Tensor letters = tenon::empty({kWindow}, tenon::kInt64);
    for (std::size_t i = 0; i < text.size(); ++i) letters.data_ptr<std::int64_t>()[i] = text[i] & 127;
    return {letters, tenon::tensor(label, tenon::kInt64)};
  }
  std::optional<std::size_t> size() const override { return windows_.size(); }

 private:
  std::vector<std::pair<std::string, std::int64_t>> windows_;
};

struct Reader : tenon::nn::Module {
  Reader() {
    letters = register_module("letters", tenon::nn::Embedding(128, 16));
    words = register_module("words", tenon::nn::Conv1d(tenon::nn::Conv1dOptions(16, 96, 7).padding(3)));
    classes = register_module("classes", tenon::nn::Linear(96, static_cast<std::int64_t>(kFiles.size())));
  }
  tenon::Tensor forward(const tenon::Tensor& x) {
    const tenon::Tensor found = tenon::relu(words->forward(letters->forward(x).transpose(1, 2)));
    return classes->forward(found.amax(2));
  }
  tenon::nn::Embedding letters{nullptr};
  tenon::nn::Conv1d words{nullptr};
  tenon::nn::Linear classes{nullptr};
};

}  // namespace

int main(int count, char** words) {
  const int epochs = count > 1 ? std::atoi(words[1]) : 4;
  const std::string folder = "/usr/share/common-licenses";
  tenon::manual_seed(1);
  Reader model;
  tenon::optim::Adam optimizer(model.parameters(), tenon::optim::AdamOptions(2e-3));
  const auto options = tenon::data::DataLoaderOptions().batch_size(32).workers(2);
  auto train = tenon::data::make_data_loader(Lines(folder, false).map(tenon::data::transforms::Stack<>()), options);
  auto test = tenon::data::make_data_loader(Lines(folder, true).map(tenon::data::transforms::Stack<>()), options);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (auto& batch : *train) {
      optimizer.zero_grad();
      tenon::nn::functional::cross_entropy(model.forward(batch.data), batch.target).backward();
      optimizer.step();
    }
    tenon::NoGradGuard no_grad;
    double right = 0, all = 0;
    for (auto& batch : *test) {
      right += model.forward(batch.data).argmax(1).eq(batch.target).sum().item<double>();
      all += static_cast<double>(batch.target.size(0));
    }
    std::printf("epoch %d: %.1f %% of %.0f unseen windows right\n", epoch, 100 * right / all, all);
  }
}
