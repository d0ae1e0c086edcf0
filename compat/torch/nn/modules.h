// torch/nn/modules.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
