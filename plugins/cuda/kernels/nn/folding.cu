// im2col and col2im: the windows of (N, C, H, W) as columns (N, C * kernel, L), and their sum back. Each element is
// gathered by a thread of its own, so that sums have one order.
#include <tenon/kernel/attributes/linear.h>

#include "kernels/launch.h"
#include "kernels/offsets.cuh"

namespace tenon::cuda {
namespace {

struct Windows {
  i64 planes;
  int h, w, kh, kw, oh, ow;
  int stride[2], padding[2], dilation[2];

  Windows(const TensorView& picture, const PoolAttributes& a)
      : planes(picture.sizes[0] * picture.sizes[1]),
        h(static_cast<int>(picture.sizes[2])),
        w(static_cast<int>(picture.sizes[3])),
        kh(static_cast<int>(a.kernel[0])),
        kw(static_cast<int>(a.kernel[1])) {
    for (int d = 0; d < 2; ++d) {
      stride[d] = static_cast<int>(a.stride[d]);
      padding[d] = static_cast<int>(a.padding[d]);
      dilation[d] = static_cast<int>(a.dilation[d]);
    }
    oh = (h + 2 * padding[0] - dilation[0] * (kh - 1) - 1) / stride[0] + 1;
    ow = (w + 2 * padding[1] - dilation[1] * (kw - 1) - 1) / stride[1] + 1;
  }
  i64 columns() const { return planes * kh * kw * oh * ow; }
};

// Elements are moved as what they are: T is a type of their size.
template <class T>
__global__ void unfold_kernel(Windows s, const T* picture, T* columns, i64 n) {
  for (i64 i = first_item(); i < n; i += all_items()) {
    i64 rest = i / s.ow;
    const int c = static_cast<int>(i % s.ow), r = static_cast<int>(rest % s.oh);
    rest /= s.oh;
    const int kx = static_cast<int>(rest % s.kw);
    rest /= s.kw;
    const int ky = static_cast<int>(rest % s.kh);
    const i64 plane = rest / s.kh;
    const int y = r * s.stride[0] - s.padding[0] + ky * s.dilation[0];
    const int x = c * s.stride[1] - s.padding[1] + kx * s.dilation[1];
    const bool inside = y >= 0 && y < s.h && x >= 0 && x < s.w;
    columns[i] = inside ? picture[(plane * s.h + y) * s.w + x] : T(0);
  }
}

template <class T>
__global__ void fold_kernel(Windows s, const T* columns, T* picture, i64 n) {
  for (i64 i = first_item(); i < n; i += all_items()) {
    const int x = static_cast<int>(i % s.w), y = static_cast<int>(i / s.w % s.h);
    const i64 plane = i / s.w / s.h;
    Compute<T> sum = 0;
    for (int ky = 0; ky < s.kh; ++ky) {
      const int row = y + s.padding[0] - ky * s.dilation[0], r = row / s.stride[0];
      if (row < 0 || row % s.stride[0] != 0 || r >= s.oh) continue;
      for (int kx = 0; kx < s.kw; ++kx) {
        const int column = x + s.padding[1] - kx * s.dilation[1], c = column / s.stride[1];
        if (column < 0 || column % s.stride[1] != 0 || c >= s.ow) continue;
        sum += load_as(columns[(((plane * s.kh + ky) * s.kw + kx) * s.oh + r) * s.ow + c]);
      }
    }
    picture[i] = store_as<T>(sum);
  }
}

void im2col(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &y = outputs[0], &x = inputs[0];
  const Windows windows(x, *static_cast<const PoolAttributes*>(attributes));
  bits_of(x.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(windows.columns()), .block = kThreads}, unfold_kernel<T>, windows, x.as<T>(),
           y.as<T>(), windows.columns());
  });
}

void col2im(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &y = outputs[0], &x = inputs[0];
  const Windows windows(y, *static_cast<const PoolAttributes*>(attributes));
  numbers_only("col2im", y.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(y.element_count()), .block = kThreads}, fold_kernel<T>, windows, x.as<T>(),
           y.as<T>(), y.element_count());
  });
}

}  // namespace

void add_folding(const KernelSink& sink) {
  sink.add(sink.host, "im2col", &im2col);
  sink.add(sink.host, "col2im", &col2im);
}

}  // namespace tenon::cuda
