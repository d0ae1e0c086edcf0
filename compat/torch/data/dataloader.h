// torch/data/dataloader.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
