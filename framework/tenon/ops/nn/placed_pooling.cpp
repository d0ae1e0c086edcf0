// Pooling at places that the caller gives. Out of other operators: a scatter, or a gather and a maximum, have the
// gradients.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/nn/placed_pooling.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <array>

namespace tenon {

using namespace ops;

namespace {

template <int D>
void check_rank(const char* op, const Tensor& input) {
  if (input.dim() == D + 1 || input.dim() == D + 2) return;
  throw Error(fmt::format("{}: Expected {}D or {}D input, but got input of size {}", op, D + 1, D + 2,
                          to_string(input.sizes())));
}

template <int D>
void check_length(const char* op, const char* name, IntArrayRef given) {
  if (given.size() == D) return;
  throw Error(fmt::format("{}: there should be exactly {} elements in {}, but got {}", op, D, name, given.size()));
}

template <int D>
Tensor unpool(const char* op, const Tensor& input, const Tensor& indices, IntArrayRef output) {
  if (indices.sizes() != input.sizes()) {
    throw Error(fmt::format("{}: the shape of indices must be the same as input size, but got {} and {}", op,
                            to_string(indices.sizes()), to_string(input.sizes())));
  }
  check_rank<D>(op, input);
  check_length<D>(op, "output_size", output);
  const std::int64_t first = input.dim() - D;
  Dims sizes = input.impl().sizes();
  Dims flat = sizes;
  std::int64_t plane = 1;
  for (int d = 0; d < D; ++d) {
    sizes[static_cast<int>(first) + d] = output[static_cast<std::size_t>(d)];
    plane *= output[static_cast<std::size_t>(d)];
  }
  flat.resize(static_cast<int>(first) + 1);
  flat[static_cast<int>(first)] = plane;
  return zeros(flat, input.options()).scatter(-1, indices.flatten(first), input.flatten(first)).view(sizes);
}

/// Where the kernels of one dimension begin, (N, C, outputs): a pseudo-random sequence with steps of floor and ceil of
/// alpha, which ends at the end of the input.
Tensor starts(const Tensor& sample, std::int64_t input, std::int64_t output, std::int64_t kernel) {
  Tensor last = full({sample.size(0), sample.size(1), 1}, input - kernel, sample.options().dtype(kInt64));
  if (output == 1) return last;
  const double alpha = static_cast<double>(input - kernel) / static_cast<double>(output - 1);
  const Tensor steps = (sample.unsqueeze(-1) + arange(output - 1, sample.options())) * alpha;
  return cat({steps.to(kInt64) - (sample * alpha).to(kInt64).unsqueeze(-1), last}, -1);
}

/// Where the elements of every kernel lie in their plane, (N, C, outputs, elements of the kernel).
template <int D>
Tensor positions(const Tensor& samples, const std::array<std::int64_t, D>& in, IntArrayRef out, IntArrayRef kernel) {
  Tensor sum;
  std::int64_t scale = 1;
  for (int d = D; d-- > 0;) {
    const auto i = static_cast<std::size_t>(d);
    const Tensor sample = samples.select(2, D == 2 ? 1 - d : d);  // in 2D the innermost dimension's comes first
    Tensor along = starts(sample, in[i], out[i], kernel[i]).unsqueeze(-1) +
                   arange(kernel[i], samples.options().dtype(kInt64));  // (N, C, outputs of d, elements of d)
    Dims sizes = Dims::filled(2 + 2 * D, 1);
    sizes[0] = samples.size(0);
    sizes[1] = samples.size(1);
    sizes[2 + d] = out[i];
    sizes[2 + D + d] = kernel[i];
    along = along.reshape(sizes) * scale;
    sum = sum.defined() ? sum + along : along;
    scale *= in[i];
  }
  return sum.flatten(2 + D).flatten(2, 1 + D);
}

template <int D>
std::tuple<Tensor, Tensor> fractional(const char* op, const Tensor& input, IntArrayRef kernel, IntArrayRef out,
                                      const Tensor& random_samples) {
  check_rank<D>(op, input);
  check_length<D>(op, "kernel_size", kernel);
  check_length<D>(op, "output_size", out);
  const bool batched = input.dim() == D + 2;
  const Tensor x = batched ? input : input.unsqueeze(0);
  const std::int64_t batch = x.size(0), channels = x.size(1);
  std::array<std::int64_t, D> in{};
  for (std::size_t d = 0; d < D; ++d) {
    in[d] = x.size(static_cast<std::int64_t>(d) + 2);
    if (out[d] < 1 || kernel[d] < 1 || out[d] + kernel[d] - 1 > in[d]) {
      throw Error(fmt::format("{}: kernel size {} with output size {} is too large for an input of {}", op, kernel[d],
                              out[d], in[d]));
    }
  }
  if (random_samples.dim() != 3 || random_samples.size(0) < batch || random_samples.size(1) != channels ||
      random_samples.size(2) != D) {
    throw Error(fmt::format("{}: Expect _random_samples of size [{}, {}, {}], got {}", op, batch, channels, D,
                            to_string(random_samples.sizes())));
  }
  const Tensor samples = random_samples.narrow(0, 0, batch).detach().to(x.options().dtype(kFloat64));
  const Tensor index = positions<D>(samples, in, out, kernel);
  const auto [values, where] = x.flatten(2).gather(2, index.flatten(2)).view(index.sizes()).max(-1);
  Dims sizes = x.impl().sizes();
  for (int d = 0; d < D; ++d) sizes[2 + d] = out[static_cast<std::size_t>(d)];
  const Tensor y = values.view(sizes);
  const Tensor places = index.gather(3, where.unsqueeze(-1)).view(sizes);
  return batched ? std::tuple(y, places) : std::tuple(y.squeeze(0), places.squeeze(0));
}

}  // namespace

Tensor max_unpool1d(const Tensor& input, const Tensor& indices, IntArrayRef output_size) {
  TENON_SCOPE(max_unpool1d, input, indices, output_size)
  return unpool<1>("max_unpool1d", input, indices, output_size);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, IntArrayRef output_size) {
  TENON_AUTOCAST(max_unpool2d, input, indices, output_size)
  return unpool<2>("max_unpool2d", input, indices, output_size);
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, IntArrayRef output_size, IntArrayRef stride,
                    IntArrayRef padding) {
  TENON_AUTOCAST(max_unpool3d, input, indices, output_size, stride, padding)
  check_length<3>("max_unpool3d", "stride", stride);
  check_length<3>("max_unpool3d", "padding", padding);
  for (const std::int64_t step : stride) {
    if (step < 1) throw Error("max_unpool3d: strides should be greater than zero, but got " + to_string(stride));
  }
  return unpool<3>("max_unpool3d", input, indices, output_size);
}

std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef output_size,
                                                 const Tensor& random_samples) {
  TENON_AUTOCAST(fractional_max_pool2d, input, kernel_size, output_size, random_samples)
  return fractional<2>("fractional_max_pool2d", input, kernel_size, output_size, random_samples);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef output_size,
                                                 const Tensor& random_samples) {
  TENON_AUTOCAST(fractional_max_pool3d, input, kernel_size, output_size, random_samples)
  return fractional<3>("fractional_max_pool3d", input, kernel_size, output_size, random_samples);
}

}  // namespace tenon
