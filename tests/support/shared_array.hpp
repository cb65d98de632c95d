// Values that a test and the processes it forks share: what a child writes is there when the child is gone, however it
// went.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace zerocomm::test {

template <class Value>
class SharedArray {
  static_assert(std::is_trivially_destructible_v<Value>);

 public:
  explicit SharedArray(std::size_t count) : count_(count) {
    void* const memory =
        mmap(nullptr, count * sizeof(Value) + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    values_ = static_cast<Value*>(memory);
    for (std::size_t i = 0; i < count; ++i) new (&values_[i]) Value();
  }
  ~SharedArray() { munmap(values_, count_ * sizeof(Value) + 1); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  std::size_t count() const { return count_; }
  template <class Index>
  Value& operator[](Index index) const {
    return values_[static_cast<std::size_t>(index)];
  }
  Value* begin() const { return values_; }
  Value* end() const { return values_ + count_; }

 private:
  std::size_t count_;
  Value* values_ = nullptr;
};

// One value of that kind.
template <class Value>
class Shared {
 public:
  Value* operator->() const { return array_.begin(); }
  Value& operator*() const { return array_[0]; }

 private:
  SharedArray<Value> array_{1};
};

}  // namespace zerocomm::test
