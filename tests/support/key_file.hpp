// A key file for as long as a test lasts.
#pragma once

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace zerocomm::test {

class KeyFile {
 public:
  explicit KeyFile(const std::string& content = std::string(32, 'k'), mode_t mode = 0600) {
    path_ = testing::TempDir() + "zc-key-XXXXXX";
    const int file = mkstemp(path_.data());
    EXPECT_GE(file, 0);
    EXPECT_EQ(write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    EXPECT_EQ(fchmod(file, mode), 0);
    close(file);
  }
  ~KeyFile() { std::remove(path_.c_str()); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace zerocomm::test
