// Everything of autograd that programs use.
#pragma once

#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/autocast.h>
#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/post_accumulate.h>
#include <tenon/autograd/save_on_cpu.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>

namespace tenon {
using autograd::Variable;
using InferenceModeGuard = InferenceMode;
}  // namespace tenon
