// The data sets that a file can name, one row each: what the option, the checks, `tenon doctor` and training read.
#pragma once

#include <tenon/core/export.h>
#include <tenon/train/input/batches.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::train {

/// What the examples are; models of pictures and of language want different ones.
enum class Content { kPictures, kText };
/// "pictures", "text".
std::string_view name_of(Content content);

struct DataSet {
  std::string_view name;  ///< of data.name
  Content content;
  std::string_view place;   ///< where its files are unless data.path says otherwise
  std::string_view path;    ///< what data.path names: "a folder"
  std::string_view to_get;  ///< what a user does who lacks them; empty where every machine has them
  /// Throws Error where files are missing; reads none.
  void (*check)(const std::string& place);
  TrainingData (*open)(const ExperimentConfig& config, const std::string& place, Dtype dtype);
};

/// All of them; the first one is what a file without data.name trains on.
TENON_API const std::vector<DataSet>& data_sets();
/// The row of that name. Throws Error where there is none.
const DataSet& data_set(std::string_view name);

/// data.path where it is given, else the usual place.
std::string place_of(const ExperimentConfig& config, const DataSet& set);

// open_data.cpp
/// Pictures that `read` reads, with the side, the targets and the limits that the file asks for.
TrainingData open_pictures(const ExperimentConfig& config, const std::string& place, Dtype dtype,
                           data::ImageSet (*read)(const std::string& place, data::Split split));
/// Windows of a text.
TrainingData open_text(const ExperimentConfig& config, const std::string& place);

}  // namespace tenon::train
