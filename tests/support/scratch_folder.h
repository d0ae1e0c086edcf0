// A folder for the files of one test program: another program that runs at the same time has another, and it goes when
// the program ends.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace tenon::test {

/// "/tmp/tenon-test-abc123/"
inline const std::string& scratch_folder() {
  struct Folder {
    Folder() {
      std::string pattern = ::testing::TempDir() + "tenon-test-XXXXXX";
      if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make the folder " + pattern);
      path = pattern + "/";
    }
    ~Folder() {
      std::error_code ignored;
      if (::getpid() == owner) std::filesystem::remove_all(path, ignored);  // a child process leaves it
    }
    const ::pid_t owner = ::getpid();
    std::string path;
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace tenon::test
