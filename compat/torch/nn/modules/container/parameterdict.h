// torch/nn/modules/container/parameterdict.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
