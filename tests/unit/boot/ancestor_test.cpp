// The launcher's process among a process's ancestors.
#include "boot/launch.hpp"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>

namespace zerocomm::boot {
namespace {

// What `work` returns in a child process of this one.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = work();
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char block[512];
  for (ssize_t got; (got = read(ends[0], block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return text;
}

// "name:pid:start time" of this process.
std::string own_text(const char* name) {
  std::ifstream file("/proc/self/stat");
  std::string line, field;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  for (int number = 3; number <= 22; ++number) fields >> field;
  return std::string(name) + ":" + std::to_string(getpid()) + ":" + field;
}

// Runs ancestor_text(`wanted`) in a grandchild of a process called `name`, and says whether it found that.
std::string search(const char* name, const char* kept, const char* wanted) {
  return in_child([&] {
    prctl(PR_SET_NAME, name);
    const std::string right = own_text(kept);
    const std::string found = in_child([&] {
      prctl(PR_SET_NAME, "between");
      return in_child([&] { return ancestor_text(wanted); });
    });
    return found == right ? "found" : found;
  });
}

TEST(Ancestor, is_found_by_name_above_other_processes) {
  EXPECT_EQ(search("zc_launcher", "zc_launcher", "zc_launcher"), "found");
  EXPECT_EQ(search(kHydraProcess, "hydra_pmi_proxy", kHydraProcess), "found");
}

TEST(Ancestor, may_have_blanks_and_parentheses_in_its_name) {
  EXPECT_EQ(search("a) R 1 (b)", "a) R 1 (b)", "a) R 1 (b)"), "found");
}

TEST(Ancestor, is_compared_by_the_15_characters_that_the_kernel_keeps) {
  EXPECT_EQ(search("zc_launcher_of_ranks", "zc_launcher_of_", "zc_launcher_of_ranks"), "found");
  EXPECT_NE(search("zc_launcher_of_ranks", "zc_launcher_of_", "zc_launcher_of"), "found");
}

TEST(Ancestor, that_is_nearest_counts) {
  const std::string text = in_child([] {
    prctl(PR_SET_NAME, "zc_launcher");
    return search("zc_launcher", "zc_launcher", "zc_launcher");
  });
  EXPECT_EQ(text, "found");
}

TEST(Ancestor, that_is_not_there_is_replaced_by_the_parent) {
  const std::string text = in_child([] {
    prctl(PR_SET_NAME, "parent");
    const std::string right = own_text("parent");
    const std::string found = in_child([] { return ancestor_text("nobody has this"); });
    return found == right ? "found" : found;
  });
  EXPECT_EQ(text, "found");
}

TEST(Ancestor, is_not_the_process_itself) {
  const std::string text = in_child([] {
    prctl(PR_SET_NAME, "parent");
    const std::string right = own_text("parent");
    const std::string found = in_child([] {
      prctl(PR_SET_NAME, "zc_launcher");
      return ancestor_text("zc_launcher");
    });
    return found == right ? "found" : found;
  });
  EXPECT_EQ(text, "found");
}

}  // namespace
}  // namespace zerocomm::boot
