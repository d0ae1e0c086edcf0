// MNIST-like folders: two IDX files a split, held against each other.
#include <tenon/core/error.h>
#include <tenon/data/idx_file.h>
#include <tenon/data/image_set.h>

#include <fmt/format.h>

#include <filesystem>

namespace tenon::data {
namespace {

std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name) {
  std::filesystem::path packed = folder / (name + ".gz");
  std::error_code ignored;
  if (std::filesystem::exists(packed, ignored)) return packed;
  if (std::filesystem::exists(folder / name, ignored)) return folder / name;
  throw Error(fmt::format("no such data file: '{}' (nor without .gz)", packed.string()));
}

struct SplitFiles {
  std::filesystem::path images, labels;
};

SplitFiles find_files(const std::filesystem::path& folder, Split split) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw ConfigError(
        fmt::format("no such data folder: '{}'; Fashion-MNIST comes with 'apt install dataset-fashion-mnist', another "
                    "place is named by [data] path",
                    folder.string()));
  }
  const std::string stem = split == Split::kTrain ? "train" : "t10k";
  return {find_file(folder, stem + "-images-idx3-ubyte"), find_file(folder, stem + "-labels-idx1-ubyte")};
}

}  // namespace

void check_mnist(const std::string& folder, Split split) { static_cast<void>(find_files(folder, split)); }

ImageSet read_mnist(const std::string& folder, Split split) {
  const auto [image_file, label_file] = find_files(folder, split);
  IdxArray images = read_idx(image_file, 3);
  IdxArray labels = read_idx(label_file, 1);
  if (images.sizes[0] != labels.sizes[0]) {
    throw Error(fmt::format("'{}' holds {} pictures, '{}' {} labels", image_file.string(), images.sizes[0],
                            label_file.string(), labels.sizes[0]));
  }
  if (images.bytes.empty()) throw Error(fmt::format("'{}' holds no pictures", image_file.string()));

  ImageSet set;
  set.count = images.sizes[0];
  set.height = images.sizes[1];
  set.width = images.sizes[2];
  set.pixels = std::move(images.bytes);
  set.labels = std::move(labels.bytes);
  for (std::size_t i = 0; i < set.labels.size(); ++i) {
    if (set.labels[i] >= set.classes) {
      throw Error(fmt::format("'{}': label {} of picture {} is not below {}", label_file.string(), set.labels[i], i,
                              set.classes));
    }
  }
  return set;
}

}  // namespace tenon::data
