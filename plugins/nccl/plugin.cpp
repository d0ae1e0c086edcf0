// The plugin nccl: processes with a GPU each compute together over NVIDIA's NCCL.
#include "communicator.h"

#include <tenon/plugin/communicator_plugin.h>

namespace tenon::nccl {
namespace {

void register_nccl(plugin::Host& host) {
  host.add_communicator({.name = "nccl",
                         .summary = "processes with an NVIDIA GPU each, over NCCL",
                         .options = NcclCommunicator::options(),
                         .create = [](const CommunicatorContext& context) -> std::unique_ptr<Communicator> {
                           return std::make_unique<NcclCommunicator>(context);
                         },
                         .needs_device = true});
}

}  // namespace
}  // namespace tenon::nccl

TENON_PLUGIN(nccl, "0.1", &tenon::nccl::register_nccl)
