// The device kinds that have a constant, in the order of their ids: Tenon's, and those that libtorch names, so that
// programs which mention them compile. A row is only a name: every kind, these too, works once a plugin supplies a
// backend of that name, and a kind needs no row.
TENON_DEVICE_KIND(CPU, "cpu")
TENON_DEVICE_KIND(CUDA, "cuda")
TENON_DEVICE_KIND(Simulated, "simulated")
TENON_DEVICE_KIND(MKLDNN, "mkldnn")
TENON_DEVICE_KIND(OPENGL, "opengl")
TENON_DEVICE_KIND(OPENCL, "opencl")
TENON_DEVICE_KIND(IDEEP, "ideep")
TENON_DEVICE_KIND(HIP, "hip")
TENON_DEVICE_KIND(FPGA, "fpga")
TENON_DEVICE_KIND(XLA, "xla")
TENON_DEVICE_KIND(Vulkan, "vulkan")
TENON_DEVICE_KIND(Metal, "metal")
TENON_DEVICE_KIND(XPU, "xpu")
TENON_DEVICE_KIND(MPS, "mps")
TENON_DEVICE_KIND(Meta, "meta")
TENON_DEVICE_KIND(HPU, "hpu")
