// A stand-in of cuBLASLt for the calls of the plugin: plain loops on emulated memory, in stream order. Arguments are
// held to what its documentation asks; what it leaves open ends the program with a sentence. It refuses an added bias
// in float64, so that the way without it is tried, too.
#include <cublasLt.h>

#include "support/emulated_cuda/libraries/operands.h"

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <set>

using namespace tenon::emulated_cuda;

namespace {

constexpr std::size_t kWorkspaceBytes = 8192;  // that its algorithm wants

struct Desc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t leading;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
  bool operator==(const Layout&) const = default;
};
struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256};
};

LibraryHandles<cublasLtHandle_t> g_handles;
Objects<cublasLtMatmulDesc_t, Desc> g_descs;
Objects<cublasLtMatrixLayout_t, Layout> g_layouts;
Objects<cublasLtMatmulPreference_t, Preference> g_preferences;

/// What an algorithm was found for: it may be used for nothing else.
struct Problem {
  cublasComputeType_t compute;
  cublasOperation_t op_a, op_b;
  cublasLtEpilogue_t epilogue;
  Layout a, b, c, d;
  std::array<std::uint32_t, 4> alignments;
  std::size_t workspace_bytes;
};
std::vector<Problem> g_problems;  // an algorithm is an index into these

Element element_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
      return Element::kF16;
    case CUDA_R_16BF:
      return Element::kBF16;
    case CUDA_R_32F:
      return Element::kF32;
    case CUDA_R_64F:
      return Element::kF64;
    default:
      misuse("cuBLASLt with type " + std::to_string(type) + " is not emulated");
  }
}

template <class T>
T attribute(const Call& call, const void* buffer, std::size_t bytes) {
  if (buffer == nullptr || bytes != sizeof(T))
    misuse(std::string(call.name()) + " was given an attribute of " + std::to_string(bytes) + " bytes, not " +
           std::to_string(sizeof(T)));
  T value;
  std::memcpy(&value, buffer, sizeof value);
  return value;
}

void expect_matrix(const Call& call, const Layout& m, const std::string& name, std::int32_t batch) {
  expect(call, m.rows > 0 && m.columns > 0, name + " is empty");
  expect(call, m.leading >= static_cast<std::int64_t>(m.rows),
         "the leading dimension of " + name + " is " + std::to_string(m.leading) + ", less than its " +
             std::to_string(m.rows) + " rows");
  expect(call, m.batch == batch, name + " has another number of products than the rest");
}

/// The sizes of a product that fits together.
void expect_consistent(const Call& call, const Problem& p) {
  const auto rows = [](const Layout& m, cublasOperation_t op) { return op == CUBLAS_OP_N ? m.rows : m.columns; };
  const auto columns = [](const Layout& m, cublasOperation_t op) { return op == CUBLAS_OP_N ? m.columns : m.rows; };
  expect_matrix(call, p.a, "A", p.d.batch);
  expect_matrix(call, p.b, "B", p.d.batch);
  expect_matrix(call, p.c, "C", p.d.batch);
  expect_matrix(call, p.d, "D", p.d.batch);
  expect(call, rows(p.a, p.op_a) == p.d.rows && columns(p.b, p.op_b) == p.d.columns,
         "op(A) op(B) has other sizes than D");
  expect(call, columns(p.a, p.op_a) == rows(p.b, p.op_b), "op(A) and op(B) do not fit together");
  expect(call, p.c.rows == p.d.rows && p.c.columns == p.d.columns, "C has other sizes than D");
  expect(call,
         p.d.batch == 1 || p.d.batch_stride > p.d.leading * static_cast<std::int64_t>(p.d.columns - 1) +
                                                  static_cast<std::int64_t>(p.d.rows) - 1,
         "the products of D overlap");
  const cudaDataType_t type = p.d.type;
  expect(call, p.a.type == type && p.b.type == type && p.c.type == type, "the matrices have several types");
  const bool fits = p.compute == CUBLAS_COMPUTE_64F             ? type == CUDA_R_64F
                    : p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? type == CUDA_R_32F
                                                                : p.compute == CUBLAS_COMPUTE_32F && type != CUDA_R_64F;
  expect(call, fits, "there is no product of these types with this compute type");
}

Region region(const void* pointer, const Layout& m) {
  const auto last =
      static_cast<std::size_t>((m.batch - 1) * m.batch_stride + m.leading * (static_cast<std::int64_t>(m.columns) - 1));
  return {reinterpret_cast<Address>(pointer), element_of(m.type), last + m.rows};
}

/// Element (row, column) of product `batch`.
std::size_t at(const Layout& m, cublasOperation_t op, std::int64_t batch, std::uint64_t row, std::uint64_t column) {
  if (op != CUBLAS_OP_N) std::swap(row, column);
  return static_cast<std::size_t>(batch * m.batch_stride) + column * static_cast<std::size_t>(m.leading) + row;
}

/// The ten bits of a mantissa that TF32 has, rounded to nearest.
double as_tf32(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~std::uint32_t{0x1fff});
}

struct Operands {
  double alpha, beta;
  Region a, b, c, d, bias;
};

/// In float64, rounded once: how the real one adds up is its own affair.
void multiply(Machine& machine, const Context& context, const Problem& p, const Operands& o) {
  const std::string what = "cublasLtMatmul";
  const Elements a(machine, context, o.a, what + " (A)"), b(machine, context, o.b, what + " (B)"),
      c(machine, context, o.beta == 0 ? Region{} : o.c, what + " (C)"),
      bias(machine, context, o.bias, what + " (bias)");
  Elements d(machine, context, o.d, what + " (D)");
  const std::uint64_t terms = p.op_a == CUBLAS_OP_N ? p.a.columns : p.a.rows;
  const bool tf32 = p.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  for (std::int64_t batch = 0; batch < p.d.batch; ++batch) {
    for (std::uint64_t column = 0; column < p.d.columns; ++column) {
      for (std::uint64_t row = 0; row < p.d.rows; ++row) {
        double sum = 0;
        for (std::uint64_t k = 0; k < terms; ++k) {
          const double left = a[at(p.a, p.op_a, batch, row, k)], right = b[at(p.b, p.op_b, batch, k, column)];
          sum += tf32 ? as_tf32(left) * as_tf32(right) : left * right;
        }
        double value = o.alpha * sum;
        if (o.beta != 0) value += o.beta * c[at(p.c, CUBLAS_OP_N, batch, row, column)];
        if (o.bias.count != 0) value += bias[row];
        d.set(at(p.d, CUBLAS_OP_N, batch, row, column), value);
      }
    }
  }
  d.write_back();
}

double number(const Desc& desc, const void* pointer) {
  if (desc.scale == CUDA_R_64F) return *static_cast<const double*>(pointer);
  return *static_cast<const float*>(pointer);
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  Call call("cublasLtCreate");
  return g_handles.make_in_context(call, handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  Call call("cublasLtDestroy");
  g_handles.destroy_in_context(call, handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_INITIALIZED ? "the library was not initialized" : "an error of the stand-in";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  Call call("cublasLtMatmulDescCreate", Call::Needs::kNothing);
  expect(call, scale == (compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F),
         "the type of alpha and beta does not fit");
  *desc = g_descs.make({compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  Call call("cublasLtMatmulDescDestroy", Call::Needs::kNothing);
  g_descs.destroy(call, desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t which,
                                              const void* buffer, std::size_t bytes) {
  Call call("cublasLtMatmulDescSetAttribute", Call::Needs::kNothing);
  Desc& desc = g_descs.get(call, handle);
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      desc.a = attribute<cublasOperation_t>(call, buffer, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      desc.b = attribute<cublasOperation_t>(call, buffer, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      desc.epilogue = attribute<cublasLtEpilogue_t>(call, buffer, bytes);
      expect(call, desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT || desc.epilogue == CUBLASLT_EPILOGUE_BIAS,
             "this epilogue is not emulated");
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      desc.bias = attribute<const void*>(call, buffer, bytes);
      break;
    default:
      misuse("cublasLtMatmulDescSetAttribute with attribute " + std::to_string(which) + " is not emulated");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  Call call("cublasLtMatrixLayoutCreate", Call::Needs::kNothing);
  *layout = g_layouts.make({type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  Call call("cublasLtMatrixLayoutDestroy", Call::Needs::kNothing);
  g_layouts.destroy(call, layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t which,
                                                const void* buffer, std::size_t bytes) {
  Call call("cublasLtMatrixLayoutSetAttribute", Call::Needs::kNothing);
  Layout& layout = g_layouts.get(call, handle);
  switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      layout.batch = attribute<std::int32_t>(call, buffer, bytes);
      break;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      layout.batch_stride = attribute<std::int64_t>(call, buffer, bytes);
      break;
    default:
      misuse("cublasLtMatrixLayoutSetAttribute with attribute " + std::to_string(which) + " is not emulated");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  Call call("cublasLtMatmulPreferenceCreate", Call::Needs::kNothing);
  *preference = g_preferences.make({});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  Call call("cublasLtMatmulPreferenceDestroy", Call::Needs::kNothing);
  g_preferences.destroy(call, preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* buffer,
                                                    std::size_t bytes) {
  Call call("cublasLtMatmulPreferenceSetAttribute", Call::Needs::kNothing);
  Preference& preference = g_preferences.get(call, handle);
  if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    preference.workspace_bytes = attribute<std::uint64_t>(call, buffer, bytes);
    call.machine().offered_workspace_bytes = preference.workspace_bytes;
  } else if (which >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
             which <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) {
    preference.alignments.at(which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) =
        attribute<std::uint32_t>(call, buffer, bytes);
  } else {
    misuse("cublasLtMatmulPreferenceSetAttribute with attribute " + std::to_string(which) + " is not emulated");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc_handle,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference_handle, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  Call call("cublasLtMatmulAlgoGetHeuristic");
  g_handles.get(call, handle);
  const Desc& desc = g_descs.get(call, desc_handle);
  const Preference& preference = g_preferences.get(call, preference_handle);
  const Problem problem{desc.compute,
                        desc.a,
                        desc.b,
                        desc.epilogue,
                        g_layouts.get(call, a),
                        g_layouts.get(call, b),
                        g_layouts.get(call, c),
                        g_layouts.get(call, d),
                        preference.alignments,
                        preference.workspace_bytes < kWorkspaceBytes ? 0 : kWorkspaceBytes};
  expect_consistent(call, problem);
  expect(call, wanted > 0, "no algorithm is asked for");
  *count = 0;
  if (desc.epilogue == CUBLASLT_EPILOGUE_BIAS && desc.compute == CUBLAS_COMPUTE_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
  g_problems.push_back(problem);
  results[0] = {};
  results[0].algo.data[0] = g_problems.size();
  results[0].workspaceSize = problem.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc_handle, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream_handle) {
  Call call("cublasLtMatmul");
  if (call.refused()) return CUBLAS_STATUS_EXECUTION_FAILED;
  Machine& machine = call.machine();
  Stream& stream = call.stream(stream_handle);
  g_handles.expect_in_context(call, handle, stream);
  const Desc& desc = g_descs.get(call, desc_handle);
  expect(call, algorithm != nullptr && algorithm->data[0] > 0 && algorithm->data[0] <= g_problems.size(),
         "the algorithm is none that was found");
  const Problem p = g_problems[algorithm->data[0] - 1];
  const bool same = p.compute == desc.compute && p.op_a == desc.a && p.op_b == desc.b && p.epilogue == desc.epilogue &&
                    p.a == g_layouts.get(call, a_layout) && p.b == g_layouts.get(call, b_layout) &&
                    p.c == g_layouts.get(call, c_layout) && p.d == g_layouts.get(call, d_layout);
  expect(call, same, "the algorithm was found for another problem");
  expect_host(call, machine, alpha, "alpha");
  expect_host(call, machine, beta, "beta");
  expect_device(call, machine, a, p.alignments[0], "A");
  expect_device(call, machine, b, p.alignments[1], "B");
  expect_device(call, machine, c, p.alignments[2], "C");
  expect_device(call, machine, d, p.alignments[3], "D");
  expect(call, c != d || p.c == p.d, "C is D, but is laid out otherwise");
  expect_workspace(call, machine, workspace, workspace_bytes, p.workspace_bytes);

  Operands o{.alpha = number(desc, alpha),
             .beta = number(desc, beta),
             .a = region(a, p.a),
             .b = region(b, p.b),
             .c = region(c, p.c),
             .d = region(d, p.d)};
  if (desc.epilogue == CUBLASLT_EPILOGUE_BIAS) {
    expect_device(call, machine, desc.bias, p.alignments[3], "the bias");
    o.bias = {reinterpret_cast<Address>(desc.bias), o.d.element, p.d.rows};
  }
  Work work{.run = [&machine, context = stream.context, p, o, workspace, workspace_bytes] {
    use_workspace(machine, *context, workspace, workspace_bytes, "cublasLtMatmul");
    multiply(machine, *context, p, o);
  }};
  for (const Region& region : {o.a, o.b, o.c, o.bias})
    work.touches.push_back({region.address, region.bytes(), Work::Use::kReads});
  work.touches.push_back({o.d.address, o.d.bytes(), Work::Use::kWrites});
  work.touches.push_back({reinterpret_cast<Address>(workspace), workspace_bytes, Work::Use::kWrites});
  return call.queue(stream, std::move(work)) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
