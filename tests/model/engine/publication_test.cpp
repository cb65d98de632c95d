// Publication: in all interleavings a copy is whole and of the generation that was pinned, and no legal program hangs.
#include "model/engine/publication.hpp"

#include "model/case.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace zerocomm::test {
namespace {

using Without = PublicationModel::Without;

TEST(PublicationModel, holds_for_training) {
  expect_holds("2 ranks, 3 generations", PublicationModel{2, {"baeuwpbaeuwpbae", "baeuwpbaeuwpbae"}}, {100'000, true});
  expect_holds("2 ranks, 3 generations, fetched ahead", PublicationModel{2, {"baeuwpbaeuwpbae", "baeuwpbaeuwpbae"}, 2});
  expect_holds("3 ranks, 3 generations",
               PublicationModel{3, {"baeuwpbaeuwpbae", "baeuwpbaeuwpbae", "baeuwpbaeuwpbae"}});
  expect_holds("3 ranks, 2 generations, fetched ahead",
               PublicationModel{3, {"baeuwpbae", "baeuwpbae", "baeuwpbae"}, 1});
  expect_holds("3 ranks, views",
               PublicationModel{3, {"bhreuwpbhreuwpbhre", "bhreuwpbhreuwpbhre", "bhreuwpbhreuwpbhre"}});
}

TEST(PublicationModel, holds_for_evaluation_on_one_rank_alone) {
  expect_holds("3 ranks", PublicationModel{3, {"baeuwpbae", "baeuwpbae", "baebaebaeuwpbaebae"}});
  expect_holds("3 ranks, one reads nothing", PublicationModel{3, {"baeuwpbaeuwp", "baeuwpbaeuwp", "uwpuwp"}});
  expect_holds("2 ranks, fetched ahead", PublicationModel{2, {"bebaebeuwpbebae", "baeuwpbaebaeb"}, 2});
}

TEST(PublicationModel, holds_for_steps_that_change_nothing) {
  expect_holds("2 ranks, after update_begin", PublicationModel{2, {"baeunbaeuwpbae", "baeunbaeuwpbae"}, 1});
  expect_holds("2 ranks, alone", PublicationModel{2, {"baenbaeuwpbae", "baenbaeuwpbae"}, 1});
  expect_holds("3 ranks, both ways", PublicationModel{3, {"baenbaeuwpbae", "baeunbaeuwpbae", "baenbaeuwpbae"}});
  expect_holds("2 ranks that differ", PublicationModel{2, {"baenbae", "baeuwpbae"}, 1});
}

TEST(PublicationModel, holds_for_replicas_that_are_pulled) {
  expect_holds("2 ranks, 3 generations", PublicationModel{2, {"bseuwlbseuwlbse", "bseuwlbseuwlbse"}}, {100'000, true});
  expect_holds("3 ranks, 2 generations",
               PublicationModel{3, {"bseuwlbseuwlbse", "bseuwlbseuwlbse", "bsebseuwlbseuwlbse"}});
}

TEST(PublicationModel, holds_when_owners_time_out_and_write) {
  expect_holds("2 ranks, fetched ahead", PublicationModel{2, {"baeuwpbae", "baeuwpbae"}, 1, 1}, {100'000, true});
  expect_holds("3 ranks, 2 deadlines", PublicationModel{3, {"baeuwpbae", "baeuwpbae", "baeuwpbae"}, 0, 2});
}

// All programs of a rank: before, between and after publications of these kinds at most one pass.
struct Program {
  std::string text;
  unsigned kinds;  // bit i: publication i changes nothing
};
std::vector<Program> all_programs(int publications) {
  std::vector<Program> made{{"", 0}, {"bae", 0}};
  for (int i = 0; i < publications; ++i) {
    std::vector<Program> longer;
    for (const Program& program : made)
      for (const char* const publication : {"uwp", "un", "n"})
        for (const char* const pass : {"", "bae"}) {
          const unsigned kind = publication[1] == 'w' ? 0U : 1U << i;
          longer.push_back({program.text + publication + pass, program.kinds | kind});
        }
    made = std::move(longer);
  }
  return made;
}

TEST(PublicationModel, holds_for_all_short_legal_programs) {
  for (const auto& [ranks, publications, ahead] : {std::array{2, 1, 2}, {2, 2, 0}, {3, 1, 0}}) {
    if (kSmallCases && publications + ranks > 3) continue;
    std::size_t cases = 0, states = 0;
    const std::vector<Program> programs = all_programs(publications), none{{"", 0}};
    for (const Program& a : programs)
      for (const Program& b : programs)
        for (const Program& c : ranks == 3 ? programs : none) {
          if (a.kinds != b.kinds || (ranks == 3 && a.kinds != c.kinds)) continue;
          const Finding finding =
              explore(PublicationModel{ranks, {a.text.c_str(), b.text.c_str(), c.text.c_str()}, ahead});
          ASSERT_EQ(finding.verdict, Verdict::holds) << trace_of(finding);
          ++cases;
          states += finding.states;
        }
    std::printf("%d ranks, %d publications, %d fetches ahead: %zu cases hold, %zu states\n", ranks, publications, ahead,
                cases, states);
  }
}

// All ways in which the words of two engines can follow each other.
void interleave(const std::vector<std::string>& a, const std::vector<std::string>& b, std::size_t i, std::size_t j,
                const std::string& text, std::vector<std::string>* all) {
  if (i == a.size() && j == b.size()) all->push_back(text);
  if (i < a.size()) interleave(a, b, i + 1, j, text + a[i], all);
  if (j < b.size()) interleave(a, b, i, j + 1, text + b[j], all);
}

// Two engines: passes may lie in any way, update_begin and publish in one order on all ranks.
TEST(PublicationModel, holds_for_two_engines_that_are_updated_in_one_order) {
  std::vector<std::string> all;
  interleave({"bae", "u", "wp", "bae"}, {"BAE", "U", "WP", "BAE"}, 0, 0, "", &all);
  const auto order_of_updates = [](std::string text) {
    std::erase_if(text, [](char op) { return std::strchr("uUpP", op) == nullptr; });
    return text;
  };
  std::size_t held = 0, hung = 0, held_in_other_order = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i; j < all.size(); ++j) {
      if (kSmallCases && j % 8 != 0) continue;
      const Finding finding = explore(PublicationModel{2, {all[i].c_str(), all[j].c_str()}});
      const bool holds = finding.verdict == Verdict::holds;
      if (order_of_updates(all[i]) == order_of_updates(all[j])) {
        ASSERT_TRUE(holds) << all[i] << ' ' << all[j] << ' ' << trace_of(finding);
        ++held;
      } else {
        ASSERT_TRUE(holds || finding.verdict == Verdict::deadlock) << trace_of(finding);
        ++(holds ? held_in_other_order : hung);
      }
    }
  std::printf("%zu pairs of programs with one order hold; of those with two orders %zu hang and %zu do not\n", held,
              hung, held_in_other_order);
  if (!kSmallCases) {
    EXPECT_EQ(held, 486u);
  }
  EXPECT_GT(held, 0u);
  EXPECT_GT(hung, 0u);
}

constexpr Verdict kBroken = Verdict::broken, kHangs = Verdict::deadlock;
const Control<PublicationModel> kControls[] = {
    {"wait_for_owners", {2, {"baeuwpbae", "baeuwpbae"}, 0, 0, Without::wait_for_owners}, kBroken, "reads a"},
    {"wait_for_readers",
     {2, {"baeuwp", "baeuwp"}, 0, 0, Without::wait_for_readers},
     kBroken,
     "a rank is not done with"},
    {"drain", {2, {"beuwp", "beuwp"}, 1, 0, Without::drain}, kBroken, "while its owner writes it"},
    {"drain_before_done",
     {2, {"beuwp", "beuwp"}, 1, 0, Without::drain_before_done},
     kBroken,
     "while its owner writes it"},
    {"drop", {2, {"baeuwpbae", "baeuwpbae"}, 0, 0, Without::drop}, kBroken, "uses a copy of another generation"},
    {"check_with_plan", {2, {"beuwp", "beuwp"}, 1, 0, Without::check_with_plan}, kBroken, "reads"},
    {"refused_begin", {2, {"baeubaewp", "baeuwp"}, 0, 0, Without::refused_begin}, kBroken, "while its owner writes it"},
    {"refused_update_while_held",
     {2, {"bheuwpruwp", "baeuwp"}, 0, 0, Without::refused_update_while_held},
     kBroken,
     "writes a shard that is held"},
    {"done_of_publish_unchanged",
     {2, {"baenbaeuwp", "baeuwpbaeuwp"}, 0, 0, Without::done_of_publish_unchanged},
     kHangs,
     "a rank hangs"},
    {"check_of_changes", {2, {"baenbae", "baeuwpbae"}, 0, 0, Without::check_of_changes}, kBroken, "mixes updated"},
    {"check_after_copy", {2, {"baeuwp", "uwp"}, 0, 1, Without::check_after_copy}, kBroken, "wrote after an error"},
    {"wait_before_pull", {2, {"bseuwl", "bseuwl"}, 0, 0, Without::wait_before_pull}, kBroken, "reads"},
};

class RemovedFromPublication : public testing::TestWithParam<Control<PublicationModel>> {};
TEST_P(RemovedFromPublication, is_found) { expect_needed(GetParam()); }
INSTANTIATE_TEST_SUITE_P(, RemovedFromPublication, testing::ValuesIn(kControls), kNameOfControl);

}  // namespace
}  // namespace zerocomm::test
