// Printing: the layout of PyTorch's C++ front end, so that what users compare by eye looks the same. Numbers of one
// tensor share a width and, where their magnitudes call for it, a scale or the scientific form. Declared in tensor.h.
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

namespace tenon {

namespace {

constexpr std::int64_t kLineWidth = 80;

/// Puts a stream's format back as it was.
class FormatGuard {
 public:
  explicit FormatGuard(std::ostream& stream) : stream_(stream), saved_(nullptr) { saved_.copyfmt(stream); }
  ~FormatGuard() { stream_.copyfmt(saved_); }
  FormatGuard(const FormatGuard&) = delete;
  FormatGuard& operator=(const FormatGuard&) = delete;

 private:
  std::ostream& stream_;
  std::ios saved_;
};

struct NumberFormat {
  double scale = 1;
  int width = 0;
};

/// Decimal digits before the point; 1 for zero.
double digits_of(double magnitude) { return magnitude == 0 ? 1 : std::floor(std::log10(magnitude)) + 1; }

/// Chooses how all numbers are shown and sets the stream up for it.
NumberFormat choose_format(std::ostream& stream, const double* values, std::int64_t count) {
  bool whole = true;
  bool any = false;
  double least = 0;
  double most = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) continue;
    const double magnitude = std::fabs(values[i]);
    whole = whole && values[i] == std::ceil(values[i]);
    if (!any) {
      least = most = magnitude;
      any = true;
    }
    least = std::min(least, magnitude);
    most = std::max(most, magnitude);
  }
  const double low = any ? digits_of(least) : 1;
  const double high = any ? digits_of(most) : 1;
  NumberFormat format;
  if (whole) {
    if (high > 9) {
      format.width = 11;
      stream << std::scientific << std::setprecision(4);
    } else {
      format.width = static_cast<int>(high) + 1;
      stream << std::defaultfloat;
    }
  } else if (high - low > 4) {
    format.width = std::fabs(high) > 99 || std::fabs(low) > 99 ? 12 : 11;
    stream << std::scientific << std::setprecision(4);
  } else {
    if (high > 5 || high < 0) {
      format.width = 7;
      format.scale = std::pow(10, high - 1);
    } else {
      format.width = high == 0 ? 7 : static_cast<int>(high) + 6;
    }
    stream << std::fixed << std::setprecision(4);
  }
  return format;
}

void print_scale(std::ostream& stream, double scale) {
  const FormatGuard guard(stream);
  stream << std::defaultfloat << scale << " *" << '\n';
}

/// Rows of a matrix, in groups of as many columns as a line holds; each line begins with `indent` spaces but the first.
void print_matrix(std::ostream& stream, const double* values, std::int64_t rows, std::int64_t columns,
                  std::int64_t indent) {
  const FormatGuard guard(stream);
  const NumberFormat format = choose_format(stream, values, rows * columns);
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  stream << margin;
  const std::int64_t per_line = std::max<std::int64_t>(1, (kLineWidth - indent) / (format.width + 1));
  for (std::int64_t first = 0; first < columns; first += per_line) {
    const std::int64_t last = std::min(first + per_line, columns) - 1;
    if (per_line < columns) {
      if (first != 0) stream << '\n';
      stream << "Columns " << first + 1 << " to " << last + 1 << margin;
    }
    if (format.scale != 1) {
      print_scale(stream, format.scale);
      stream << margin;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = first; column <= last; ++column) {
        stream << std::setw(format.width) << values[row * columns + column] / format.scale;
        if (column != last) {
          stream << ' ';
          continue;
        }
        stream << '\n';
        if (row != rows - 1) stream << (format.scale != 1 ? margin + margin : margin);
      }
    }
  }
}

/// Tensors of rank 3 and more: the matrices of the last two dimensions, each under its index, counted from 1.
void print_stack(std::ostream& stream, const double* values, IntArrayRef sizes) {
  const std::size_t leading = sizes.size() - 2;
  const std::int64_t rows = sizes[leading];
  const std::int64_t columns = sizes[leading + 1];
  std::vector<std::int64_t> index(leading, 0);
  for (bool first = true;; first = false) {
    if (!first) stream << '\n';
    stream << '(';
    for (const std::int64_t i : index) stream << i + 1 << ',';
    stream << ".,.) = " << '\n';
    std::int64_t matrix = 0;
    for (std::size_t d = 0; d < leading; ++d) matrix = matrix * sizes[d] + index[d];
    print_matrix(stream, values + matrix * rows * columns, rows, columns, 1);
    // The first index runs fastest, as PyTorch has it.
    std::size_t d = 0;
    while (d < leading && ++index[d] == sizes[d]) index[d++] = 0;
    if (d == leading) return;
  }
}

void print_values(std::ostream& stream, const Tensor& tensor) {
  const IntArrayRef sizes = tensor.sizes();
  NoGradGuard no_grad;
  const Tensor host = tensor.detach().to(TensorOptions(Device(kCPU)).dtype(kFloat64)).contiguous();
  const auto* values = static_cast<const double*>(host.data_ptr());
  if (sizes.empty()) {
    stream << fmt::format("{}", values[0]) << '\n';  // the fewest digits that say which it is
  } else if (tensor.numel() > 0 && sizes.size() == 1) {
    const FormatGuard numbers(stream);
    const NumberFormat format = choose_format(stream, values, sizes[0]);
    if (format.scale != 1) print_scale(stream, format.scale);
    for (std::int64_t i = 0; i < sizes[0]; ++i) stream << std::setw(format.width) << values[i] / format.scale << '\n';
  } else if (tensor.numel() > 0 && sizes.size() == 2) {
    print_matrix(stream, values, sizes[0], sizes[1], 0);
  } else if (tensor.numel() > 0) {
    print_stack(stream, values, sizes);
  }
}

/// As PyTorch's Python front end writes such a tensor.
void print_without_values(std::ostream& stream, const Tensor& tensor) {
  const IntArrayRef sizes = tensor.sizes();
  stream << "tensor(..., device='" << tensor.device().type().name() << "', size=(";
  for (std::size_t d = 0; d < sizes.size(); ++d) stream << (d == 0 ? "" : ", ") << sizes[d];
  stream << (sizes.size() == 1 ? ",))" : "))") << '\n';
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  const FormatGuard guard(stream);
  if (!tensor.defined()) return stream << "[ Tensor (undefined) ]";
  if (ops::has_values(tensor)) {
    print_values(stream, tensor);
  } else {
    print_without_values(stream, tensor);
  }
  stream << "[ " << tensor.toString() << '{';
  const IntArrayRef sizes = tensor.sizes();
  for (std::size_t d = 0; d < sizes.size(); ++d) stream << (d == 0 ? "" : ",") << sizes[d];
  return stream << "} ]";
}

}  // namespace tenon
