// torch/nn/modules/container/parameterlist.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
