// Pooling: the shape rule of windows, and for each kind its kernel with its adjoint. Pools are linear given their
// indices, so a gradient's gradient is the pool again.
#include <tenon/autograd/kept_results.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/nn/pooling.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

namespace {

void spread(const char* op, const char* name, IntArrayRef given, int spatial, std::int64_t* values) {
  if (given.size() != 1 && given.size() != static_cast<std::size_t>(spatial)) {
    throw Error(fmt::format("{}: {} must either be a single int or a tuple of {} ints, got {}", op, name, spatial,
                            to_string(given)));
  }
  for (int d = 0; d < spatial; ++d) values[d] = given[given.size() == 1 ? 0 : static_cast<std::size_t>(d)];
}

/// Arguments that were checked, and the sizes that follow.
struct Windows {
  PoolAttributes attributes;
  bool batched = true;
  Dims output;  ///< with batch and channels
};

void check_input(const char* op, const Tensor& input, int spatial) {
  bool fine = input.dim() == spatial + 1 || input.dim() == spatial + 2;
  for (std::int64_t d = input.dim() == spatial + 2 ? 1 : 0; fine && d < input.dim(); ++d) fine = input.size(d) > 0;
  if (!fine) {
    throw Error(
        fmt::format("{}: Expected {}D or {}D input with non-zero channels and sizes (the batch may be empty), but got "
                    "input of size {}",
                    op, spatial + 1, spatial + 2, to_string(input.sizes())));
  }
}

std::int64_t window_count(std::int64_t size, std::int64_t reach, std::int64_t stride, std::int64_t padding,
                          bool ceil_mode) {
  const std::int64_t room = size + 2 * padding - reach + (ceil_mode ? stride - 1 : 0);
  std::int64_t count =
      (room >= 0 ? room / stride : -((stride - 1 - room) / stride)) + 1;  // rounds towards minus infinity
  // The last window must begin inside the input or its left padding.
  if (ceil_mode && (count - 1) * stride >= size + padding) --count;
  return count;
}

Windows windows_of(const char* op, int spatial, const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  Windows windows;
  PoolAttributes& attributes = windows.attributes;
  attributes.spatial = spatial;
  spread(op, "kernel_size", kernel, spatial, attributes.kernel);
  spread(op, "stride", stride.empty() ? kernel : stride, spatial, attributes.stride);
  spread(op, "padding", padding, spatial, attributes.padding);
  spread(op, "dilation", dilation, spatial, attributes.dilation);
  check_input(op, input, spatial);
  windows.batched = input.dim() == spatial + 2;
  const int first = static_cast<int>(input.dim()) - spatial;
  windows.output.push_back(windows.batched ? input.size(0) : 1);
  windows.output.push_back(input.size(first - 1));
  for (int d = 0; d < spatial; ++d) {
    if (attributes.kernel[d] <= 0) {
      throw Error(fmt::format("{}: kernel size should be greater than zero, but got {}", op, to_string(kernel)));
    }
    if (attributes.stride[d] <= 0) {
      throw Error(fmt::format("{}: stride should not be zero or negative, but got {}", op, to_string(stride)));
    }
    if (attributes.dilation[d] <= 0) {
      throw Error(fmt::format("{}: dilation should be greater than zero, but got {}", op, to_string(dilation)));
    }
    if (attributes.padding[d] < 0 || attributes.padding[d] * 2 > attributes.kernel[d]) {
      throw Error(
          fmt::format("{}: pad should be at most half of effective kernel size, but got pad={} and kernel_size={}", op,
                      attributes.padding[d], attributes.kernel[d]));
    }
    const std::int64_t reach = attributes.dilation[d] * (attributes.kernel[d] - 1) + 1;
    windows.output.push_back(
        window_count(input.size(first + d), reach, attributes.stride[d], attributes.padding[d], ceil_mode));
  }
  for (int d = 0; d < spatial; ++d) {
    if (windows.output[2 + d] >= 1) continue;
    std::string from = std::to_string(input.size(first - 1)), to = from;
    for (int e = 0; e < spatial; ++e) {
      from += "x" + std::to_string(input.size(first + e));
      to += "x" + std::to_string(windows.output[2 + e]);
    }
    throw Error(fmt::format("{}: Given input size: ({}). Calculated output size: ({}). Output size is too small", op,
                            from, to));
  }
  return windows;
}

Tensor unbatched(Tensor tensor, bool batched) { return batched ? tensor : as_owned(tensor.squeeze(0)); }

// --- maximum --------------------------------------------------------------------------------------------------------

Tensor max_adjoint(const Tensor& dy, const Tensor& indices, const Dims& input_sizes);

/// The elements of x, of the input's sizes, at the positions of the maxima; 0 where a window had none.
Tensor take_maxima(const Tensor& x, const Tensor& indices) {
  const Tensor taken = x.flatten(2).gather(2, indices.flatten(2).clamp_min(0)).view(indices.sizes());
  return taken.masked_fill(indices.lt(0), 0);
}

Tensor max_adjoint(const Tensor& dy, const Tensor& indices, const Dims& input_sizes) {
  Recording recording =
      record<1>("MaxPoolBackwardBackward0", {&dy}, [](Backward& b) { b.set(0, take_maxima(b.grad(), b.saved(0))); });
  if (recording) recording.save(0, indices);
  const Tensor dense_dy = dense(dy);
  Tensor dx = allocate_like(dy, input_sizes, dy.scalar_type());
  run(TENON_OP("max_pool_backward"), state_of(dy), {view_of(dx)}, {view_of(dense_dy), view_of(indices)});
  recording.output(dx);
  return dx;
}

std::tuple<Tensor, Tensor> max_over(const char* name, OperatorId op, const Tensor& input, const Windows& windows) {
  const Tensor batched = windows.batched ? input : input.unsqueeze(0);
  const Dims sizes = batched.impl().sizes();
  Recording recording = record<1>("MaxPoolWithIndicesBackward0", {&batched},
                                  [sizes](Backward& b) { b.set(0, max_adjoint(b.grad(), b.saved(0), sizes)); });
  const Tensor x = dense(batched);
  Tensor y, indices;
  autograd::computed_once(name, {&y, &indices}, [&] {
    y = allocate_like(x, windows.output, x.scalar_type());
    indices = allocate_like(x, windows.output, kInt64);
    run(op, state_of(x), {view_of(y), view_of(indices)}, {view_of(x)}, &windows.attributes);
  });
  if (recording) recording.save(0, indices);
  y = in_format_of(batched, y);
  recording.output(y);
  return {unbatched(y, windows.batched), unbatched(in_format_of(batched, indices), windows.batched)};
}

// --- mean -----------------------------------------------------------------------------------------------------------

struct MeanKernels {
  const char* name;
  OperatorId forward;
  OperatorId backward;
};

Tensor mean_over(const MeanKernels& kernels, const Tensor& input, const Dims& output, const PoolAttributes& attributes);

Tensor mean_adjoint(const MeanKernels& kernels, const Tensor& dy, const Dims& input_sizes,
                    const PoolAttributes& attributes) {
  Recording recording =
      record<0>("AvgPoolBackwardBackward0", {&dy}, [kernels, attributes, out = dy.impl().sizes()](Backward& b) {
        b.set(0, mean_over(kernels, b.grad(), out, attributes));
      });
  const Tensor dense_dy = dense(dy);
  Tensor dx = allocate_like(dy, input_sizes, dy.scalar_type());
  run(kernels.backward, state_of(dy), {view_of(dx)}, {view_of(dense_dy)}, &attributes);
  recording.output(dx);
  return dx;
}

Tensor mean_over(const MeanKernels& kernels, const Tensor& input, const Dims& output,
                 const PoolAttributes& attributes) {
  Recording recording =
      record<0>("AvgPoolBackward0", {&input}, [kernels, attributes, in = input.impl().sizes()](Backward& b) {
        b.set(0, mean_adjoint(kernels, b.grad(), in, attributes));
      });
  const Tensor x = dense(input);
  Tensor y;
  autograd::computed_once(kernels.name, {&y}, [&] {
    y = allocate_like(x, output, x.scalar_type());
    run(kernels.forward, state_of(x), {view_of(y)}, {view_of(x)}, &attributes);
  });
  y = in_format_of(input, y);
  recording.output(y);
  return y;
}

MeanKernels window_means() { return {"avg_pool", TENON_OP("avg_pool"), TENON_OP("avg_pool_backward")}; }
MeanKernels adaptive_means() {
  return {"adaptive_avg_pool", TENON_OP("adaptive_avg_pool"), TENON_OP("adaptive_avg_pool_backward")};
}

Tensor average(const char* op, int spatial, const Tensor& input, IntArrayRef kernel, IntArrayRef stride,
               IntArrayRef padding, bool ceil_mode, bool count_include_pad, std::optional<std::int64_t> divisor) {
  if (input.scalar_type() == kInt64) {
    // Means of integers, without their fractions. A mean that is whole may come out a little less.
    const Tensor means =
        average(op, spatial, input.to(kFloat64), kernel, stride, padding, ceil_mode, count_include_pad, divisor);
    return means.mul(1 + 1e-12).to(kInt64);
  }
  check_floating(op, input);
  if (divisor && *divisor == 0) throw Error(fmt::format("{}: divisor must be not zero", op));
  Windows windows = windows_of(op, spatial, input, kernel, stride, padding, 1, ceil_mode);
  if (spatial == 3) {
    for (int d = 0; d < 3; ++d) {
      const std::int64_t size = input.size(input.dim() - 3 + d);
      if (size >= windows.attributes.kernel[d]) continue;
      throw Error(
          fmt::format("{}: input of size {} is smaller than the kernel of size {} in dimension {}, whatever the "
                      "padding",
                      op, size, windows.attributes.kernel[d], d));
    }
  }
  windows.attributes.count_include_pad = count_include_pad;
  windows.attributes.divisor_override = divisor.value_or(0);
  const Tensor batched = windows.batched ? input : input.unsqueeze(0);
  return unbatched(mean_over(window_means(), batched, windows.output, windows.attributes), windows.batched);
}

Windows adaptive_windows(const char* op, int spatial, const Tensor& input, IntArrayRef output_size) {
  Windows windows;
  windows.attributes.spatial = spatial;
  check_input(op, input, spatial);
  std::int64_t sizes[3];
  spread(op, "output_size", output_size, spatial, sizes);
  windows.batched = input.dim() == spatial + 2;
  windows.output = {windows.batched ? input.size(0) : 1, input.size(input.dim() - spatial - 1)};
  for (int d = 0; d < spatial; ++d) {
    if (sizes[d] < 0)
      throw Error(fmt::format("{}: elements of output_size must be greater than or equal to 0, got {}", op,
                              to_string(output_size)));
    windows.output.push_back(sizes[d]);
  }
  return windows;
}

// --- columns --------------------------------------------------------------------------------------------------------

PoolAttributes column_attributes(const char* op, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                                 IntArrayRef stride) {
  PoolAttributes attributes;
  attributes.spatial = 2;
  spread(op, "kernel_size", kernel, 2, attributes.kernel);
  spread(op, "dilation", dilation, 2, attributes.dilation);
  spread(op, "padding", padding, 2, attributes.padding);
  spread(op, "stride", stride, 2, attributes.stride);
  for (int d = 0; d < 2; ++d) {
    if (attributes.kernel[d] <= 0 || attributes.dilation[d] <= 0 || attributes.stride[d] <= 0 ||
        attributes.padding[d] < 0) {
      throw Error(fmt::format(
          "{}: kernel_size, dilation and stride must be positive and padding not negative, got {}, {}, {}, {}", op,
          to_string(kernel), to_string(dilation), to_string(stride), to_string(padding)));
    }
  }
  return attributes;
}

std::int64_t column_count(const PoolAttributes& attributes, int d, std::int64_t size) {
  const std::int64_t reach = attributes.dilation[d] * (attributes.kernel[d] - 1) + 1;
  return size + 2 * attributes.padding[d] < reach
             ? 0
             : (size + 2 * attributes.padding[d] - reach) / attributes.stride[d] + 1;
}

Tensor to_columns(const Tensor& image, const PoolAttributes& attributes);

Tensor to_image(const Tensor& columns, const Dims& image_sizes, const PoolAttributes& attributes) {
  Recording recording = record<0>("Col2ImBackward0", {&columns},
                                  [attributes](Backward& b) { b.set(0, to_columns(b.grad(), attributes)); });
  const Tensor x = dense(columns);
  Tensor image = allocate_like(x, image_sizes, x.scalar_type());
  run(TENON_OP("col2im"), state_of(x), {view_of(image)}, {view_of(x)}, &attributes);
  recording.output(image);
  return image;
}

Tensor to_columns(const Tensor& image, const PoolAttributes& attributes) {
  const Dims sizes = image.impl().sizes();
  Recording recording = record<0>("Im2ColBackward0", {&image}, [attributes, sizes](Backward& b) {
    b.set(0, to_image(b.grad(), sizes, attributes));
  });
  const std::int64_t rows = column_count(attributes, 0, sizes[2]),
                     columns_across = column_count(attributes, 1, sizes[3]);
  if (rows < 1 || columns_across < 1) {
    throw Error(
        fmt::format("im2col: Given input with spatial size ({}, {}), kernel_size=({}, {}), dilation=({}, {}), "
                    "padding=({}, {}), calculated "
                    "shape of the array of sliding blocks as ({}, {}), but its components must be at least one.",
                    sizes[2], sizes[3], attributes.kernel[0], attributes.kernel[1], attributes.dilation[0],
                    attributes.dilation[1], attributes.padding[0], attributes.padding[1], rows, columns_across));
  }
  const std::int64_t windows = rows * columns_across;
  const Tensor x = dense(image);
  Tensor columns =
      allocate_like(x, {sizes[0], sizes[1] * attributes.kernel[0] * attributes.kernel[1], windows}, x.scalar_type());
  run(TENON_OP("im2col"), state_of(x), {view_of(columns)}, {view_of(x)}, &attributes);
  recording.output(columns);
  return columns;
}

}  // namespace

#define TENON_POOLING(D)                                                                                             \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input, IntArrayRef kernel_size,               \
                                                         IntArrayRef stride, IntArrayRef padding,                    \
                                                         IntArrayRef dilation, bool ceil_mode) {                     \
    TENON_SCOPE(max_pool##D##d_with_indices, input, kernel_size, stride, padding, dilation, ceil_mode)               \
    TENON_AUTOCAST_AS(max_pool##D##d, max_pool##D##d_with_indices(operands...), input, kernel_size, stride, padding, \
                      dilation, ceil_mode)                                                                           \
    return max_over("max_pool", TENON_OP("max_pool"), input,                                                         \
                    windows_of("max_pool" #D "d", D, input, kernel_size, stride, padding, dilation, ceil_mode));     \
  }                                                                                                                  \
  Tensor max_pool##D##d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,       \
                        IntArrayRef dilation, bool ceil_mode) {                                                      \
    TENON_SCOPE(max_pool##D##d, input, kernel_size, stride, padding, dilation, ceil_mode)                            \
    return std::get<0>(max_pool##D##d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode));       \
  }                                                                                                                  \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, IntArrayRef output_size) {                                     \
    TENON_AUTOCAST(adaptive_avg_pool##D##d, input, output_size)                                                      \
    check_floating("adaptive_avg_pool" #D "d", input);                                                               \
    const Windows windows = adaptive_windows("adaptive_avg_pool" #D "d", D, input, output_size);                     \
    const Tensor batched = windows.batched ? input : input.unsqueeze(0);                                             \
    return unbatched(mean_over(adaptive_means(), batched, windows.output, windows.attributes), windows.batched);     \
  }                                                                                                                  \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d(const Tensor& input, IntArrayRef output_size) {                 \
    TENON_AUTOCAST(adaptive_max_pool##D##d, input, output_size)                                                      \
    return max_over("adaptive_max_pool", TENON_OP("adaptive_max_pool"), input,                                       \
                    adaptive_windows("adaptive_max_pool" #D "d", D, input, output_size));                            \
  }
TENON_POOLING(1)
TENON_POOLING(2)
TENON_POOLING(3)
#undef TENON_POOLING

Tensor avg_pool1d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad) {
  TENON_SCOPE(avg_pool1d, input, kernel_size, stride, padding, ceil_mode, count_include_pad)
  return average("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, std::nullopt);
}
Tensor avg_pool2d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad, std::optional<std::int64_t> divisor_override) {
  TENON_SCOPE(avg_pool2d, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
  return average("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}
Tensor avg_pool3d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad, std::optional<std::int64_t> divisor_override) {
  TENON_AUTOCAST(avg_pool3d, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
  return average("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}

Tensor im2col(const Tensor& input, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
              IntArrayRef stride) {
  TENON_SCOPE(im2col, input, kernel_size, dilation, padding, stride)
  check_input("im2col", input, 2);
  const bool batched = input.dim() == 4;
  return unbatched(to_columns(batched ? input : input.unsqueeze(0),
                              column_attributes("im2col", kernel_size, dilation, padding, stride)),
                   batched);
}

Tensor col2im(const Tensor& input, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  TENON_SCOPE(col2im, input, output_size, kernel_size, dilation, padding, stride)
  const PoolAttributes attributes = column_attributes("col2im", kernel_size, dilation, padding, stride);
  std::int64_t plane[3];
  spread("col2im", "output_size", output_size, 2, plane);
  const bool batched = input.dim() == 3;
  const std::int64_t window = attributes.kernel[0] * attributes.kernel[1];
  const std::int64_t windows = column_count(attributes, 0, plane[0]) * column_count(attributes, 1, plane[1]);
  const std::int64_t rank = input.dim();
  if ((rank != 2 && rank != 3) || input.size(rank - 2) % window != 0 || input.size(rank - 1) != windows) {
    throw Error(
        fmt::format("col2im: expected input of (N, C * {}, {}) for output_size {} and kernel_size {}, but got input of "
                    "size {}",
                    window, windows, to_string(output_size), to_string(kernel_size), to_string(input.sizes())));
  }
  const Tensor columns = batched ? input : input.unsqueeze(0);
  return unbatched(to_image(columns, {columns.size(0), columns.size(1) / window, plane[0], plane[1]}, attributes),
                   batched);
}

}  // namespace tenon
