// The files of a list of cells.
#include <tenon/cli/launch/cell_list.h>

#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/files/file_text.h>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>

namespace tenon::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kList = "cells.json";
constexpr const char* kStop = "stop";

/// The text of a file of ours as JSON. Throws Error that names it.
json json_of(const fs::path& file) {
  try {
    return json::parse(text_of_file(file));
  } catch (const json::exception& error) {
    throw Error(fmt::format("'{}' is not what a sweep or its worker wrote: {}", file.string(), error.what()));
  }
}

}  // namespace

fs::path CellList::file_of(const char* stem, std::size_t index, const char* suffix) const {
  return folder_ / fmt::format("{}-{}{}", stem, index, suffix);
}

void CellList::write(const std::vector<ListedCell>& cells) const {
  std::error_code problem;
  fs::remove_all(folder_, problem);
  fs::create_directories(folder_, problem);
  if (problem) throw Error(fmt::format("cannot make '{}': {}", folder_.string(), problem.message()));
  json list = json::array();
  for (const ListedCell& cell : cells) list.push_back({{"index", cell.index}, {"arguments", cell.arguments}});
  write_atomically(folder_ / kList, list.dump(1) + "\n");
}

std::vector<ListedCell> CellList::read() const {
  std::vector<ListedCell> cells;
  for (const json& cell : json_of(folder_ / kList))
    cells.push_back({cell.at("index").get<std::size_t>(), cell.at("arguments").get<std::vector<std::string>>()});
  return cells;
}

bool CellList::claim(std::size_t index) const {
  const fs::path file = file_of("claimed", index);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0) {
    ::close(descriptor);
    return true;
  }
  if (errno == EEXIST) return false;
  throw Error(fmt::format("cannot make '{}': {}", file.string(), std::strerror(errno)));
}

void CellList::write_end(std::size_t index, const CellEnd& end) const {
  const json text = {{"exit_code", end.ending.exit_code}, {"signal", end.ending.signal}, {"host", end.host}};
  write_atomically(file_of("ended", index, ".json"), text.dump() + "\n");
}

std::optional<CellEnd> CellList::end_of(std::size_t index) const {
  const fs::path file = file_of("ended", index, ".json");
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  const json text = json_of(file);
  return CellEnd{.ending = {text.at("exit_code").get<int>(), text.at("signal").get<int>()},
                 .host = text.at("host").get<std::string>()};
}

void CellList::stop() const { write_atomically(folder_ / kStop, ""); }

bool CellList::is_stopped() const {
  std::error_code none;
  return fs::exists(folder_ / kStop, none);
}

}  // namespace tenon::cli
