// torch/arg.h of libtorch: a field of an options struct with its setters.
#pragma once

#include <tenon/nn/options/arg.h>

#define TORCH_ARG(T, name) TENON_ARG(T, name)
