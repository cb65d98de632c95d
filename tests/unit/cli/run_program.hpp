// Runs the program zc and looks at what it printed, and how it ended.
#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

struct Outcome {
  int status = -1;
  std::string out, err;
};

inline const std::string kData = ZC_PROJECT_DIR "/tests/data/";

inline std::string scratch_file(const std::string& name) {
  return testing::TempDir() + "zc_" + std::to_string(getpid()) + "_" + name;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs `zc arguments` in a shell; ends it after 20 seconds.
inline Outcome zc(const std::string& arguments) {
  const std::string err = scratch_file("err");
  const std::string command = "timeout 20 " ZC_PROGRAM " " + arguments + " 2>" + err;
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  char chunk[4096];
  for (std::size_t got = 0; (got = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;) outcome.out.append(chunk, got);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.err = content_of(err);
  std::remove(err.c_str());
  return outcome;
}

inline void expect_refused(const std::string& arguments, int status, const std::string& text) {
  const Outcome outcome = zc(arguments);
  EXPECT_EQ(outcome.status, status) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_EQ(outcome.err.find("zc: "), 0u) << arguments << ": " << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.length() - 1) << "one line: " << outcome.err;
  EXPECT_NE(outcome.err.find(text), std::string::npos) << arguments << ": " << outcome.err;
}
