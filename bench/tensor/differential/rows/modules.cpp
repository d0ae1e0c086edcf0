// Modules: made with the options of the call, their parameters filled by a rule, run forward; the result, the sums of
// the parameters' gradients and the names and sizes of parameters and buffers are what comes out.
#include "../module_run.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

namespace nn = torch::nn;
using Int = std::int64_t;

void layers() {
  add("nn.Linear", "x last int(1..3) b b", [](Tensor x, Int in, Int out, bool bias, bool train) {
    return run(nn::Linear(nn::LinearOptions(in, out).bias(bias)), train, x);
  });
  add("nn.Identity", "x b", [](Tensor x, bool train) { return run(nn::Identity(), train, x); });
  add("nn.Flatten", "x dim dim b",
      [](Tensor x, Int a, Int b, bool train) { return run(nn::Flatten(nn::FlattenOptions().start_dim(a).end_dim(b)), train, x); });
  add("nn.Bilinear", "matrix matrix int(1..4) int(1..4) int(1..3) b b",
      [](Tensor a, Tensor b, Int na, Int nb, Int out, bool bias, bool train) {
        return run(nn::Bilinear(nn::BilinearOptions(na, nb, out).bias(bias)), train, a, b);
      });
  add("nn.Embedding", "index int(1..6) int(1..4) opt(int(-1..3)) b",
      [](Tensor i, Int n, Int d, std::optional<Int> padding, bool train) {
        nn::EmbeddingOptions options(n, d);
        if (padding) options.padding_idx(*padding);
        return run(nn::Embedding(options), train, i);
      });
  add("nn.LayerNorm", "x sizes1 b b", [](Tensor x, Ints shape, bool affine, bool train) {
    return run(nn::LayerNorm(nn::LayerNormOptions(shape).elementwise_affine(affine)), train, x);
  });
  add("nn.GroupNorm", "x4 int(1..3) channels b b", [](Tensor x, Int groups, Int channels, bool affine, bool train) {
    return run(nn::GroupNorm(nn::GroupNormOptions(groups, channels).affine(affine)), train, x);
  });
#define BATCH(D, words)                                                                                             \
  add("nn.BatchNorm" #D "d", words " channels b b b", [](Tensor x, Int n, bool affine, bool track, bool train) {   \
    return run(nn::BatchNorm##D##d(nn::BatchNorm##D##dOptions(n).affine(affine).track_running_stats(track)), train, x); \
  });                                                                                                               \
  add("nn.InstanceNorm" #D "d", words " channels b b b", [](Tensor x, Int n, bool affine, bool track, bool train) { \
    return run(nn::InstanceNorm##D##d(nn::InstanceNorm##D##dOptions(n).affine(affine).track_running_stats(track)),  \
               train, x);                                                                                           \
  });
  BATCH(1, "x3") BATCH(2, "x4") BATCH(3, "x5")
#undef BATCH
#define CONV(D, words)                                                                                               \
  add("nn.Conv" #D "d", words " channels int(1..4) int(1..3) int(1..2) int(0..1) int(1..2) b b",                    \
      [](Tensor x, Int in, Int out, Int k, Int stride, Int padding, Int groups, bool bias, bool train) {             \
        return run(nn::Conv##D##d(                                                                                   \
                       nn::Conv##D##dOptions(in, out, k).stride(stride).padding(padding).groups(groups).bias(bias)), \
                   train, x);                                                                                        \
      });
  CONV(1, "x3") CONV(2, "x4") CONV(3, "x5")
#undef CONV
}

void activations() {
#define PLAIN(name) add("nn." #name, "x b", [](Tensor x, bool train) { return run(nn::name(), train, x); });
  PLAIN(ReLU) PLAIN(ReLU6) PLAIN(Sigmoid) PLAIN(Tanh) PLAIN(SiLU) PLAIN(Mish) PLAIN(GELU) PLAIN(SELU) PLAIN(ELU)
  PLAIN(CELU) PLAIN(LeakyReLU) PLAIN(Softplus) PLAIN(Softsign) PLAIN(Tanhshrink) PLAIN(LogSigmoid) PLAIN(Hardtanh)
  PLAIN(Hardshrink) PLAIN(Softshrink) PLAIN(PReLU) PLAIN(Softmax2d)
#undef PLAIN
  add("nn.Softmax", "x dim b", [](Tensor x, Int dim, bool train) { return run(nn::Softmax(dim), train, x); });
  add("nn.LogSoftmax", "x dim b", [](Tensor x, Int dim, bool train) { return run(nn::LogSoftmax(dim), train, x); });
  add("nn.Softmin", "x dim b", [](Tensor x, Int dim, bool train) { return run(nn::Softmin(dim), train, x); });
  add("nn.GLU", "x dim b", [](Tensor x, Int dim, bool train) { return run(nn::GLU(dim), train, x); });
  add("nn.Threshold", "x real(0.5|-1.0) real(0.0|7.0) b",
      [](Tensor x, double a, double b, bool train) { return run(nn::Threshold(a, b), train, x); });
  add("nn.Dropout.eval", "x", [](Tensor x) { return run(nn::Dropout(0.5), false, x); });
  add("nn.PixelShuffle", "x4 int(1..2) b", [](Tensor x, Int n, bool train) { return run(nn::PixelShuffle(n), train, x); });
}

void pools() {
#define POOL(D, words)                                                                                             \
  add("nn.MaxPool" #D "d", words " int(1..3) int(1..2) int(0..1) b b",                                             \
      [](Tensor x, Int k, Int s, Int p, bool ceil, bool train) {                                                   \
        return run(nn::MaxPool##D##d(nn::MaxPool##D##dOptions(k).stride(s).padding(p).ceil_mode(ceil)), train, x); \
      });                                                                                                          \
  add("nn.AvgPool" #D "d", words " int(1..3) int(1..2) int(0..1) b b",                                             \
      [](Tensor x, Int k, Int s, Int p, bool ceil, bool train) {                                                   \
        return run(nn::AvgPool##D##d(nn::AvgPool##D##dOptions(k).stride(s).padding(p).ceil_mode(ceil)), train, x); \
      });                                                                                                          \
  add("nn.AdaptiveAvgPool" #D "d", words " int(1..3) b", [](Tensor x, Int n, bool train) {                         \
    return run(nn::AdaptiveAvgPool##D##d(nn::AdaptiveAvgPool##D##dOptions(n)), train, x);                          \
  });                                                                                                              \
  add("nn.ConstantPad" #D "d", words " int(-1..2) real(0.0|1.5) b", [](Tensor x, Int n, double value, bool train) { \
    return run(nn::ConstantPad##D##d(nn::ConstantPad##D##dOptions(n, value)), train, x);                           \
  });
  POOL(1, "x3") POOL(2, "x4") POOL(3, "x5")
#undef POOL
#define PAD(name, words) \
  add("nn." #name, words " int(0..2) b", [](Tensor x, Int n, bool train) { return run(nn::name(n), train, x); });
  PAD(ReflectionPad1d, "x3") PAD(ReflectionPad2d, "x4") PAD(ReplicationPad1d, "x3") PAD(ReplicationPad2d, "x4")
  PAD(ReplicationPad3d, "x5") PAD(ZeroPad2d, "x4")
#undef PAD
}

void recurrent() {
#define RECURRENT(name)                                                                                              \
  add("nn." #name, "x3 last int(1..3) int(1..2) b b b",                                                         \
      [](Tensor x, Int in, Int hidden, Int layers, bool bias, bool batch_first, bool both) {                         \
        nn::name module(                                                                                             \
            nn::name##Options(in, hidden).num_layers(layers).bias(bias).batch_first(batch_first).bidirectional(both)); \
        fill(module, x);                                                                                             \
        const auto [y, state] = module->forward(x);                                                                  \
        std::string text = described(module);                                                                        \
        return std::tuple<std::string, Tensor>(text, y);                                                             \
      });
  RECURRENT(RNN) RECURRENT(LSTM) RECURRENT(GRU)
#undef RECURRENT
  add("nn.GRUCell", "matrix last int(1..3) b", [](Tensor x, Int in, Int hidden, bool bias) {
    return run(nn::GRUCell(nn::GRUCellOptions(in, hidden).bias(bias)), true, x);
  });
  add("nn.RNNCell", "matrix last int(1..3) b", [](Tensor x, Int in, Int hidden, bool bias) {
    return run(nn::RNNCell(nn::RNNCellOptions(in, hidden).bias(bias)), true, x);
  });
  add("nn.MultiheadAttention", "x3 last int(1..2) b", [](Tensor x, Int width, Int heads, bool bias) {
    nn::MultiheadAttention module(nn::MultiheadAttentionOptions(width, heads).bias(bias));
    fill(module, x);
    const auto [y, w] = module->forward(x, x, x);
    return std::tuple<std::string, Tensor, Tensor>(described(module), y, w);
  });
  add("nn.TransformerEncoderLayer", "x3 last int(1..2)", [](Tensor x, Int width, Int heads) {
    nn::TransformerEncoderLayer module(
        nn::TransformerEncoderLayerOptions(width, heads).dim_feedforward(4).dropout(0.0));
    fill(module, x);
    auto y = module->forward(x);
    return std::tuple<std::string, Tensor>(described(module), y);
  });
}

void criteria() {
#define CRITERION(name) \
  add("nn." #name, "x y", [](Tensor x, Tensor y) { return nn::name()->forward(x, y); });
  CRITERION(MSELoss) CRITERION(L1Loss) CRITERION(SmoothL1Loss) CRITERION(HuberLoss) CRITERION(BCEWithLogitsLoss)
  CRITERION(KLDivLoss) CRITERION(SoftMarginLoss) CRITERION(HingeEmbeddingLoss) CRITERION(PoissonNLLLoss)
#undef CRITERION
  add("nn.CrossEntropyLoss", "@classes", [](Tensor x, Tensor t) { return nn::CrossEntropyLoss()->forward(x, t); });
  add("nn.NLLLoss", "@classes", [](Tensor x, Tensor t) { return nn::NLLLoss()->forward(x, t); });
  add("nn.CosineSimilarity", "x y dim", [](Tensor x, Tensor y, Int dim) {
    return nn::CosineSimilarity(nn::CosineSimilarityOptions().dim(dim))->forward(x, y);
  });
  add("nn.PairwiseDistance", "x y", [](Tensor x, Tensor y) { return nn::PairwiseDistance()->forward(x, y); });
}

}  // namespace

void add_modules() {
  layers();
  activations();
  pools();
  recurrent();
  criteria();
}

}  // namespace differential
// clang-format on
