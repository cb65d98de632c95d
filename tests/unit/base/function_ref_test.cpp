// References to callables, fork detection, and the floating-point environment.
#include "base/function_ref.hpp"

#include "base/float_env.hpp"
#include "base/fork.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace zerocomm {
namespace {

int twice(FunctionRef<int(int)> function) { return function(function(1)); }

TEST(FunctionRef, calls_what_it_refers_to) {
  int calls = 0;
  EXPECT_EQ(twice([&](int x) { return ++calls, x + 10; }), 21);
  EXPECT_EQ(calls, 2);
  const auto named = [](int x) { return 3 * x; };
  FunctionRef<int(int)> reference = named;
  FunctionRef<int(int)> copy = reference;
  EXPECT_EQ(copy(5), 15);
}

TEST(Fork, generation_changes_in_the_child_alone) {
  const std::uint32_t before = fork_generation();
  const pid_t child = fork();
  if (child == 0) _exit(fork_generation() != before ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fork_generation(), before);
}

#if defined(__x86_64__)
TEST(FloatEnv, is_the_default_inside_and_the_callers_after) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x9fc0);
  {
    const DefaultFloatEnv environment;
    EXPECT_EQ(_mm_getcsr(), 0x1f80u);
  }
  EXPECT_EQ(_mm_getcsr(), 0x9fc0u);
  _mm_setcsr(before);
}
#endif

}  // namespace
}  // namespace zerocomm
