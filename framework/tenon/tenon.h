// Tenon in one include: tensors, autograd, operators, modules, optimisers, data; what memory is used, and by which
// allocator.
#pragma once

#include <tenon/autograd/autograd.h>
#include <tenon/core/half_limits.h>
#include <tenon/data/data.h>
#include <tenon/device/devices.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/order/stream.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/nn/nn.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/all_ops.h>
#include <tenon/optim/optim.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/process_group.h>
#include <tenon/tensor/captured_graph.h>
#include <tenon/tensor/libtorch/libtorch_dtypes.h>
#include <tenon/tensor/libtorch/libtorch_names.h>
#include <tenon/tensor/libtorch/parallel_for.h>
#include <tenon/tensor/libtorch/threads_and_devices.h>
#include <tenon/tensor/libtorch/warning.h>
#include <tenon/tensor/literal.h>
#include <tenon/tensor/shape/indexing.h>
#include <tenon/tensor/tensor.h>
#include <tenon/train/config/configure.h>
