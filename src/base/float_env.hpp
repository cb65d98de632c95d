// The default floating-point environment, whatever the caller's: round to nearest even, subnormals kept.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace zerocomm {

class DefaultFloatEnv {
 public:
#if defined(__x86_64__)
  DefaultFloatEnv() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloatEnv() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;

 public:
#elif defined(__aarch64__)
  DefaultFloatEnv() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(0ul));
  }
  ~DefaultFloatEnv() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  unsigned long saved_;

 public:
#else
  DefaultFloatEnv() noexcept {}
#endif
  DefaultFloatEnv(const DefaultFloatEnv&) = delete;
  DefaultFloatEnv& operator=(const DefaultFloatEnv&) = delete;
};

}  // namespace zerocomm
