// Everything of nn::functional.
#pragma once

#include <tenon/nn/functional/activation.h>
#include <tenon/nn/functional/attention.h>
#include <tenon/nn/functional/conv.h>
#include <tenon/nn/functional/distance.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/functional/embedding.h>
#include <tenon/nn/functional/linear.h>
#include <tenon/nn/functional/linear_cross_entropy.h>
#include <tenon/nn/functional/loss.h>
#include <tenon/nn/functional/normalization.h>
#include <tenon/nn/functional/pad.h>
#include <tenon/nn/functional/pooling.h>
#include <tenon/nn/functional/vision.h>
