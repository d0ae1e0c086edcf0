// One training step of a small convolutional network and of a small GPT, profiled: its rows as JSON, for
// against_pytorch.py, which runs the same steps under PyTorch.
//
//   build/release/bench/profiler/tenon_profiler_models lenet|gpt
#include <tenon/tenon.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

namespace {

using namespace tenon;  // NOLINT: the program reads like the Python beside it

struct LeNetImpl : nn::Module {
  LeNetImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 12, 5).padding(2)));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(12, 24, 5)));
    fc1 = register_module("fc1", nn::Linear(24 * 5 * 5, 128));
    fc2 = register_module("fc2", nn::Linear(128, 10));
  }
  Tensor forward(Tensor x) {
    x = max_pool2d(relu(conv1(x)), 2);
    x = max_pool2d(relu(conv2(x)), 2);
    return fc2(relu(fc1(x.flatten(1))));
  }
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};
};
TENON_MODULE(LeNet);

constexpr std::int64_t kWidth = 64, kHeads = 4, kSymbols = 96, kContext = 32;

struct BlockImpl : nn::Module {
  BlockImpl() {
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", nn::Linear(kWidth, kWidth));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    widen = register_module("widen", nn::Linear(kWidth, 4 * kWidth));
    narrow = register_module("narrow", nn::Linear(4 * kWidth, kWidth));
  }
  Tensor forward(Tensor x) {
    const std::int64_t batch = x.size(0), length = x.size(1);
    const auto parts =
        qkv(norm1(x)).view({batch, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor seen = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    x = x + out(seen.transpose(1, 2).reshape({batch, length, kWidth}));
    return x + narrow(gelu(widen(norm2(x))));
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, widen{nullptr}, narrow{nullptr};
};
TENON_MODULE(Block);

struct GptImpl : nn::Module {
  GptImpl() {
    symbols = register_module("symbols", nn::Embedding(kSymbols, kWidth));
    positions = register_module("positions", nn::Embedding(kContext, kWidth));
    block0 = register_module("block0", Block());
    block1 = register_module("block1", Block());
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    head = register_module("head", nn::Linear(nn::LinearOptions(kWidth, kSymbols).bias(false)));
  }
  Tensor forward(const Tensor& tokens) {
    const Tensor x = symbols(tokens) + positions(arange(tokens.size(1), kInt64));
    return head(norm(block1(block0(x))));
  }
  nn::Embedding symbols{nullptr}, positions{nullptr};
  Block block0{nullptr}, block1{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
TENON_MODULE(Gpt);

/// How many events of that name are not inside of another operator or backward node.
long long outer_calls(const profiler::Recording& recording, const std::string& name) {
  long long count = 0;
  for (const profiler::Event& event : recording.events) {
    if (event.name != name || !profiler::is_visible(event.kind)) continue;
    const auto around = event.visible_parent == profiler::kNone
                            ? profiler::EventKind::kLabel
                            : recording.events[static_cast<std::size_t>(event.visible_parent)].kind;
    count += around != profiler::EventKind::kOperator && around != profiler::EventKind::kBackward;
  }
  return count;
}

void print_rows(const profiler::Profile& profile) {
  const profiler::AverageList rows = profile.key_averages();
  std::printf("[");
  const char* separator = "";
  for (const profiler::EventAverage& row : rows) {
    std::printf("%s\n{\"name\": \"%s\", \"count\": %lld, \"self\": %lld, \"total\": %lld, \"outer\": %lld}", separator,
                row.key.c_str(), static_cast<long long>(row.count), static_cast<long long>(row.self_cpu_memory_usage),
                static_cast<long long>(row.cpu_memory_usage), outer_calls(profile.recording(), row.key));
    separator = ",";
  }
  std::printf("\n]\n");
}

template <class Model>
void profile_step(Model model, const std::function<Tensor(Model&)>& loss_of) {
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.1));
  profiler::Profile profile({.profile_memory = true});
  for (int step = 0; step < 2; ++step) {  // the first one is not recorded
    if (step == 1) profile.start();
    optimizer.zero_grad(true);
    loss_of(model).backward();
    optimizer.step();
  }
  profile.stop();
  print_rows(profile);
}

}  // namespace

int main(int argc, char** argv) {
  manual_seed(1);
  if (argc == 2 && std::strcmp(argv[1], "lenet") == 0) {
    const Tensor x = randn({16, 1, 28, 28}), y = randint(10, {16}, TensorOptions(kInt64));
    profile_step<LeNet>(LeNet(), [&](LeNet& model) { return cross_entropy_loss(model(x), y); });
    return 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "gpt") == 0) {
    const Tensor x = randint(kSymbols, {4, kContext}, TensorOptions(kInt64));
    const Tensor y = randint(kSymbols, {4, kContext}, TensorOptions(kInt64));
    profile_step<Gpt>(Gpt(), [&](Gpt& model) {
      return cross_entropy_loss(model(x).view({-1, kSymbols}), y.view({-1}));
    });
    return 0;
  }
  std::fprintf(stderr, "usage: %s lenet|gpt\n", argv[0]);
  return 2;
}
