// The oracle against a straightforward loop with conversions of its own, on random and special values.
#include "schedule/catalogue.hpp"
#include "schedule/oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace zerocomm::schedule {
namespace {

// ---- formats by arithmetic, not by bits -----------------------------------------------------------------------------

struct Format {
  int fraction_bits;
  int exponent_bits;
};
Format format_of(zc_dtype dtype) {
  return dtype == ZC_DTYPE_F16 ? Format{10, 5} : dtype == ZC_DTYPE_BF16 ? Format{7, 8} : Format{23, 8};
}

// Nearest value of a 16-bit format, ties to even. Exact steps in double.
float nearest(zc_dtype dtype, float value) {
  if (dtype == ZC_DTYPE_F32 || std::isnan(value) || std::isinf(value) || value == 0) return value;
  const Format format = format_of(dtype);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double unit = std::ldexp(1.0, exponent - format.fraction_bits);
  const double rounded = std::nearbyint(double{value} / unit) * unit;
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, -format.fraction_bits), bias);
  if (std::fabs(rounded) > largest) return std::copysign(std::numeric_limits<float>::infinity(), value);
  return static_cast<float>(std::copysign(rounded, double{value}));
}

float decode(zc_dtype dtype, std::uint32_t bits) {
  const Format format = format_of(dtype);
  const int bias = (1 << (format.exponent_bits - 1)) - 1, all_ones = (1 << format.exponent_bits) - 1;
  const auto exponent = static_cast<int>(bits >> format.fraction_bits) & all_ones;
  const std::uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
  const double sign = (bits >> (format.fraction_bits + format.exponent_bits)) != 0 ? -1 : 1;
  if (exponent == all_ones)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(sign * HUGE_VAL);
  const double significand = fraction + (exponent > 0 ? std::ldexp(1.0, format.fraction_bits) : 0.0);
  return static_cast<float>(sign * std::ldexp(significand, std::max(exponent, 1) - bias - format.fraction_bits));
}

// ---- the loop -------------------------------------------------------------------------------------------------------

template <class T>
bool comes_before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  return a < b;
}

template <class T>
T apply(zc_op op, T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  if (op == ZC_OP_MIN) return comes_before(b, a) ? b : a;
  if (op == ZC_OP_MAX) return comes_before(a, b) ? b : a;
  if constexpr (std::is_integral_v<T>) {
    T result{};  // the builtins wrap
    if (op == ZC_OP_PROD)
      (void)__builtin_mul_overflow(a, b, &result);
    else
      (void)__builtin_add_overflow(a, b, &result);
    return result;
  } else {
    return op == ZC_OP_PROD ? a * b : a + b;
  }
}

template <class T>
T loop(zc_op op, T premul, const std::vector<T>& contributions) {
  T sum{};
  for (std::size_t rank = 0; rank < contributions.size(); ++rank) {
    const T x = op == ZC_OP_PREMUL_SUM ? apply(ZC_OP_PROD, contributions[rank], premul) : contributions[rank];
    sum = rank == 0 ? x : apply(op, sum, x);
  }
  if (op == ZC_OP_AVG) sum = static_cast<T>(sum / static_cast<T>(contributions.size()));
  return sum;
}

template <class T>
bool same_bits(T a, T b) {
  if (a != a || b != b) return a != a && b != b;  // payloads of NaN are outside the promise
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// ---- the comparison -------------------------------------------------------------------------------------------------

// Bits of elements: half of them special, the others random.
template <class Bits>
Bytes draw(std::mt19937_64& random, std::size_t count, const std::vector<Bits>& specials) {
  Bytes bytes(count * sizeof(Bits));
  for (std::size_t i = 0; i < count; ++i) {
    const Bits value = random() % 2 == 0 ? specials[random() % specials.size()] : static_cast<Bits>(random());
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

template <class T>
T element(const Bytes& bytes, std::size_t i) {
  T value{};
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// Reads element i as its accumulation type.
template <class T>
T read(zc_dtype dtype, const Bytes& bytes, std::size_t i) {
  if constexpr (std::is_same_v<T, float>)
    if (dtype != ZC_DTYPE_F32) return decode(dtype, element<std::uint16_t>(bytes, i));
  return element<T>(bytes, i);
}

template <class T>
T finished(zc_dtype output, T value) {
  if constexpr (std::is_same_v<T, float>) return nearest(output, value);
  return value;
}

template <class T, class Bits>
void compare(zc_dtype input, zc_dtype output, zc_op op, double premul, const std::vector<Bits>& specials) {
  std::mt19937_64 random(static_cast<std::uint64_t>(input) * 1000 + static_cast<std::uint64_t>(op) * 10);
  for (const std::uint32_t p : {1u, 2u, 3u, 5u, 8u})
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{p}, std::size_t{10 * p + 1}, std::size_t{403}}) {
      std::vector<Bytes> inputs;
      for (std::uint32_t rank = 0; rank < p; ++rank) inputs.push_back(draw<Bits>(random, count, specials));
      const Key key = make_key(Collective::all_reduce, "direct", p, 0, 2);
      const auto outputs = run_oracle(build(key), Partition::even(count, p, 2), {input, output, op, premul}, inputs);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<T> contributions;
        for (std::uint32_t rank = 0; rank < p; ++rank) contributions.push_back(read<T>(input, inputs[rank], i));
        const T wanted = finished<T>(output, loop<T>(op, static_cast<T>(premul), contributions));
        for (std::uint32_t rank = 0; rank < p; ++rank) {
          const T found = read<T>(output, outputs[rank], i);
          ASSERT_TRUE(same_bits(found, wanted))
              << zc_dtype_name(input) << " to " << zc_dtype_name(output) << ' ' << zc_op_name(op) << " over " << p
              << ", element " << i << " of rank " << rank << ": " << +found << ", not " << +wanted;
        }
      }
    }
}

const std::vector<zc_op> kFloatOps = {ZC_OP_SUM, ZC_OP_AVG, ZC_OP_MIN, ZC_OP_MAX, ZC_OP_PROD, ZC_OP_PREMUL_SUM};
const std::vector<zc_op> kIntegerOps = {ZC_OP_SUM, ZC_OP_MIN, ZC_OP_MAX, ZC_OP_PROD, ZC_OP_PREMUL_SUM};

// NaN, infinities, zeros, the ends of normal and subnormal numbers, ones, and 256 for sums that tie.
const std::vector<std::uint16_t> kF16 = {0x7e00, 0x7c00, 0xfc00, 0x0000, 0x8000, 0x0001, 0x83ff,
                                         0x0400, 0x7bff, 0xfbff, 0x3c00, 0xbc00, 0x5c00, 0x7b53};
const std::vector<std::uint16_t> kBF16 = {0x7fc0, 0x7f80, 0xff80, 0x0000, 0x8000, 0x0001, 0x807f,
                                          0x0080, 0x7f7f, 0xff7f, 0x3f80, 0xbf80, 0x4380, 0x3f81};
const std::vector<std::uint32_t> kF32 = {0x7fc00000, 0x7f800000, 0xff800000, 0x00000000, 0x80000000,
                                         0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
                                         0x3f800000, 0xbf800000, 0x3f808000, 0x43818000, 0x477fe000};
const std::vector<std::uint64_t> kF64 = {
    0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0, 0x8000000000000000, 1,
    0x7fefffffffffffff, 0x3ff0000000000000, 0x0010000000000000};

TEST(OracleAgainstLoop, sixteen_bit_types_and_f32_in_every_pair) {
  for (const zc_op op : kFloatOps)
    for (const zc_dtype output : {ZC_DTYPE_F16, ZC_DTYPE_BF16, ZC_DTYPE_F32}) {
      compare<float>(ZC_DTYPE_F16, output, op, 0.1, kF16);
      compare<float>(ZC_DTYPE_BF16, output, op, 0.1, kBF16);
      compare<float>(ZC_DTYPE_F32, output, op, 0.1, kF32);
    }
}

TEST(OracleAgainstLoop, f64) {
  for (const zc_op op : kFloatOps) compare<double>(ZC_DTYPE_F64, ZC_DTYPE_F64, op, 0.1, kF64);
}

TEST(OracleAgainstLoop, integers) {
  for (const zc_op op : kIntegerOps) {
    compare<std::int64_t>(ZC_DTYPE_I64, ZC_DTYPE_I64, op, -3, std::vector<std::uint64_t>{0, 1, UINT64_MAX, 1ull << 63});
    compare<std::int32_t>(ZC_DTYPE_I32, ZC_DTYPE_I32, op, -3, std::vector<std::uint32_t>{0, 1, UINT32_MAX, 1u << 31});
    compare<std::uint8_t>(ZC_DTYPE_U8, ZC_DTYPE_U8, op, 3, std::vector<std::uint8_t>{0, 1, 255, 128});
    compare<std::int8_t>(ZC_DTYPE_I8, ZC_DTYPE_I8, op, -3, std::vector<std::uint8_t>{0, 1, 255, 128});
  }
}

TEST(OracleAgainstLoop, a_scattered_sum_is_the_same_sum) {
  std::mt19937_64 random(7);
  for (const std::uint32_t p : {1u, 3u, 8u}) {
    const std::size_t count = 5 * p;
    std::vector<Bytes> inputs;
    for (std::uint32_t rank = 0; rank < p; ++rank) inputs.push_back(draw<std::uint16_t>(random, count, kBF16));
    const Elements elements{ZC_DTYPE_BF16, ZC_DTYPE_F32, ZC_OP_AVG, 1};
    const Partition partition = Partition::even(count, p);
    const auto whole = run_oracle(build(make_key(Collective::all_reduce, "direct", p)), partition, elements, inputs);
    const auto shards =
        run_oracle(build(make_key(Collective::reduce_scatter, "direct", p)), partition, elements, inputs);
    const auto gathered = run_oracle(build(make_key(Collective::all_gather, "direct", p)), partition,
                                     {ZC_DTYPE_F32, ZC_DTYPE_NONE, ZC_OP_NONE, 1}, shards);
    EXPECT_EQ(gathered, whole);
  }
}

}  // namespace
}  // namespace zerocomm::schedule
