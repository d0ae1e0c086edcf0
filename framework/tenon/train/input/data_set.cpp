// The table of data sets.
#include <tenon/train/input/data_set.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::train {
namespace {

void check_pictures(const std::string& place, void (*check)(const std::string&, data::Split)) {
  for (const data::Split split : {data::Split::kTrain, data::Split::kTest}) check(place, split);
}

}  // namespace

std::string_view name_of(Content content) { return content == Content::kText ? "text" : "pictures"; }

const std::vector<DataSet>& data_sets() {
  static const std::vector<DataSet> sets = {
      {.name = "fashion-mnist",
       .content = Content::kPictures,
       .place = data::kFashionMnistFolder,
       .path = "a folder",
       .to_get = "apt install dataset-fashion-mnist, or set data.path to a folder with the four IDX files",
       .check = [](const std::string& place) { check_pictures(place, data::check_mnist); },
       .open = [](const ExperimentConfig& config, const std::string& place,
                  Dtype dtype) { return open_pictures(config, place, dtype, data::read_mnist); }},
      {.name = "text",
       .content = Content::kText,
       .place = data::kTextFolder,
       .path = "a file or a folder",
       .to_get = "set data.path to a text of your own",
       .check = data::check_text,
       .open = [](const ExperimentConfig& config, const std::string& place, Dtype) {
         return open_text(config, place);
       }}};
  return sets;
}

const DataSet& data_set(std::string_view name) {
  const auto found = std::ranges::find(data_sets(), name, &DataSet::name);
  if (found == data_sets().end()) throw Error(fmt::format("no data set '{}'", name));
  return *found;
}

std::string place_of(const ExperimentConfig& config, const DataSet& set) {
  const std::string& given = config.section("data").text("path");
  return given.empty() ? std::string(set.place) : config.resolve(given);
}

}  // namespace tenon::train
