// torch/nn/modules/container/modulelist.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
