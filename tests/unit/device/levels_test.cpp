// Every level of kernels and every way to store gives the bits of the scalar definition.
#include "device/copy.hpp"
#include "device/level.hpp"
#include "device/reduce.hpp"

#include "element_buffer.hpp"
#include "reduce_requests.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace {

using namespace zerocomm::device;
using reference::Request;

constexpr Stores kStores[] = {Stores::cached, Stores::streaming};
constexpr std::size_t kPoolCount = 16384;

std::vector<Level> levels_here() {
  std::vector<Level> levels;
  for (const Level level : kLevels)
    if (has_level(level)) levels.push_back(level);
  return levels;
}

std::string describe(Level level, Stores stores) {
  return std::string(level_name(level)) + (stores == Stores::streaming ? ", streaming" : ", cached");
}

// Difficult elements of each type, made once; inputs are runs of them at different places.
const unsigned char* pool(zc_dtype dtype) {
  static std::map<zc_dtype, ElementBuffer> pools;
  auto found = pools.find(dtype);
  if (found == pools.end()) {
    found = pools.emplace(dtype, ElementBuffer(dtype, kPoolCount)).first;
    std::mt19937_64 random(static_cast<std::uint64_t>(dtype) + 1);
    found->second.fill(random);
  }
  return static_cast<const unsigned char*>(found->second.data());
}

// Bytes at a chosen place in a cache line, between two guards.
class Bytes {
 public:
  Bytes(std::size_t bytes, std::size_t shift_bytes) : bytes_(bytes), storage_(bytes + 4 * kGuardBytes, kGuard) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    first_ = 2 * kGuardBytes - address % kGuardBytes + shift_bytes % kGuardBytes;
  }
  unsigned char* data() { return storage_.data() + first_; }
  void set(const void* from) {
    std::fill(storage_.begin(), storage_.end(), kGuard);
    if (bytes_ != 0) std::memcpy(data(), from, bytes_);
  }
  bool guards_intact() const {
    const auto intact = [](unsigned char byte) { return byte == kGuard; };
    return std::all_of(storage_.data(), storage_.data() + first_, intact) &&
           std::all_of(storage_.data() + first_ + bytes_, storage_.data() + storage_.size(), intact);
  }

 private:
  static constexpr std::size_t kGuardBytes = 64;
  static constexpr unsigned char kGuard = 0xA5;
  std::size_t bytes_, first_ = 0;
  std::vector<unsigned char> storage_;
};

struct Case {
  Request request;
  std::size_t inputs = 1, count = 0;
  std::size_t input_shift = 0, output_shift = 0;  // elements off a cache line
  std::uint64_t nulls = 0;                        // bit r: input r is null
  int aliased = -1;                               // the first output is this input
};

std::string describe(const Case& made) {
  return std::string(zc_op_name(made.request.op)) + " of " + zc_dtype_name(made.request.in) + " into " +
         zc_dtype_name(made.request.out) + (made.request.accumulate ? ", accumulating" : "") + ", " +
         std::to_string(made.inputs) + " inputs, count " + std::to_string(made.count) +
         ", input and output shifted by " + std::to_string(made.input_shift) + " and " +
         std::to_string(made.output_shift) + ", aliased input " + std::to_string(made.aliased);
}

// Computes what the definition says once, and runs every level, way to store, and one and three outputs against it.
class Runner {
 public:
  explicit Runner(const Case& made) : made_(made), in_bytes_(zc_dtype_bytes(made.request.in)) {
    for (std::size_t r = 0; r < made.inputs; ++r) {
      const std::size_t place = (r * 61 + 16 * made.count + made.input_shift) % (kPoolCount - made.count);
      const bool is_null = (made.nulls >> r & 1) != 0;
      inputs_.push_back(is_null ? nullptr : pool(made.request.in) + place * in_bytes_);
    }
    const unsigned char* held = pool(made.request.out) + 7 * zc_dtype_bytes(made.request.out);
    for (std::size_t k = 0; k < kOutputs; ++k) held_.push_back(held + 11 * k * zc_dtype_bytes(made.request.out));
    if (made.aliased >= 0)
      held_[0] = static_cast<const unsigned char*>(inputs_[static_cast<std::size_t>(made.aliased)]);
    // Only an output that is added to makes a difference between outputs.
    for (std::size_t k = 0; k < (made.request.accumulate ? kOutputs : 1); ++k) {
      expected_.emplace_back(made.count);
      for (std::size_t i = 0; i < made.count; ++i)
        expected_[k][i] = reference::expected_bits(made.request, inputs_, held_[k], i);
    }
  }

  void run_all() {
    for (const Level level : levels_here())
      for (const Stores stores : kStores)
        for (const std::size_t outputs : {std::size_t{1}, kOutputs}) run(level, stores, outputs);
  }

 private:
  static constexpr std::size_t kOutputs = 3;

  void run(Level level, Stores stores, std::size_t output_count) {
    SCOPED_TRACE(describe(made_) + ", " + describe(level, stores) + ", outputs " + std::to_string(output_count));
    const std::size_t out_bytes = zc_dtype_bytes(made_.request.out);
    std::vector<Bytes> outputs;
    std::vector<void*> places;
    for (std::size_t k = 0; k < output_count; ++k) {
      // The second output lies elsewhere in its line than the first, the third as the first does.
      outputs.emplace_back(made_.count * out_bytes, (made_.output_shift + k % 2) * out_bytes);
      outputs.back().set(held_[k]);
    }
    for (Bytes& output : outputs) places.push_back(output.data());
    std::vector<const void*> inputs = inputs_;
    if (made_.aliased >= 0) inputs[static_cast<std::size_t>(made_.aliased)] = places[0];
    const ReduceArgs args{made_.request.divisor, made_.request.premul, made_.request.accumulate, stores};
    const Request& request = made_.request;
    if (output_count == 1)
      find_reduce(level, request.in, request.out, request.op)(inputs.data(), inputs.size(), places[0], made_.count,
                                                              args);
    else
      find_reduce_to_many(level, request.in, request.out, request.op)(inputs.data(), inputs.size(), places.data(),
                                                                      output_count, made_.count, args);
    for (std::size_t k = 0; k < output_count; ++k) {
      const std::vector<std::uint64_t>& expected = expected_[std::min(k, expected_.size() - 1)];
      for (std::size_t i = 0; i < made_.count; ++i)
        ASSERT_TRUE(same_element(request.out, places[k], i, expected[i])) << "output " << k << " element " << i;
      ASSERT_TRUE(outputs[k].guards_intact()) << "output " << k;
    }
  }

  Case made_;
  std::size_t in_bytes_;
  std::vector<const void*> inputs_;
  std::vector<const unsigned char*> held_;
  std::vector<std::vector<std::uint64_t>> expected_;
};

void expect_definition(const Case& made) { Runner(made).run_all(); }

TEST(Levels, every_type_operation_number_of_inputs_and_count_is_the_same_everywhere) {
  std::size_t turn = 0;
  for (const Request& request : reference::all_requests())
    for (const std::size_t inputs : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 17u, 33u})
      for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 63u, 129u}) {
        Case made{request, inputs, count};
        made.output_shift = turn++ % 7;
        made.input_shift = turn % 3;
        if (turn % 5 == 0) made.nulls = turn * 0x9e3779b97f4a7c15u;
        expect_definition(made);
        if (HasFatalFailure()) return;
      }
}

TEST(Levels, long_ranges_are_the_same_everywhere) {
  std::size_t turn = 0;
  for (const Request& request : reference::all_requests())
    for (const std::size_t count : {1023u, 1024u, 1025u, 10007u}) {
      constexpr std::size_t kInputs[] = {2, 3, 1, 4, 5, 8, 35};
      const std::size_t inputs = count == 10007 ? 2 + turn % 2 : kInputs[turn % 7];
      Case made{request, inputs, count};
      made.output_shift = turn++ % 17;
      if (turn % 3 == 0) made.nulls = 2;
      expect_definition(made);
      if (HasFatalFailure()) return;
    }
}

TEST(Levels, every_place_in_a_cache_line_is_the_same) {
  for (const Request& request : reference::all_requests()) {
    if (request.op != ZC_OP_SUM && request.op != ZC_OP_MAX) continue;
    for (std::size_t shift = 0; shift * zc_dtype_bytes(request.out) < 64; ++shift) {
      Case made{request, 2, 333};
      made.output_shift = shift;
      made.input_shift = shift / 2;
      expect_definition(made);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Levels, the_output_may_be_any_input_at_every_level) {
  std::size_t turn = 0;
  for (Request request : reference::all_requests()) {
    if (request.in != request.out) continue;
    for (const std::size_t inputs : {1u, 2u, 3u, 8u, 33u})
      for (const std::size_t aliased : {std::size_t{0}, inputs / 2, inputs - 1}) {
        request.accumulate = turn++ % 3 == 0;
        Case made{request, inputs, turn % 2 == 0 ? 150u : 1100u};
        made.aliased = static_cast<int>(aliased);
        made.output_shift = turn % 4;
        expect_definition(made);
        if (HasFatalFailure()) return;
      }
  }
}

TEST(Levels, accumulating_and_dividing_are_the_same_everywhere) {
  for (Request request : reference::all_requests())
    for (const double divisor : {0.0, 3.0, -0.1})
      for (const std::size_t inputs : {1u, 2u, 34u}) {
        if (divisor != 0 && !reference::is_float(request.in)) continue;
        request.accumulate = true;
        request.divisor = divisor;
        expect_definition({request, inputs, 150, 1, 1});
        request.accumulate = false;
        if (divisor != 0) expect_definition({request, inputs, 150, 0, 1});
        if (HasFatalFailure()) return;
      }
}

// Halves as f32 and back: what a kernel of one input does is a conversion.
void convert_at(Level level, zc_dtype from, zc_dtype to, const void* source, void* output, std::size_t count) {
  find_reduce(level, from, to, ZC_OP_SUM)(&source, 1, output, count, {});
}

TEST(Levels, every_sixteen_bit_value_widens_exactly_at_every_level) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (const Level level : levels_here())
    for (const zc_dtype half : {ZC_DTYPE_F16, ZC_DTYPE_BF16}) {
      std::vector<float> wide(halves.size());
      convert_at(level, half, ZC_DTYPE_F32, halves.data(), wide.data(), halves.size());
      std::vector<std::uint16_t> back(halves.size()), copied(halves.size());
      convert_at(level, ZC_DTYPE_F32, half, wide.data(), back.data(), halves.size());
      convert_at(level, half, half, halves.data(), copied.data(), halves.size());
      for (std::size_t i = 0; i < halves.size(); ++i) {
        const double value = reference::decode_bits(half, i);
        ASSERT_TRUE(same_element(ZC_DTYPE_F32, wide.data(), i, reference::encode_bits(ZC_DTYPE_F32, value)))
            << level_name(level) << " " << i;
        ASSERT_TRUE(same_element(half, back.data(), i, i)) << level_name(level) << " " << i;
        ASSERT_TRUE(same_element(half, copied.data(), i, i)) << level_name(level) << " " << i;
      }
    }
}

// Every value of a half, the ties between neighbours, what lies next to each, and any bits.
std::vector<float> values_to_round(zc_dtype half) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < 65535; ++bits) {
    const auto low = static_cast<float>(reference::decode_bits(half, bits));
    const auto high = static_cast<float>(reference::decode_bits(half, bits + 1));
    const float tie = low / 2 + high / 2;
    for (const float value : {low, tie})
      for (const float aim : {-std::numeric_limits<float>::infinity(), value, std::numeric_limits<float>::infinity()})
        values.push_back(std::nextafter(value, aim));
  }
  std::mt19937 random(5);
  for (int i = 0; i < 200'000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

TEST(Levels, rounding_to_sixteen_bits_is_to_nearest_even_at_every_level) {
  for (const zc_dtype half : {ZC_DTYPE_F16, ZC_DTYPE_BF16}) {
    const std::vector<float> values = values_to_round(half);
    std::vector<std::uint16_t> expected(values.size()), rounded(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      expected[i] = static_cast<std::uint16_t>(
          reference::encode_bits(half, reference::round_to(half, static_cast<double>(values[i]))));
    for (const Level level : levels_here()) {
      convert_at(level, ZC_DTYPE_F32, half, values.data(), rounded.data(), values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_TRUE(same_element(half, rounded.data(), i, expected[i])) << level_name(level) << " " << values[i];
    }
  }
}

// The sum of two halves is rounded by the kernel that keeps pairs of them in one vector.
TEST(Levels, sums_of_two_halves_round_as_the_definition_says) {
  std::mt19937 random(6);
  std::vector<std::uint16_t> a(65536), b(65536), sums(65536);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint16_t>(i);
    b[i] = static_cast<std::uint16_t>(i % 3 == 0 ? random() : i ^ (random() & 0x07ffu));
  }
  const void* inputs[] = {a.data(), b.data()};
  for (const zc_dtype half : {ZC_DTYPE_F16, ZC_DTYPE_BF16}) {
    const Request request{half, half, ZC_OP_SUM};
    std::vector<std::uint64_t> expected(a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      expected[i] = reference::expected_bits(request, {inputs[0], inputs[1]}, nullptr, i);
    for (const Level level : levels_here()) {
      find_reduce(level, half, half, ZC_OP_SUM)(inputs, 2, sums.data(), sums.size(), {});
      for (std::size_t i = 0; i < sums.size(); ++i)
        ASSERT_TRUE(same_element(half, sums.data(), i, expected[i])) << level_name(level) << " " << i;
    }
  }
}

TEST(Levels, copies_of_any_length_and_place_are_whole) {
  const unsigned char* source = pool(ZC_DTYPE_U8);
  for (const Level level : levels_here())
    for (const Stores stores : kStores)
      for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 255u, 256u, 511u, 1000u, 4097u})
        for (const std::size_t shift : {0u, 1u, 8u, 63u})
          for (const std::size_t output_count : {0u, 1u, 2u, 5u}) {
            SCOPED_TRACE(describe(level, stores) + ", " + std::to_string(bytes) + " bytes, shift " +
                         std::to_string(shift) + ", outputs " + std::to_string(output_count));
            std::vector<Bytes> outputs;
            std::vector<void*> places;
            for (std::size_t k = 0; k < output_count; ++k) outputs.emplace_back(bytes, (shift + 16 * k) % 64);
            for (Bytes& output : outputs) places.push_back(output.data());
            find_copy_to_many(level)(source + shift / 3, places.data(), output_count, bytes, stores);
            for (Bytes& output : outputs) {
              ASSERT_EQ(std::memcmp(output.data(), source + shift / 3, bytes), 0);
              ASSERT_TRUE(output.guards_intact());
            }
          }
  for (const Stores stores : kStores) {
    Bytes output(777, 3);
    copy(output.data(), source, 777, stores);
    EXPECT_EQ(std::memcmp(output.data(), source, 777), 0);
    EXPECT_TRUE(output.guards_intact());
    copy(nullptr, nullptr, 0, stores);
  }
}

TEST(Levels, kernels_exist_for_the_levels_of_this_host) {
  EXPECT_TRUE(has_level(Level::baseline));
  for (const Level level : kLevels) {
    EXPECT_EQ(find_copy_to_many(level) != nullptr, has_level(level));
    EXPECT_EQ(find_reduce(level, ZC_DTYPE_F32, ZC_DTYPE_BF16, ZC_OP_AVG) != nullptr, has_level(level));
    EXPECT_EQ(find_reduce_to_many(level, ZC_DTYPE_I8, ZC_DTYPE_NONE, ZC_OP_MIN) != nullptr, has_level(level));
    EXPECT_EQ(find_reduce(level, ZC_DTYPE_I8, ZC_DTYPE_I8, ZC_OP_AVG), nullptr);
    if (level <= best_level()) {
      EXPECT_TRUE(has_level(level));
    }
  }
  EXPECT_EQ(find_reduce(static_cast<Level>(9), ZC_DTYPE_F32, ZC_DTYPE_F32, ZC_OP_SUM), nullptr);
}

TEST(LevelChoice, the_best_level_is_taken_where_nothing_or_auto_is_asked_for) {
  for (const Level best : kLevels)
    for (const std::optional<std::string>& wish : {std::optional<std::string>(), std::optional<std::string>("auto")}) {
      const LevelChoice choice = choose_level(wish, best);
      EXPECT_EQ(choice.status, ZC_OK);
      EXPECT_EQ(choice.level, best);
    }
}

TEST(LevelChoice, a_lower_level_can_be_asked_for_and_a_higher_one_is_refused) {
  for (const Level best : kLevels)
    for (const Level wish : kLevels) {
      const LevelChoice choice = choose_level(std::string(level_name(wish)), best);
      EXPECT_EQ(choice.status, wish <= best ? ZC_OK : ZC_UNSUPPORTED);
      if (wish <= best) {
        EXPECT_EQ(choice.level, wish);
      }
    }
  EXPECT_EQ(choose_level("avx512", Level::avx2).why,
            "the variable ZC_KERNELS is \"avx512\"; the best that this processor has is avx2");
}

TEST(LevelChoice, another_word_is_a_wrong_argument) {
  for (const char* wish : {"AVX2", "avx", "sse2", "avx512 ", "2"}) {
    const LevelChoice choice = choose_level(std::string(wish), Level::avx512);
    EXPECT_EQ(choice.status, ZC_ARGUMENT) << wish;
    EXPECT_EQ(choice.why,
              std::string("the variable ZC_KERNELS is \"") + wish + "\"; it takes auto, baseline, avx2 or avx512");
  }
}

}  // namespace
