// Experiments in a test's own process, on a small made-up data set.
#pragma once

#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstring>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace tenon::test {

/// Whether the losses of two runs are the same, nan included.
inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

class Silent final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view line) override { notes.emplace_back(line); }
  bool is_stopping() const override { return stops && stops(); }
  std::vector<std::string> notes;
  std::function<bool()> stops;  ///< asked after each step and before each batch of a test
};

/// Pictures of stripes whose width is their class: learnable, and made in a millisecond.
inline void write_stripes(const std::filesystem::path& folder, const std::string& stem, std::uint32_t count) {
  const auto header = [](std::ofstream& file, std::vector<std::uint32_t> sizes) {
    const char magic[4] = {0, 0, 8, static_cast<char>(sizes.size())};
    file.write(magic, 4);
    for (const std::uint32_t size : sizes) {
      const char bytes[4] = {static_cast<char>(size >> 24), static_cast<char>(size >> 16), static_cast<char>(size >> 8),
                             static_cast<char>(size)};
      file.write(bytes, 4);
    }
  };
  std::ofstream images(folder / (stem + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (stem + "-labels-idx1-ubyte"), std::ios::binary);
  header(images, {count, 28, 28});
  header(labels, {count});
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t label = i % 10;
    labels.put(static_cast<char>(label));
    for (std::uint32_t pixel = 0; pixel < 28 * 28; ++pixel) {
      images.put(static_cast<char>((pixel % 28 + i / 10) / (label + 1) % 2 == 0 ? 255 : pixel % 7));
    }
  }
}

/// A text of `count` letters, a to g, whose next one can be told from those before it; with blanks between words of
/// nine.
inline void write_letters(const std::filesystem::path& file, int count, bool in_words = false) {
  std::ofstream text(file);
  for (int i = 0; i < count; ++i) {
    text << static_cast<char>('a' + i * i / 3 % 7);
    if (in_words && i % 9 == 0) text << ' ';
  }
}

class Experiment : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("tenon_train_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    write_stripes(folder, "train", 640);
    write_stripes(folder, "t10k", 100);
  }
  void TearDown() override {
    shutdown();
    std::filesystem::remove_all(folder);
  }

  /// Overrides as on the command line; data, seed and one thread are set already.
  ExperimentResult run(std::vector<std::string> overrides) {
    shutdown();
    std::vector<std::string> all{"data.path=\"" + folder.string() + "\"", "train.batch_size=32", "train.threads=1"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    ConfigRequest request;
    request.overrides = std::move(all);
    request.use_environment = false;
    request.sections = training_sections();
    ExperimentConfig config = Config::load(request).experiment();
    if (change_config) change_config(config);
    install(config);
    if (before_training) before_training();
    ExperimentResult result = run_experiment(config, sink, state);
    live_bytes = device_state(config.device).allocator().stats().requested_bytes.current;
    return result;
  }

  /// So, of a model that may read a text, which is `text` in the folder; `more` wins.
  ExperimentResult run_model(const std::string& model, std::vector<std::string> words,
                             const std::vector<std::string>& more) {
    words.push_back("model.name=\"" + model + "\"");
    if (train::reads_text(train::task_of(model))) {
      words.push_back("data.name=\"text\"");
      words.push_back("data.path=\"" + (folder / "text").string() + "\"");
    }
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  std::filesystem::path folder;
  std::function<void(ExperimentConfig&)> change_config;  ///< for what no setting says
  std::function<void()> before_training;                 ///< runs in the world of the experiment, right before it
  Silent sink;
  RunState state;
  std::int64_t live_bytes = -1;
};

}  // namespace tenon::test
