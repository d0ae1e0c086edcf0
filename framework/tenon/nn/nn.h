// Everything of nn.
#pragma once

#include <tenon/nn/activation.h>
#include <tenon/nn/any_module.h>
#include <tenon/nn/archive.h>
#include <tenon/nn/batch_norm.h>
#include <tenon/nn/clip_grad.h>
#include <tenon/nn/cloneable.h>
#include <tenon/nn/conv.h>
#include <tenon/nn/convert_parameters.h>
#include <tenon/nn/dropout.h>
#include <tenon/nn/embedding.h>
#include <tenon/nn/enum.h>
#include <tenon/nn/expanding_array.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/functional_module.h>
#include <tenon/nn/init.h>
#include <tenon/nn/linear.h>
#include <tenon/nn/loss.h>
#include <tenon/nn/module.h>
#include <tenon/nn/module_list.h>
#include <tenon/nn/normalization.h>
#include <tenon/nn/ordered_dict.h>
#include <tenon/nn/parameter_list.h>
#include <tenon/nn/pooling.h>
#include <tenon/nn/sequential.h>
#include <tenon/nn/serialize.h>
