// The operations of a reduction on values of the accumulation type.
//
// first() turns the contribution of rank 0 into the running state, next() adds the contribution of the next rank,
// last() turns the state into the value. Loops over them have no branches, so that compilers vectorise them.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace zerocomm::device {

// Integers wrap. Signed ones are computed unsigned, and narrow ones as 32 bits: u8 * u8 would be a signed int.
template <class Integer>
using Wrapping = std::conditional_t<(sizeof(Integer) < 4), std::uint32_t, std::make_unsigned_t<Integer>>;

template <class Value>
constexpr Value plus(Value a, Value b) noexcept {
  if constexpr (std::is_integral_v<Value>)
    return static_cast<Value>(static_cast<Wrapping<Value>>(a) + static_cast<Wrapping<Value>>(b));
  else
    return a + b;
}

template <class Value>
constexpr Value times(Value a, Value b) noexcept {
  if constexpr (std::is_integral_v<Value>)
    return static_cast<Value>(static_cast<Wrapping<Value>>(a) * static_cast<Wrapping<Value>>(b));
  else
    return a * b;
}

template <class V>
struct SumOp {
  using Value = V;
  using State = V;
  static State first(Value x, Value) noexcept { return x; }
  static State next(State state, Value x, Value) noexcept { return plus(state, x); }
  static Value last(State state) noexcept { return state; }
};

template <class V>
struct PremulSumOp {
  using Value = V;
  using State = V;
  static State first(Value x, Value premul) noexcept { return x * premul; }
  static State next(State state, Value x, Value premul) noexcept { return state + x * premul; }
  static Value last(State state) noexcept { return state; }
};

template <class V>
struct ProdOp {
  using Value = V;
  using State = V;
  static State first(Value x, Value) noexcept { return x; }
  static State next(State state, Value x, Value) noexcept { return times(state, x); }
  static Value last(State state) noexcept { return state; }
};

// Floats are compared as integers in IEEE total order, in which -0 < +0. Every NaN becomes the one key that wins, and
// that key the default NaN; so one comparison does all of it, and the order of the inputs does not matter.
template <class Float>
struct TotalOrder {
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  using Key = std::make_signed_t<Bits>;
  static constexpr int kSignShift = std::numeric_limits<Bits>::digits - 1;
  static constexpr Key kMagnitude = std::numeric_limits<Key>::max();
  static constexpr Key kInfinity = static_cast<Key>(std::bit_cast<Bits>(std::numeric_limits<Float>::infinity()));

  static constexpr Key flip(Key bits) noexcept { return bits ^ ((bits >> kSignShift) & kMagnitude); }
  static constexpr Key encode(Float x, Key nan_key) noexcept {
    const Key bits = std::bit_cast<Key>(x);
    return (bits & kMagnitude) > kInfinity ? nan_key : flip(bits);
  }
  static constexpr Float decode(Key key) noexcept { return std::bit_cast<Float>(flip(key)); }
};

template <class V, bool kWantMax>
struct ExtremeFloatOp {
  using Value = V;
  using Order = TotalOrder<V>;
  using State = typename Order::Key;
  static constexpr State kNan = kWantMax ? std::numeric_limits<State>::max() : std::numeric_limits<State>::min();
  static State first(Value x, Value) noexcept { return Order::encode(x, kNan); }
  static State next(State state, Value x, Value) noexcept {
    const State key = Order::encode(x, kNan);
    return (kWantMax ? state < key : key < state) ? key : state;
  }
  static Value last(State state) noexcept {
    return state == kNan ? std::numeric_limits<V>::quiet_NaN() : Order::decode(state);
  }
};

template <class V, bool kWantMax>
struct ExtremeIntOp {
  using Value = V;
  using State = V;
  static State first(Value x, Value) noexcept { return x; }
  static State next(State state, Value x, Value) noexcept { return (kWantMax ? state < x : x < state) ? x : state; }
  static Value last(State state) noexcept { return state; }
};

template <class V, bool kWantMax>
using ExtremeOp = std::conditional_t<std::is_integral_v<V>, ExtremeIntOp<V, kWantMax>, ExtremeFloatOp<V, kWantMax>>;
template <class V>
using MinOp = ExtremeOp<V, false>;
template <class V>
using MaxOp = ExtremeOp<V, true>;

}  // namespace zerocomm::device
