// What the interpreter does not know ends the program with its name, and is never taken for something else.
#include "kernels.h"

#include "support/emulated_cuda/emulated_cuda.h"
#include "support/emulated_cuda/ptx/module.h"

#include <gtest/gtest.h>

#include <string>

namespace tenon::ptx_test {
namespace {

/// A kernel of one instruction.
std::string kernel_of(const std::string& instruction) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n"
         ".reg .b64 %rd<9>;\n.reg .pred %p<3>;\n" +
         instruction + ";\nret;\n}\n";
}

TEST(PtxUnknown, OpcodesAreNamed) {
  emulated_cuda::ptx::read_module(kernel_of("add.s32 %r1, %r2, %r3")).function("k");  // as it is read otherwise
  for (const auto& [instruction, opcode] : {
           std::pair{"tex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}]", "tex.2d.v4.f32.s32"},
           {"suld.b.1d.b32.trap %r1, [%rd1, {%r2}]", "suld.b.1d.b32.trap"},
           {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1}, {%r2}, {%r3}, {%r4}", "mma.sync.aligned"},
           {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1}, [%rd1], %r2", "wmma.load.a.sync"},
           {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, "
            "%r8}",
            "mma.sync.aligned.m16n8k16.row.col.f16"},
           {"ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%rd1]", "ldmatrix.sync.aligned.m8n16"},
           {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%rd1], {%r1}", "stmatrix.sync.aligned"},
           {"cp.async.ca.shared.global.L2::128B [%r1], [%rd1], 16", "cp.async.ca.shared.global.L2"},
           {"cp.async.mbarrier.arrive.shared.b64 [%r1]", "cp.async.mbarrier.arrive"},
           {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3]",
            "cp.async.bulk"},
           {"mbarrier.init.shared.b64 [%rd1], 1", "mbarrier.init.shared.b64"},
           {"barrier.cluster.arrive", "barrier.cluster.arrive"},
           {"mapa.shared::cluster.u32 %r1, %r2, 0", "mapa.shared::cluster.u32"},
           {"ld.shared::cluster.u32 %r1, [%r2]", "ld.shared::cluster.u32"},
           {"st.async.shared::cluster.b32 [%r1], %r2", "st.async.shared::cluster.b32"},
           {"atom.global.inc.u32 %r1, [%rd1], %r2", "atom.global.inc.u32"},
           {"fence.proxy.async", "fence.proxy.async"},
           {"redux.sync.add.s32 %r1, %r2, -1", "redux.sync.add.s32"},
           {"dp2a.lo.s32.s32 %r1, %r2, %r3, %r4", "dp2a.lo.s32.s32"},
           {"bar.sync 1, 64", "bar.sync for a part of the block"},
           {"griddepcontrol.wait", "griddepcontrol.wait"},
       }) {
    EXPECT_DEATH(emulated_cuda::ptx::read_module(kernel_of(instruction)).function("k"),
                 "the PTX opcode " + std::string(opcode) + ".* is not emulated");
  }
}

TEST(PtxUnknown, DeclarationsAreQuoted) {
  EXPECT_DEATH(emulated_cuda::ptx::read_module(".version 8.0\n.target sm_90\n.address_size 64\n.alias a, b;\n"),
               "does not know \"\\.alias a, b\"");
}

TEST(PtxUnknown, ALaunchWithAttributesIsNamed) {
  emulated_cuda::start({});
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_DEATH(cudaLaunchKernelExC(&config, nullptr, nullptr), "cudaLaunchKernelExC with attributes is not emulated");
}

}  // namespace
}  // namespace tenon::ptx_test
