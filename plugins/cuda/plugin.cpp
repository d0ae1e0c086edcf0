// The CUDA backend plugin: devices, memory, streams. It loads on a machine without a driver and says that there is
// none.
#include "check.h"
#include "driver.h"
#include "kernels/kernels.h"
#include "nvml.h"
#include "nvtx.h"

#include <tenon/plugin/backend_plugin.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::cuda {
namespace {

class CudaBackend final : public Backend, public ReportsUse {
 public:
  std::string name() const override { return "cuda"; }
  std::string summary() const override { return "NVIDIA GPUs: cudaMalloc, cuMem virtual memory, streams, events"; }

  OptionSchema options() const override {
    const Switches defaults;
    return {OptionSpec::size("capacity", 0, "bytes of each device that Tenon may use; 0 = all of them"),
            OptionSpec::boolean("matmul_allow_tf32", defaults.matmul_allow_tf32,
                                "matrix products of float32 may round their operands to 10 bits, for speed"),
            OptionSpec::boolean("cudnn_allow_tf32", defaults.cudnn_allow_tf32, "convolutions of float32 may, too"),
            OptionSpec::boolean("cudnn_benchmark", defaults.cudnn_benchmark,
                                "measures the algorithms for each new shape of a convolution and takes the fastest"),
            OptionSpec::boolean("cudnn_deterministic", defaults.cudnn_deterministic,
                                "convolutions give the same bits from run to run"),
            OptionSpec::boolean("nvtx", false, "ranges of operators, modules and phases, for Nsight Systems")};
  }
  void configure(const Options& options) override {
    capacity_bytes_ = options.size("capacity");
    switches_ = {.matmul_allow_tf32 = options.boolean("matmul_allow_tf32"),
                 .cudnn_allow_tf32 = options.boolean("cudnn_allow_tf32"),
                 .cudnn_benchmark = options.boolean("cudnn_benchmark"),
                 .cudnn_deterministic = options.boolean("cudnn_deterministic")};
    ranges_.reset();
    if (!options.boolean("nvtx")) return;
    if (!has_nvtx())
      throw Error(
          "device.cuda.nvtx: this plugin was built without NVTX: install the CUDA Toolkit with its header "
          "nvtx3/nvToolsExt.h and build again");
    ranges_ = std::make_unique<NvtxRanges>();
  }

  int device_count() override {
    const std::lock_guard lock(mutex_);
    return count_locked();
  }
  std::string why_unavailable() const override {
    const std::lock_guard lock(mutex_);
    return why_;
  }

  DeviceDriver& device(int index) override {
    const std::lock_guard lock(mutex_);
    const int count = count_locked();
    if (index < 0 || index >= count) {
      throw Error("there is no device cuda:" + std::to_string(index) + ": " +
                  (count == 0 ? why_ : std::to_string(count) + " CUDA device(s) are there, counted from 0"));
    }
    drivers_.resize(static_cast<std::size_t>(count));
    auto& driver = drivers_[static_cast<std::size_t>(index)];
    if (driver == nullptr) driver = std::make_unique<CudaDriver>(index, capacity_bytes_, switches_);
    return *driver;
  }

  void shutdown() noexcept override {
    ranges_.reset();
    drivers_.clear();
  }

  DeviceUse look(int index) override { return nvml_.look(pci_address(index)); }

 private:
  /// "00000000:65:00.0": the indices of NVML are others where CUDA_VISIBLE_DEVICES says so.
  static std::string pci_address(int index) {
    const auto attribute = [&](cudaDeviceAttr which) {
      int value = 0;
      check(cudaDeviceGetAttribute(&value, which, index), "cudaDeviceGetAttribute");
      return static_cast<unsigned>(value);
    };
    char address[32];
    std::snprintf(address, sizeof address, "%08x:%02x:%02x.0", attribute(cudaDevAttrPciDomainId),
                  attribute(cudaDevAttrPciBusId), attribute(cudaDevAttrPciDeviceId));
    return address;
  }

  int count_locked() {
    why_.clear();
    int driver = 0;  // 0: there is none
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0 && driver < kOldestDriver) {
      why_ = "the NVIDIA driver is one for CUDA " + version_text(driver) + "; Tenon needs one for CUDA " +
             version_text(kOldestDriver) + " or newer";
      return 0;
    }
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess) {
      if (count == 0) why_ = "the driver sees no CUDA device";
      return count;
    }
    cudaGetLastError();
    why_ = cudaGetErrorString(status);
    if (status == cudaErrorInsufficientDriver)
      why_ += ": no NVIDIA driver, or one older than the CUDA runtime that Tenon was built with";
    return 0;
  }

  std::size_t capacity_bytes_ = 0;
  Switches switches_;
  Nvml nvml_;
  std::unique_ptr<NvtxRanges> ranges_;  ///< null: nobody wants them
  mutable std::mutex mutex_;            // guards what follows
  std::string why_;
  std::vector<std::unique_ptr<CudaDriver>> drivers_;
};

void register_cuda(plugin::Host& host) {
  host.add_backend(std::make_unique<CudaBackend>());
  add_all_kernels(
      {.add = [](void* to, const char* operator_name,
                 Kernel kernel) { static_cast<plugin::Host*>(to)->add_kernel(kCUDA, operator_name, kernel); },
       .host = &host});
}

}  // namespace
}  // namespace tenon::cuda

TENON_PLUGIN(cuda, "0.1.0", &tenon::cuda::register_cuda)
