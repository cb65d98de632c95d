// The norm of all gradients: exact, so equal for every cut, and of real elements of trained tensors only.
#include "support/engine_world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace zerocomm::test {
namespace {

constexpr std::array<zc_stage, 4> kStages = {ZC_STAGE_0, ZC_STAGE_1, ZC_STAGE_2, ZC_STAGE_3};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A whole number of 2^-298, as bits. The square of every f32 is one.
class BigInteger {
 public:
  void add_square(float value) {
    int exponent = 0;
    const double fraction = std::frexp(static_cast<double>(std::fabs(value)), &exponent);
    auto root = static_cast<std::uint64_t>(std::ldexp(fraction, 24));  // value = root * 2^(exponent - 24)
    int shift = exponent - 24;
    while (shift < -149) root >>= 1, ++shift;  // subnormal: these bits are zeros
    const std::uint64_t square = root * root;
    for (std::size_t bit = 0; bit < 48; ++bit)
      if ((square >> bit & 1) != 0) add_bit(static_cast<std::size_t>(2 * shift + 298) + bit);
  }

  // To nearest, ties to even.
  double round() const {
    std::size_t top = kBits;
    while (top > 0 && !bits_[top - 1]) --top;
    const std::size_t low = top > 53 ? top - 53 : 0;
    std::uint64_t significand = 0;
    for (std::size_t bit = top; bit-- > low;) significand = significand << 1 | (bits_[bit] ? 1 : 0);
    if (low > 0 && bits_[low - 1]) {
      const bool rest = std::find(bits_.begin(), bits_.begin() + static_cast<std::ptrdiff_t>(low) - 1, true) !=
                        bits_.begin() + static_cast<std::ptrdiff_t>(low) - 1;
      if (rest || (significand & 1) != 0) ++significand;
    }
    return std::ldexp(static_cast<double>(significand), static_cast<int>(low) - 298);
  }

 private:
  static constexpr std::size_t kBits = 640;
  void add_bit(std::size_t bit) {
    while (bits_[bit]) bits_[bit++] = false;
    bits_[bit] = true;
  }
  std::vector<bool> bits_ = std::vector<bool>(kBits);
};

TEST(BigInteger, squares_and_rounds) {
  BigInteger sum;
  sum.add_square(3);
  sum.add_square(-4);
  EXPECT_EQ(sum.round(), 25);
  BigInteger tiny;
  tiny.add_square(std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(tiny.round(), 0x1p-298);
  BigInteger large;
  large.add_square(std::numeric_limits<float>::max());
  EXPECT_EQ(large.round(), 0x1.fffffcp+255 + 0x1p+208);  // (2^24 - 1)^2 * 2^208
  BigInteger tie;                                        // 2^106 + 2^53 is half way to the next f64
  tie.add_square(0x1p+53f);
  for (int i = 0; i < 2; ++i) tie.add_square(0x1p+26f);
  EXPECT_EQ(tie.round(), 0x1p+106);
  tie.add_square(0x1p-149f);
  EXPECT_EQ(tie.round(), 0x1p+106 + 0x1p+54);
}

// Values over the whole range of f32: huge, ordinary, tiny, subnormal, zero.
enum class Kind { all, huge, tiny, subnormal };
float element(Kind kind, std::size_t tensor, std::size_t index) {
  const std::uint64_t draw = mix(tensor * 100'003 + index, static_cast<std::uint64_t>(kind));
  const double significand = 1 + static_cast<double>(draw >> 41) * 0x1p-23;
  int exponent = static_cast<int>(draw % 277) - 149;
  if (kind == Kind::huge) exponent = 120 + static_cast<int>(draw % 8);
  if (kind == Kind::tiny) exponent = -126 + static_cast<int>(draw % 20);
  if (kind == Kind::subnormal) exponent = -149 + static_cast<int>(draw % 23);
  const auto value = static_cast<float>(std::ldexp(significand, exponent));
  return (draw >> 12 & 1) != 0 ? -value : value;
}

cli::Manifest norm_model() {
  return hand_model({{"scalar", "a", "", 1, ZC_DTYPE_F32, false},
                     {"odd", "a", "", 37, ZC_DTYPE_F32, false},
                     {"frozen", "a", "", 50, ZC_DTYPE_F32, true},
                     {"large", "b", "", 1009, ZC_DTYPE_F32, false},
                     {"empty", "b", "", 0, ZC_DTYPE_F32, false},
                     {"odd_again", "c", "odd", 37, ZC_DTYPE_F32, false},
                     {"few", "c", "", 5, ZC_DTYPE_F32, false}});
}

using Elements = std::vector<std::vector<float>>;  // gradients of each use
Elements gradients_of(Kind kind, const cli::Manifest& model) {
  Elements result;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    result.emplace_back(model.tensors[i].count);
    // What the second part of a tied tensor adds is zeros, so that the sum is known.
    for (std::size_t k = 0; k < result[i].size() && model.tensors[i].tied_to.empty(); ++k)
      result[i][k] = element(kind, i, k);
  }
  return result;
}

// Every element comes from one rank, and zeros from the others: the sum over ranks is the element, however many there
// are.
zc_norm norm_of(const WorldSetup& given, const Elements& gradients) {
  WorldSetup setup = given;
  setup.zero.gradient_divisor = 1;
  std::vector<zc_norm> norms(static_cast<std::size_t>(setup.ranks));
  run_ranks(setup.ranks, [&](zc_comm* comm, std::int32_t rank) {
    RankEngine engine(comm, setup);
    engine.load();
    Elements mine = gradients;
    for (std::size_t i = 0; i < mine.size(); ++i)
      for (std::size_t k = 0; k < mine[i].size(); ++k)
        if (static_cast<std::int32_t>((i + k) % static_cast<std::size_t>(setup.ranks)) != rank) mine[i][k] = 0;
    RANK_OK(zc_zero_begin(engine.zero(), "train", ZC_PHASE_ONLY));
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (engine.gradient_dtype(i) != ZC_DTYPE_NONE)
        RANK_OK(zc_zero_grad_ready(engine.zero(), i, mine[i].data(), nullptr));
    RANK_OK(zc_zero_end(engine.zero()));
    zc_norm& norm = norms[static_cast<std::size_t>(rank)];
    norm.struct_size = sizeof norm;
    RANK_OK(zc_zero_norm(engine.zero(), &norm));
  });
  for (const zc_norm& norm : norms) EXPECT_EQ(std::memcmp(&norm, &norms[0], sizeof norm), 0);
  return norms[0];
}

template <class Visit>
void for_all_cuts(const Visit& visit) {
  for (std::int32_t ranks = 1; ranks <= 8; ++ranks)
    for (const zc_stage stage : kStages)
      for (const std::size_t alignment : {16u, 64u, 512u, 4096u})
        for (const std::size_t bucket_bytes : {1u, 256u, 1u << 20})
          for (const zc_placement placement : {ZC_PLACEMENT_PER_UNIT, ZC_PLACEMENT_FLAT}) {
            WorldSetup setup;
            setup.layout.placement = placement;
            setup.model = norm_model();
            setup.ranks = ranks;
            setup.layout.stage = stage;
            setup.layout.alignment_bytes = alignment;
            setup.layout.bucket_bytes = bucket_bytes;
            visit(setup);
          }
}

class ExactNorm : public testing::TestWithParam<Kind> {};

TEST_P(ExactNorm, has_the_bits_of_a_big_integer_for_every_cut) {
  const cli::Manifest model = norm_model();
  const Elements gradients = gradients_of(GetParam(), model);
  BigInteger sum;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    for (const float value : gradients[i])
      if (!model.tensors[i].frozen) sum.add_square(value);
  ASSERT_GT(sum.round(), 0);
  for_all_cuts([&](const WorldSetup& setup) {
    const zc_norm norm = norm_of(setup, gradients);
    EXPECT_EQ(norm.sum_squares, sum.round()) << setup.ranks << " ranks, stage " << setup.layout.stage;
    EXPECT_EQ(norm.norm, std::sqrt(sum.round()));
    EXPECT_EQ(norm.nan_count, 0);
    EXPECT_EQ(norm.inf_count, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(magnitudes, ExactNorm, testing::Values(Kind::all, Kind::huge, Kind::tiny, Kind::subnormal));

TEST(ExactNorm, counts_infinities_and_nans_once) {
  Elements gradients = gradients_of(Kind::all, norm_model());
  gradients[1][36] = kInfinity;
  gradients[3][0] = -kInfinity;
  gradients[3][1008] = kInfinity;
  for_all_cuts([&](const WorldSetup& setup) {
    if (setup.layout.alignment_bytes != 64) return;
    const zc_norm infinite = norm_of(setup, gradients);
    EXPECT_EQ(infinite.inf_count, 3);
    EXPECT_EQ(infinite.nan_count, 0);
    EXPECT_EQ(infinite.norm, static_cast<double>(kInfinity));
    Elements with_nan = gradients;
    with_nan[6][4] = kNan;
    const zc_norm undefined = norm_of(setup, with_nan);
    EXPECT_EQ(undefined.inf_count, 3);
    EXPECT_EQ(undefined.nan_count, 1);
    EXPECT_TRUE(std::isnan(undefined.norm));
  });
}

// Two tensors on two ranks, 3 and (4, 0); everything else is frozen or shares their storage.
TEST(ExactNorm, of_3_and_4_is_5) {
  for (const zc_stage stage : kStages) {
    WorldSetup setup;
    setup.model = hand_model({{"p0", "a", "", 1, ZC_DTYPE_F32, false},
                              {"frozen", "a", "", 3, ZC_DTYPE_F32, true},
                              {"p1", "b", "", 2, ZC_DTYPE_F32, false},
                              {"p0_again", "b", "p0", 1, ZC_DTYPE_F32, false}});
    setup.ranks = 2;
    setup.layout.stage = stage;
    EXPECT_EQ(norm_of(setup, {{3}, {7, 7, 7}, {4, 0}, {0}}).norm, 5);
    setup.clip = 0;
    run_ranks(2, [&](zc_comm* comm, std::int32_t) {  // the same gradient on both ranks is averaged, not counted twice
      RankEngine engine(comm, setup);
      engine.load();
      const float p0 = 2, again = 1, p1[2] = {4, 0};
      RANK_OK(zc_zero_begin(engine.zero(), "train", ZC_PHASE_ONLY));
      RANK_OK(zc_zero_grad_ready(engine.zero(), 0, &p0, nullptr));
      RANK_OK(zc_zero_grad_ready(engine.zero(), 2, p1, nullptr));
      RANK_OK(zc_zero_grad_ready(engine.zero(), 3, &again, nullptr));
      RANK_OK(zc_zero_end(engine.zero()));
      zc_norm norm{};
      norm.struct_size = sizeof norm;
      RANK_OK(zc_zero_norm(engine.zero(), &norm));
      RANK_CHECK(norm.norm == 5, "%g", norm.norm);
      RANK_OK(zc_zero_scale(engine.zero(), 1 / norm.norm));
      RANK_OK(zc_zero_norm(engine.zero(), &norm));
      RANK_CHECK(std::fabs(norm.norm - 1) < 1e-7, "%g", norm.norm);
    });
  }
}

}  // namespace
}  // namespace zerocomm::test
