// Tenon in one include: tensors, autograd, operators, modules, optimisers, data.
#pragma once

#include <tenon/autograd/autograd.h>
#include <tenon/core/half_limits.h>
#include <tenon/data/data.h>
#include <tenon/nn/nn.h>
#include <tenon/nn/serialize.h>
#include <tenon/ops/ctc.h>
#include <tenon/ops/embedding_bag.h>
#include <tenon/ops/front_end.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/pair_distances.h>
#include <tenon/ops/resample.h>
#include <tenon/ops/special.h>
#include <tenon/ops/vision.h>
#include <tenon/optim/optim.h>
#include <tenon/tensor/environment.h>
#include <tenon/tensor/indexing.h>
#include <tenon/tensor/libtorch_dispatch.h>
#include <tenon/tensor/libtorch_macros.h>
#include <tenon/tensor/libtorch_names.h>
#include <tenon/tensor/literal.h>
#include <tenon/tensor/parallel_for.h>
#include <tenon/tensor/tensor.h>
#include <tenon/tensor/warning.h>
