// JSON text.
#include "shard/json_writer.hpp"

#include <gtest/gtest.h>

namespace zerocomm::shard {
namespace {

TEST(JsonWriter, commas_stand_between_members_and_values_alone) {
  JsonWriter json;
  json.begin_object().member("a", 1).key("b").begin_array().value(2).begin_object().end_object().value("x").end_array();
  json.member("c", true).line().member("d", std::size_t{18446744073709551615u}).end_object();
  EXPECT_EQ(json.text(), "{\"a\":1,\"b\":[2,{},\"x\"],\"c\":true,\n\"d\":18446744073709551615}");
}

TEST(JsonWriter, a_list_may_be_empty) {
  JsonWriter json;
  json.begin_array().line().begin_array().end_array().begin_array().end_array().end_array();
  EXPECT_EQ(json.text(), "[\n[],[]]");
}

TEST(JsonQuote, quotes_backslashes_and_control_characters_are_escaped) {
  EXPECT_EQ(json_quote("a\"b\\c\n\x7f"), "\"a\\\"b\\\\c\\u000a\\u007f\"");
}

TEST(JsonQuote, utf8_passes_and_everything_else_is_replaced) {
  EXPECT_EQ(json_quote("\u00e9\u20ac\U0001f600"), "\"\u00e9\u20ac\U0001f600\"");
  EXPECT_EQ(json_quote("a\xff"
                       "b"),
            "\"a\ufffdb\"");
  EXPECT_EQ(json_quote("\xc3"), "\"\ufffd\"");                      // cut off
  EXPECT_EQ(json_quote("\xe0\x80\x80"), "\"\ufffd\ufffd\ufffd\"");  // overlong
  EXPECT_EQ(json_quote("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"");  // surrogate
}

}  // namespace
}  // namespace zerocomm::shard
