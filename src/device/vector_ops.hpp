// The operations of a reduction on vectors of the accumulation type.
//
// first() turns the contribution of rank 0 into the running state, next() adds the contribution of the next rank,
// last() turns the state into the value. State is the lane type of the running state.
#pragma once

#include "device/vector.hpp"

namespace zerocomm::device::ZC_LEVEL {

template <class T>
struct TypeOf {  // of lanes: is it a float, and the integers of its width
  static constexpr bool kIsFloat = T(0.5) != T(0);
  using Unsigned = typename TypeOf<char[sizeof(T)]>::Unsigned;
  using Signed = typename TypeOf<char[sizeof(T)]>::Signed;
};
template <>
struct TypeOf<char[1]> {
  using Unsigned = std::uint8_t;
  using Signed = std::int8_t;
};
template <>
struct TypeOf<char[4]> {
  using Unsigned = std::uint32_t;
  using Signed = std::int32_t;
};
template <>
struct TypeOf<char[8]> {
  using Unsigned = std::uint64_t;
  using Signed = std::int64_t;
};

// A minus, since 0 + -0 would be +0.
template <class T>
[[gnu::always_inline]] inline Vec<T> all_lanes(T value) noexcept {
  return value - Vec<T>{};
}

// Integers wrap, so they are computed unsigned.
template <class T>
[[gnu::always_inline]] inline Vec<T> plus(Vec<T> a, Vec<T> b) noexcept {
  using Unsigned = typename TypeOf<T>::Unsigned;
  if constexpr (TypeOf<T>::kIsFloat)
    return a + b;
  else
    return as<T>(as<Unsigned>(a) + as<Unsigned>(b));
}

template <class T>
[[gnu::always_inline]] inline Vec<T> times(Vec<T> a, Vec<T> b) noexcept {
  using Unsigned = typename TypeOf<T>::Unsigned;
  if constexpr (TypeOf<T>::kIsFloat)
    return a * b;
  else
    return as<T>(as<Unsigned>(a) * as<Unsigned>(b));
}

template <class V>
struct SumOp {
  using State = V;
  [[gnu::always_inline]] static Vec<V> first(Vec<V> x, V) noexcept { return x; }
  [[gnu::always_inline]] static Vec<V> next(Vec<V> state, Vec<V> x, V) noexcept { return plus<V>(state, x); }
  [[gnu::always_inline]] static Vec<V> last(Vec<V> state) noexcept { return state; }
};

template <class V>
struct PremulSumOp {
  using State = V;
  [[gnu::always_inline]] static Vec<V> first(Vec<V> x, V premul) noexcept { return x * premul; }
  [[gnu::always_inline]] static Vec<V> next(Vec<V> state, Vec<V> x, V premul) noexcept { return state + x * premul; }
  [[gnu::always_inline]] static Vec<V> last(Vec<V> state) noexcept { return state; }
};

template <class V>
struct ProdOp {
  using State = V;
  [[gnu::always_inline]] static Vec<V> first(Vec<V> x, V) noexcept { return x; }
  [[gnu::always_inline]] static Vec<V> next(Vec<V> state, Vec<V> x, V) noexcept { return times<V>(state, x); }
  [[gnu::always_inline]] static Vec<V> last(Vec<V> state) noexcept { return state; }
};

// Floats are compared as integers in IEEE total order, in which -0 < +0. Every NaN becomes the one key that wins, and
// that key the default NaN; so one comparison does all of it, and the order of the inputs does not matter.
template <class V, bool kWantMax>
struct ExtremeFloatOp {
  using State = typename TypeOf<V>::Signed;
  static constexpr State kLeast = static_cast<State>(typename TypeOf<V>::Unsigned(1) << (8 * sizeof(V) - 1));
  static constexpr State kMagnitude = static_cast<State>(~kLeast);
  static constexpr State kNan = kWantMax ? kMagnitude : kLeast;

  [[gnu::always_inline]] static Vec<State> flip(Vec<State> bits) noexcept {
    return bits ^ ((bits >> (8 * sizeof(V) - 1)) & kMagnitude);
  }
  [[gnu::always_inline]] static Vec<State> first(Vec<V> x, V) noexcept {
    return is_nan(x) ? all_lanes(kNan) : flip(as<State>(x));
  }
  [[gnu::always_inline]] static Vec<State> next(Vec<State> state, Vec<V> x, V premul) noexcept {
    const Vec<State> key = first(x, premul);
    if constexpr (kWantMax)
      return state < key ? key : state;
    else
      return key < state ? key : state;
  }
  [[gnu::always_inline]] static Vec<V> last(Vec<State> state) noexcept {
    return state == kNan ? all_lanes(static_cast<V>(__builtin_nan(""))) : as<V>(flip(state));
  }
};

template <class V, bool kWantMax>
struct ExtremeIntOp {
  using State = V;
  [[gnu::always_inline]] static Vec<V> first(Vec<V> x, V) noexcept { return x; }
  [[gnu::always_inline]] static Vec<V> next(Vec<V> state, Vec<V> x, V) noexcept {
    if constexpr (kWantMax)
      return state < x ? x : state;
    else
      return x < state ? x : state;
  }
  [[gnu::always_inline]] static Vec<V> last(Vec<V> state) noexcept { return state; }
};

template <bool kIsFloat>
struct ExtremeOf {
  template <class V, bool kWantMax>
  using Op = ExtremeFloatOp<V, kWantMax>;
};
template <>
struct ExtremeOf<false> {
  template <class V, bool kWantMax>
  using Op = ExtremeIntOp<V, kWantMax>;
};
template <class V, bool kWantMax>
using ExtremeOp = typename ExtremeOf<TypeOf<V>::kIsFloat>::template Op<V, kWantMax>;

}  // namespace zerocomm::device::ZC_LEVEL
