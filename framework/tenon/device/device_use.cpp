// What /proc says of a process.
#include <tenon/device/device_use.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace tenon {

ReportsUse::~ReportsUse() = default;

std::string command_of_process(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

unsigned long long start_of_process(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = line.rfind(')');  // the name before it may have spaces and brackets
  if (name_end == std::string::npos) return 0;
  std::istringstream words(line.substr(name_end + 1));
  std::string skipped;
  constexpr int kStartTime = 22, kFirst = 3;  // proc(5)
  for (int field = kFirst; field < kStartTime; ++field) words >> skipped;
  unsigned long long start = 0;
  words >> start;
  return start;
}

}  // namespace tenon
