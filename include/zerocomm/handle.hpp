/**
 * What the handles of the twins have in common: each owns one object of the C API, moves, and cannot be copied.
 */
#pragma once

#include <zerocomm/error.hpp>

#include <utility>

namespace zc::detail {

/** A pointer to an object of the C API that somebody else owns. */
template <class T>
class View {
 public:
  View() = default;
  explicit View(T *object) noexcept : object_(object) {}

  /** The object for calls of the C API; NULL if there is none. */
  T *get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 protected:
  T *object_ = nullptr;
};

/** A view that owns. Its destructor never throws: use close() to learn how the end went. */
template <class Base, class T, zc_status (*kDestroy)(T *)>
class Handle : public Base {
 public:
  Handle() = default;
  /** Take over an object that the C API made. */
  explicit Handle(T *owned) noexcept : Base(owned) {}
  Handle(Handle &&other) noexcept : Base(other.release()) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      close();
      this->object_ = other.release();
    }
    return *this;
  }
  ~Handle() { close(); }

  /** Destroy now what the destructor would. Empty afterwards, whatever the status says. */
  zc_status close() noexcept { return kDestroy(release()); }

  /** Give the object away: the caller destroys it. */
  [[nodiscard]] T *release() noexcept { return std::exchange(this->object_, nullptr); }
};

/** Fill one of the C API's structs that begin with struct_size. */
template <class Info, class Read>
Info read_info(Read read) {
  Info info{};
  info.struct_size = sizeof info;
  check(read(&info));
  return info;
}

}  // namespace zc::detail
