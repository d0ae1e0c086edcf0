// Runs the built program as a user does and keeps what it said.
#pragma once

#include "runtime/fixture.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>

#include <map>
#include <string>
#include <thread>
#include <vector>

namespace tenon::test {

struct Said {
  int code = -1;      ///< the exit code; 128 + number for a signal
  std::string out;    ///< stdout
  std::string error;  ///< stderr
};

/// `tenon WORDS…` in `folder` as it runs, in a process group of its own, with `variables` on top of our environment,
/// without a terminal. `input` is the file that is its standard input.
class StartedProgram {
 public:
  StartedProgram(const Folder& folder, const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& variables = {}, const std::string& input = "/dev/null",
                 const std::string& limits = "true") {
    // Of the first that runs .stdout and .stderr, which tests of redirections know.
    for (int n = 1; out_.empty() || std::filesystem::exists(out_); ++n) {
      const std::string number = n == 1 ? "" : std::to_string(n);
      out_ = (folder.path() / (".stdout" + number)).string();
      error_ = (folder.path() / (".stderr" + number)).string();
    }
    const std::string script = "cd \"$1\" && shift && " + limits + " && exec \"$@\"";
    std::vector<std::string> line = {"/bin/sh", "-c", script,     "sh", folder.path().string(), "/usr/bin/env", "-u",
                                     "COLUMNS", "-u", "NO_COLOR", "-u", "CLICOLOR_FORCE"};
    for (const auto& [key, value] : variables) line.push_back(key + "=" + value);
    line.push_back(TENON_PROGRAM);
    line.insert(line.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : line) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int problem = ::posix_spawn(&child_, "/bin/sh", &actions, &attributes, arguments.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(problem, 0);
  }
  ~StartedProgram() {
    if (child_ > 0) wait();
  }
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  /// To its whole process group, as a terminal sends Ctrl-C.
  void interrupt(int signal) const { ::kill(-child_, signal); }
  /// To it alone.
  void send(int signal) const { ::kill(child_, signal); }
  /// Until then the signal would end it as it ends any program.
  void wait_until_it_catches(int signal) const {
    const std::string status = "/proc/" + std::to_string(child_) + "/status";
    while (true) {
      const std::string text = read_bytes(status);
      const std::size_t caught = text.find("SigCgt:");
      if (caught == std::string::npos || text.find("State:\tZ") != std::string::npos) return;  // it has ended
      if ((std::stoull(text.substr(caught + 7), nullptr, 16) >> (signal - 1) & 1) != 0 &&
          text.find("Name:\ttenon\n") != std::string::npos)
        return;
      std::this_thread::yield();
    }
  }
  /// A program that ends without having said that is a failure, not waited for any longer.
  void wait_until_it_says(const std::string& text) const {
    const std::string status = "/proc/" + std::to_string(child_) + "/status";
    while (said().find(text) == std::string::npos) {
      const bool has_ended = read_bytes(status).find("State:\tZ") != std::string::npos;
      if (has_ended && said().find(text) == std::string::npos) {
        ADD_FAILURE() << "ended without \"" << text << "\", with\n" << said();
        return;
      }
      std::this_thread::yield();
    }
  }
  /// What it has said on stderr so far.
  std::string said() const { return read_bytes(error_); }

  Said wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    child_ = 0;
    Said said{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_bytes(out_), read_bytes(error_)};
    std::error_code ignored;
    std::filesystem::remove(out_, ignored);
    std::filesystem::remove(error_, ignored);
    return said;
  }

 private:
  std::string out_, error_;
  pid_t child_ = 0;
};

inline Said tenon_in(const Folder& folder, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& variables = {}, const std::string& input = "/dev/null") {
  return StartedProgram(folder, words, variables, input).wait();
}

/// A data set of a few small pictures in the format of Fashion-MNIST, so that no test needs the real one.
inline void write_pictures(const Folder& folder, const std::string& name, int count, int labels) {
  const auto number = [](int value) {
    return std::string({static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                        static_cast<char>(value)});
  };
  std::string pixels;
  for (int i = 0; i < count * 28 * 28; ++i) pixels += static_cast<char>((i * 37 + i / 784 * 11) & 0xff);
  std::string pictures;
  for (const int each : {0x803, count, 28, 28}) pictures += number(each);
  folder.write("data/" + name + "-images-idx3-ubyte", pictures + pixels);
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
