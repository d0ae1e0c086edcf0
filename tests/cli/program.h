// Runs the built program as a user does and keeps what it said.
#pragma once

#include "runtime/fixture.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <map>
#include <string>
#include <vector>

namespace tenon::test {

struct Said {
  int code = -1;      ///< the exit code; 128 + number for a signal
  std::string out;    ///< stdout
  std::string error;  ///< stderr
};

/// `tenon WORDS…` in `folder`, with `variables` on top of our environment, without a terminal.
/// `input` is the file that is its standard input.
inline Said tenon_in(const Folder& folder, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& variables = {}, const std::string& input = "/dev/null") {
  const std::string out = (folder.path() / ".stdout").string();
  const std::string error = (folder.path() / ".stderr").string();
  std::string script = "cd \"$1\" && shift && exec \"$@\"";
  std::vector<std::string> line = {"/bin/sh", "-c", script, "sh", folder.path().string(), "/usr/bin/env"};
  for (const auto& [name, value] : variables) line.push_back(name + "=" + value);
  line.push_back(TENON_PROGRAM);
  line.insert(line.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(problem, 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_bytes(out), read_bytes(error)};
}

/// A data set of a few small pictures in the format of Fashion-MNIST, so that no test needs the real one.
inline void write_pictures(const Folder& folder, const std::string& name, int count, int labels) {
  const auto number = [](int value) {
    return std::string({static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                        static_cast<char>(value)});
  };
  std::string pixels;
  for (int i = 0; i < count * 28 * 28; ++i) pixels += static_cast<char>((i * 37 + i / 784 * 11) & 0xff);
  folder.write("data/" + name + "-images-idx3-ubyte", number(0x803) + number(count) + number(28) + number(28) + pixels);
  std::string classes;
  for (int i = 0; i < labels; ++i) classes += static_cast<char>(i % 10);
  folder.write("data/" + name + "-labels-idx1-ubyte", number(0x801) + number(labels) + classes);
}

/// A small experiment: a few steps of an MLP on those pictures.
inline std::string experiment(const std::string& more = "") {
  return "[data]\npath = \"data\"\n[model]\nhidden = 16\n[train]\nepochs = 2\nbatch_size = 16\ntest_batch_size = "
         "16\nthreads = 1\n" +
         more;
}

class Program : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures(folder_, "train", 64, 64);
    write_pictures(folder_, "t10k", 16, 16);
    folder_.write("exp.toml", experiment());
  }
  Said tenon(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables = {}) {
    return tenon_in(folder_, words, variables);
  }
  Folder folder_;
};

}  // namespace tenon::test
