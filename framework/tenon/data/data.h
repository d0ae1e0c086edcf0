// Everything of data.
#pragma once

#include <tenon/data/chunk_dataset.h>
#include <tenon/data/data_loader.h>
#include <tenon/data/dataset.h>
#include <tenon/data/distributed_sampler.h>
#include <tenon/data/distributed_samplers.h>
#include <tenon/data/mnist.h>
#include <tenon/data/pin_memory.h>
#include <tenon/data/samplers.h>
#include <tenon/data/text.h>
#include <tenon/data/transforms.h>

namespace tenon::data {
using datasets::BatchDataset;
using datasets::Dataset;
}  // namespace tenon::data
