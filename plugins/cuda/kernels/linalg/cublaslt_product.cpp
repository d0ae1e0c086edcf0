// Matrix products by cuBLASLt. It thinks in columns: a row-major y is computed as y^T = b^T a^T, and a row-major
// operand is a transposed one, so that nothing is copied.
#include "handles.h"
#include "kernels/driver_of.h"
#include "kernels/kernels.h"
#include "kernels/launch.h"
#include "kernels/libraries/cublaslt.h"
#include "kernels/linalg/product.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace tenon::cuda {
namespace {

// What NVIDIA recommends; an algorithm takes what it wants of it.
constexpr std::size_t kWorkspaceBytes = std::size_t{4} << 20;
constexpr std::size_t kWorkspaceBytesOfHopper = std::size_t{32} << 20;

cudaDataType_t cublas_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return CUDA_R_16F;
    case Dtype::kBFloat16:
      return CUDA_R_16BF;
    case Dtype::kFloat32:
      return CUDA_R_32F;
    default:
      return CUDA_R_64F;
  }
}

template <class T>
using OfCublas = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

template <class T, class Set, class Which, class Value>
void set_attribute(Set* function, const T& of, Which which, const Value& value) {
  cublaslt().check(function(of.get(), which, &value, sizeof value), "setting an attribute");
}

/// The largest power of two up to 256 that the address is a multiple of.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(address & -address, 256));
}

// A matrix as cuBLASLt reads it: column-major, perhaps transposed.
struct ColumnMajor {
  const void* data;
  cublasOperation_t operation = CUBLAS_OP_N;
  std::int64_t rows, columns, leading, batch_stride;

  explicit ColumnMajor(const Matrix& given) : data(given.data), batch_stride(given.batch_stride) {
    const bool transposed = !given.column_major();
    const Matrix m = transposed ? given.transposed() : given;
    operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    rows = m.rows;
    columns = m.columns;
    leading = m.columns == 1 ? m.rows : std::max(m.column_stride, m.rows);
  }
  std::uint32_t alignment() const { return alignment_of(data); }
  OfCublas<cublasLtMatrixLayout_t> layout(cudaDataType_t type, std::int64_t batch) const {
    cublasLtMatrixLayout_t made = nullptr;
    cublaslt().check(cublaslt().layout_create(&made, type, static_cast<std::uint64_t>(rows),
                                              static_cast<std::uint64_t>(columns), leading),
                     "cublasLtMatrixLayoutCreate");
    OfCublas<cublasLtMatrixLayout_t> owned(made, cublaslt().layout_destroy);
    if (batch > 1) {
      set_attribute(cublaslt().layout_set, owned, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
      set_attribute(cublaslt().layout_set, owned, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
    }
    return owned;
  }
  void add_to(ProblemKey& key) const { key.add({operation, rows, columns, leading, batch_stride, alignment()}); }
};

// How the addend gets into y.
enum class Adding { kNothing, kBias, kAddend, kInPlace };

// y column-major: d = alpha a b + beta c, or + bias.
struct CublasProblem {
  const Product& of;
  ColumnMajor a, b, c, d;
  Adding adding;
  const void* bias = nullptr;
  double beta = 0;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;

  /// That of what is written; of a bias, too, which is read in the same steps.
  std::uint32_t result_alignment() const {
    return bias == nullptr ? d.alignment() : std::min(d.alignment(), alignment_of(bias));
  }
  ProblemKey key() const {
    ProblemKey key;
    key.add({static_cast<std::int64_t>(of.dtype), of.batch, static_cast<std::int64_t>(adding), beta != 0, compute,
             result_alignment()});
    for (const ColumnMajor* operand : {&a, &b, &c, &d}) operand->add_to(key);
    return key;
  }
};

// False: no algorithm of the library does this.
bool run_cublas(KernelContext& context, const CublasProblem& p) {
  const CublasLt& library = cublaslt();
  CudaDriver& driver = driver_of(context);
  const ContextGuard guard(driver.context());
  const cudaDataType_t type = cublas_type(p.of.dtype);

  cublasLtMatmulDesc_t made = nullptr;
  library.check(library.desc_create(&made, p.compute, p.scale), "cublasLtMatmulDescCreate");
  const OfCublas<cublasLtMatmulDesc_t> desc(made, library.desc_destroy);
  set_attribute(library.desc_set, desc, CUBLASLT_MATMUL_DESC_TRANSA, p.a.operation);
  set_attribute(library.desc_set, desc, CUBLASLT_MATMUL_DESC_TRANSB, p.b.operation);
  if (p.adding == Adding::kBias) {
    set_attribute(library.desc_set, desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set_attribute(library.desc_set, desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  }
  const auto a = p.a.layout(type, p.of.batch), b = p.b.layout(type, p.of.batch), c = p.c.layout(type, p.of.batch),
             d = p.d.layout(type, p.of.batch);

  const ProductChoice choice = driver.libraries().products.get(p.key(), [&] {
    cublasLtMatmulPreference_t wanted = nullptr;
    library.check(library.preference_create(&wanted), "cublasLtMatmulPreferenceCreate");
    const OfCublas<cublasLtMatmulPreference_t> preference(wanted, library.preference_destroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      set_attribute(library.preference_set, preference, which, value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
           driver.limits().capability >= 90 ? kWorkspaceBytesOfHopper : kWorkspaceBytes);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.a.alignment());
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.b.alignment());
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.c.alignment());
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.result_alignment());
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status = library.heuristic(driver.libraries().cublaslt(), desc.get(), a.get(), b.get(),
                                                    c.get(), d.get(), preference.get(), 1, &result, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
      return ProductChoice{};
    library.check(status, "cublasLtMatmulAlgoGetHeuristic");
    return ProductChoice{result.state == CUBLAS_STATUS_SUCCESS, result.algo, result.workspaceSize};
  });
  if (!choice.possible) return false;

  const auto alpha32 = static_cast<float>(p.of.alpha), beta32 = static_cast<float>(p.beta);
  const bool wide = p.scale == CUDA_R_64F;
  const void* const alpha = wide ? static_cast<const void*>(&p.of.alpha) : &alpha32;
  const void* const beta = wide ? static_cast<const void*>(&p.beta) : &beta32;
  library.check(
      library.matmul(driver.libraries().cublaslt(), desc.get(), alpha, p.a.data, a.get(), p.b.data, b.get(), beta,
                     p.c.data, c.get(), const_cast<void*>(p.d.data), d.get(), &choice.algorithm,
                     context.scratch(choice.workspace_bytes), choice.workspace_bytes, native(context.stream())),
      "cublasLtMatmul");
  return true;
}

// A view on a matrix, for the copy of an addend.
struct MatrixView {
  MatrixView(const Matrix& m, std::int64_t batch, Dtype dtype) : sizes{batch, m.rows, m.columns} {
    strides[0] = m.batch_stride;
    strides[1] = m.row_stride;
    strides[2] = m.column_stride;
    view = {m.data, sizes, strides, 3, dtype};
  }
  std::int64_t sizes[3], strides[3];
  TensorView view;
};

}  // namespace

bool cublaslt_product(KernelContext& context, const Product& given) {
  if (!cublaslt().usable) return false;
  Product p = given;
  if (!p.y.column_major()) {
    p.y = p.y.transposed();
    p.addend = p.addend.transposed();
    std::swap(p.a, p.b);
    p.a = p.a.transposed();
    p.b = p.b.transposed();
  }
  const ColumnMajor d(p.y);
  CublasProblem problem{
      .of = p, .a = ColumnMajor(p.a), .b = ColumnMajor(p.b), .c = d, .d = d, .adding = Adding::kNothing};
  if (p.dtype == Dtype::kFloat64) {
    problem.compute = CUBLAS_COMPUTE_64F;
    problem.scale = CUDA_R_64F;
  } else if (p.dtype == Dtype::kFloat32 && driver_of(context).switches().matmul_allow_tf32) {
    problem.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  }
  const Matrix& addend = p.addend;
  if (addend.data == nullptr) return run_cublas(context, problem);

  // One number for each row of d, the same in every column: the library adds it while it writes.
  const bool is_bias = p.beta == 1 && (addend.row_stride == 1 || addend.rows == 1) &&
                       (addend.column_stride == 0 || addend.columns == 1) && addend.batch_stride == 0;
  if (is_bias && addend.data != p.y.data) {
    problem.adding = Adding::kBias;
    problem.bias = addend.data;
    if (run_cublas(context, problem)) return true;
    problem.bias = nullptr;
  }
  problem.beta = p.beta;
  problem.adding = Adding::kInPlace;
  if (addend.data != p.y.data) {
    const bool lies_alike =
        (addend.row_stride == 1 || addend.rows == 1) && (addend.column_stride >= addend.rows || addend.columns == 1);
    if (lies_alike) {
      problem.adding = Adding::kAddend;
      problem.c = ColumnMajor(addend);
    } else {
      copy_view(context, MatrixView(p.y, p.batch, p.dtype).view, MatrixView(addend, p.batch, p.dtype).view);
    }
  }
  return run_cublas(context, problem);
}

}  // namespace tenon::cuda
