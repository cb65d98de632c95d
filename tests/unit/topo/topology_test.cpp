// Topology texts.
#include "topo/topology.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

namespace zerocomm::topo {
namespace {

using Nodes = std::vector<std::int32_t>;

std::string complaint(const char* text, std::int32_t ranks) {
  try {
    parse_topology(text, ranks);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_ARGUMENT);
    return error.what();
  }
  return "no complaint";
}

TEST(Topology, reads_ranges_lists_and_single_ranks) {
  EXPECT_EQ(parse_topology("a:0-3 b:4-7", 8), (Topology{{"a", "b"}, Nodes{0, 0, 0, 0, 1, 1, 1, 1}}));
  EXPECT_EQ(parse_topology("a:0,2 b:1,3", 4), (Topology{{"a", "b"}, Nodes{0, 1, 0, 1}}));
  EXPECT_EQ(parse_topology("x:3,0-1 y:2", 4), (Topology{{"x", "y"}, Nodes{0, 0, 1, 0}}));
  EXPECT_EQ(parse_topology("  n7:0  ", 1), (Topology{{"n7"}, Nodes{0}}));
}

TEST(Topology, numbers_nodes_by_appearance_in_the_text) {
  EXPECT_EQ(parse_topology("late:2-3 early:0-1", 4), (Topology{{"late", "early"}, Nodes{1, 1, 0, 0}}));
}

TEST(Topology, without_a_text_is_one_node) { EXPECT_EQ(one_node(3), (Topology{{"host"}, Nodes{0, 0, 0}})); }

TEST(Topology, quotes_the_part_that_is_wrong) {
  struct Row {
    const char* text;
    const char* part;
  };
  for (const Row& row : {
           Row{"a", "\"a\" is not NAME:RANKS"},
           Row{":0-3", "\":0-3\" is not NAME:RANKS"},
           Row{"a:", "\"a:\" is not NAME:RANKS"},
           Row{"a:0-4", "\"4\" in \"a:0-4\" is not a rank from 0 to 3"},
           Row{"a:x", "\"x\" in \"a:x\""},
           Row{"a:1x", "\"1x\" in \"a:1x\""},
           Row{"a:-1", "\"\" in \"a:-1\""},
           Row{"a:0,,1", "\"\" in \"a:0,,1\""},
           Row{"a:0-1-2", "\"1-2\" in \"a:0-1-2\""},
           Row{"a:99999999999999999999", "\"99999999999999999999\""},
           Row{"a:0- b:1-3", "\"\" in \"a:0-\""},
           Row{"a:3-1 b:0", "range 3-1"},
           Row{"a:0-2 a:3", "node \"a\" stands twice"},
           Row{"a:0-2 b:2-3", "rank 2 stands twice"},
           Row{"a:0-2", "rank 3 is on no node"},
           Row{"", "rank 0 is on no node"},
       })
    EXPECT_NE(complaint(row.text, 4).find(row.part), std::string::npos) << row.text << ": " << complaint(row.text, 4);
}

}  // namespace
}  // namespace zerocomm::topo
