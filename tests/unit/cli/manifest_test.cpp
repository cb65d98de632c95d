// Model files: expansion, defaults, and one clear line about what is wrong.
#include "cli/manifest.hpp"
#include "cli/failure.hpp"

#include <gtest/gtest.h>

namespace zerocomm::cli {
namespace {

Manifest model(const std::string& params, const std::string& dtype = "f32") {
  return parse_manifest(
      R"({"format":"zc.model","version":1,"name":"m","dtype":")" + dtype + R"(","params":[)" + params + "]}", "m.json");
}

std::string complaint(const std::string& text) {
  try {
    parse_manifest(text, "m.json");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "accepted";
}

std::string complaint_about(const std::string& params) {
  return complaint(R"({"format":"zc.model","version":1,"params":[)" + params + "]}");
}

TEST(Manifest, shapes_multiply_and_defaults_hold) {
  const Manifest made =
      model(R"({"name":"s","shape":[],"module":"a"},{"name":"e","shape":[0,7],"module":"a"},)"
            R"({"name":"w","shape":[3,5],"module":"b","dtype":"bf16","trainable":false,"cond":true})");
  ASSERT_EQ(made.tensors.size(), 3u);
  EXPECT_EQ(made.tensors[0].count, 1u);
  EXPECT_EQ(made.tensors[0].dtype, ZC_DTYPE_F32);
  EXPECT_FALSE(made.tensors[0].frozen);
  EXPECT_EQ(made.tensors[1].count, 0u);
  EXPECT_EQ(made.tensors[2].count, 15u);
  EXPECT_EQ(made.tensors[2].dtype, ZC_DTYPE_BF16);
  EXPECT_TRUE(made.tensors[2].frozen);
}

TEST(Manifest, repeat_blocks_nest_and_start_where_they_say) {
  const Manifest made =
      model(R"({"repeat":2,"from":3,"params":[{"name":"l.{i}","shape":[1],"module":"l.{i}"},)"
            R"({"repeat":2,"var":"e","params":[{"name":"l.{i}.{e}","shape":[1],"module":"l.{i}.x{e}"}]}]})");
  std::string names;
  for (const ManifestTensor& tensor : made.tensors) names += tensor.name + "@" + tensor.unit + " ";
  EXPECT_EQ(names, "l.3@l.3 l.3.0@l.3.x0 l.3.1@l.3.x1 l.4@l.4 l.4.0@l.4.x0 l.4.1@l.4.x1 ");
}

TEST(Manifest, replicated_buffers_are_left_out) {
  const Manifest made = model(R"({"name":"n","shape":[],"module":"a","dtype":"i64","kind":"buffer"})");
  EXPECT_TRUE(made.tensors.empty());
  EXPECT_TRUE(made.uses.empty());
}

TEST(Manifest, a_tie_is_as_frozen_as_its_owner_unless_it_says_otherwise) {
  const Manifest made = model(
      R"({"name":"a","shape":[2],"module":"u","trainable":false},{"name":"b","shape":[2],"module":"v","tied_to":"a"})");
  EXPECT_TRUE(made.tensors[1].frozen);
  EXPECT_EQ(made.tensors[1].tied_to, "a");
}

TEST(Manifest, stacked_tensors_are_used_layer_by_layer) {
  const Manifest made = model(
      R"({"name":"w","shape":[2,3],"module":"w","stacked":"h.{i}"},{"name":"b","shape":[2],"module":"b","stacked":"h.{i}"},)"
      R"({"name":"end","shape":[4],"module":"end"})");
  ASSERT_EQ(made.uses.size(), 5u);
  std::string order;
  for (const ManifestUse& use : made.uses)
    order += use.unit + ":" + made.tensors[use.tensor].name + "+" + std::to_string(use.slice.offset) + "," +
             std::to_string(use.slice.count) + " ";
  EXPECT_EQ(order, "h.0:w+0,3 h.0:b+0,1 h.1:w+3,3 h.1:b+1,1 end:end+0,4 ");
}

TEST(Manifest, storage_only_bytes_are_a_dtype) {
  EXPECT_EQ(model(R"({"name":"a","shape":[2],"module":"u","trainable":false})", "f8e4m3").tensors[0].dtype,
            ZC_DTYPE_F8E4M3);
}

TEST(Manifest, complaints_say_where_and_what) {
  EXPECT_EQ(complaint(""), "m.json: the file is empty");
  EXPECT_EQ(complaint("{\"a\":").substr(0, 17), "m.json: not JSON:");
  EXPECT_NE(complaint("[]").find("\"format\" must be"), std::string::npos);
  EXPECT_NE(complaint(R"({"format":"zc.model","version":2,"params":[]})").find("version 2"), std::string::npos);
  EXPECT_NE(complaint(R"({"format":"zc.model","version":1})").find("\"params\" is not a list"), std::string::npos);
  const std::pair<const char*, const char*> rows[] = {
      {"3", "neither a tensor nor a repeat block"},
      {R"({"shape":[1],"module":"a"})", "no \"name\""},
      {R"({"name":"w","shape":[1]})", "no \"module\""},
      {R"({"name":"w","module":"a"})", "'w' has no shape"},
      {R"({"name":"w","module":"a","shape":[-1]})", "not whole numbers"},
      {R"({"name":"w","module":"a","shape":[1.5]})", "not whole numbers"},
      {R"({"name":"w","module":"a","shape":[4294967296,4294967296]})", "more elements than 64 bits"},
      {R"({"name":"w","module":"a","shape":[1],"dtype":"f12"})", "dtype 'f12'"},
      {R"({"name":"w","module":"a","shape":[1],"kind":"thing"})", "kind 'thing'"},
      {R"({"name":"w","module":"a","shape":[1],"trainable":1})", "neither true nor false"},
      {R"({"name":"w.{j}","module":"a","shape":[1]})", "variable that is not set"},
      {R"({"name":"w","module":"a","shape":[],"stacked":"h.{i}"})", "has no axis"},
      {R"({"name":"w","module":"a","shape":[2],"stacked":"h"})", "one module only"},
      {R"({"name":"w","module":"a","shape":[0],"stacked":"h.{i}"})", "no layers"},
      {R"({"repeat":2})", "\"params\" is not a list"},
      {R"({"repeat":99999999999999,"params":[]})", "expands to more than"},
      {R"({"name":"w\u0000","module":"a","shape":[1]})", "holds a NUL"},
  };
  for (const auto& [params, text] : rows)
    EXPECT_NE(complaint_about(params).find(text), std::string::npos) << params << ": " << complaint_about(params);
}

TEST(Manifest, nesting_without_end_is_refused) {
  std::string params = R"({"name":"w","module":"a","shape":[1]})";
  for (int i = 0; i < 40; ++i) params = R"({"repeat":1,"params":[)" + params + "]}";
  EXPECT_NE(complaint_about(params).find("nest deeper"), std::string::npos);
  EXPECT_NE(complaint(std::string(1'000'000, '[') + std::string(1'000'000, ']')), "accepted");
}

TEST(Manifest, a_file_that_cannot_be_read_is_named) {
  for (const char* path : {"/nonexistent/model.json", "/"}) {
    try {
      read_manifest(path);
      ADD_FAILURE() << "accepted " << path;
    } catch (const Failure& failure) {
      EXPECT_EQ(std::string(failure.what()).find(path), 0u) << failure.what();
    }
  }
}

}  // namespace
}  // namespace zerocomm::cli
