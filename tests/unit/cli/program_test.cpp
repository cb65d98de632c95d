// The program zc from the outside: what it prints, where, and how it ends.
#include "run_program.hpp"

#include <cstdlib>

namespace {

TEST(Program, version_and_help_go_to_standard_output) {
  const Outcome version = zc("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out.find("zc 0."), 0u) << version.out;
  const Outcome help = zc("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("layout"), std::string::npos);
  EXPECT_NE(zc("layout --help").out.find("--bucket"), std::string::npos);
}

TEST(Program, layout_prints_every_model) {
  for (const char* name : {"odd", "tiny-gpt", "gpt2-124m", "gpt2-124m-stacked"})
    for (const char* stage : {"0", "1", "2", "3"}) {
      const Outcome outcome = zc("layout " + kData + name + ".json -n 8 --stage " + stage);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_EQ(outcome.out.find(std::string("layout: stage ") + stage + " over 8 ranks"), 0u);
      EXPECT_NE(outcome.out.find("rank 7\n"), std::string::npos);
    }
}

TEST(Program, layout_of_the_odd_model_holds_its_totals) {
  const std::string text = zc("layout " + kData + "odd.json -n 3 --stage 3").out;
  EXPECT_NE(text.find("20 tensors (2 tied), 1073484 elements, of which 1073383 are trained"), std::string::npos)
      << text;
  EXPECT_NE(text.find("prime_again: 7919 elements, stored as prime"), std::string::npos);
}

TEST(Program, layout_writes_json_to_a_file) {
  const std::string path = scratch_file("layout.json");
  const Outcome outcome = zc("layout " + kData + "tiny-gpt.json -n 2 --stage 2 --json --output " + path);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string text = content_of(path);
  EXPECT_EQ(text, zc("layout " + kData + "tiny-gpt.json -n 2 --stage 2 --json").out);
  EXPECT_EQ(text.find("{\"format\":\"zc.layout\""), 0u);
  EXPECT_NE(text.find("\"stored_count\":29056"), std::string::npos);
  std::remove(path.c_str());
}

TEST(Program, one_rank_can_be_shown_alone) {
  const std::string arguments = "layout " + kData + "odd.json -n 3 --stage 3";
  const std::string whole = zc(arguments).out, plain = zc(arguments + " --rank 2").out;
  EXPECT_EQ(plain.find("rank 2 of 3\n"), 0u);
  EXPECT_NE(plain.find("[0..5) frozen[96..101)"), std::string::npos) << plain;
  EXPECT_EQ(plain.find("rank 1"), std::string::npos);
  const std::string whole_json = zc(arguments + " --json").out, json = zc(arguments + " --rank 2 --json").out;
  const std::string first = "\"pieces\":[[3,5280,0,2639]";
  EXPECT_NE(json.find(first), std::string::npos) << json;
  EXPECT_NE(whole_json.find(first), std::string::npos);
}

TEST(Program, options_reach_the_layout) {
  const std::string arguments = "layout " + kData + "tiny-gpt.json -n 2 --stage 3 --json";
  const std::string text = zc(arguments + " --align 256 --bucket 5000 --persistent 4096").out;
  EXPECT_NE(text.find("\"alignment_bytes\":256,\"bucket_bytes\":5000,\"persistent_bytes\":4096"), std::string::npos);
  EXPECT_NE(text.find("\"name\":\"ln_f\",\"gathered_bytes\":512,\"persistent\":true"), std::string::npos) << text;
}

TEST(Program, estimate_prints_a_row_per_stage) {
  const Outcome count = zc("estimate --params 1048576 -n 8");
  EXPECT_EQ(count.status, 0) << count.err;
  for (const char* bytes : {"18874368", "6291456", "4194304", "2359296", "3670016", "5505024"})
    EXPECT_NE(count.out.find(bytes), std::string::npos) << count.out;
  const std::string model = zc("estimate " + kData + "gpt2-124m.json -n 8 --json").out;
  EXPECT_NE(model.find("{\"stage\":3,\"parameter_bytes\":31109952,"), std::string::npos) << model;
  EXPECT_NE(zc("estimate --params 100 -n 4 --dtype f32 --moments 0 --json").out.find("\"state_bytes\":200"),
            std::string::npos);
}

TEST(Program, wrong_command_lines_end_with_2_and_one_line) {
  const std::string odd = "layout " + kData + "odd.json ";
  expect_refused("", 2, "subcommand");
  expect_refused("frobnicate", 2, "subcommand");
  expect_refused(odd + "-n 2", 2, "--stage");
  expect_refused(odd + "--stage 3", 2, "--ranks");
  expect_refused(odd + "-n 0 --stage 3", 2, "at least 1 rank");
  expect_refused(odd + "-n -3 --stage 3", 2, "at least 1 rank");
  expect_refused(odd + "-n two --stage 3", 2, "--ranks");
  expect_refused(odd + "-n 99999999999 --stage 3", 2, "--ranks");
  expect_refused(odd + "-n 2 --stage 4", 2, "stage 4 does not exist");
  expect_refused(odd + "-n 2 --stage -1", 2, "stage -1 does not exist");
  expect_refused(odd + "-n 2 --stage 3 --frob", 2, "--frob");
  expect_refused(odd + "-n 2 --stage 3 --align 3", 2, "power of two");
  expect_refused(odd + "-n 2 --stage 3 --align 0", 2, "--align 0");
  expect_refused(odd + "-n 2 --stage 3 --bucket 0", 2, "--bucket 0");
  expect_refused(odd + "-n 2 --stage 3 --bucket -5", 2, "--bucket");
  expect_refused(odd + "-n 2 --stage 3 --rank 2", 2, "ranks 0 to 1");
  expect_refused("layout -n 2 --stage 3", 2, "MODEL");
  expect_refused("estimate -n 2", 2, "--params");
  expect_refused("estimate " + kData + "odd.json --params 5 -n 2", 2, "--params");
  expect_refused("estimate --params 5 -n 2 --dtype i8", 2, "--dtype i8");
  expect_refused("estimate --params -5 -n 2", 2, "--params");
  expect_refused("estimate --params 5 -n 2 --micro-steps 0", 2, "--micro-steps 0");
  expect_refused("estimate --params 5 -n 2 --rank 2", 2, "ranks 0 to 1");
}

TEST(Program, files_that_are_no_models_end_with_1_and_one_line) {
  const auto layout_of = [](const std::string& path) { return "layout " + path + " -n 2 --stage 3"; };
  expect_refused(layout_of("/nonexistent.json"), 1, "/nonexistent.json: No such file");
  expect_refused(layout_of(kData), 1, "is a folder");
  expect_refused(layout_of("/dev/null"), 1, "is empty");
  expect_refused(layout_of(ZC_PROGRAM), 1, "not JSON");
  const std::string path = scratch_file("model.json");
  std::ofstream(path)
      << R"({"format":"zc.model","version":1,"params":[{"name":"w","module":"m","shape":[3],"dtype":"f8e4m3"}]})";
  expect_refused(layout_of(path), 1, "tensor 'w' is f8e4m3 and trainable");
  std::ofstream(path)
      << R"({"format":"zc.model","version":1,"params":[{"name":"w","module":"m","shape":[3],"tied_to":"x"}]})";
  expect_refused(layout_of(path), 1, "'w' is tied to 'x'");
  std::remove(path.c_str());
}

TEST(Program, info_says_which_kernels_are_used_and_why) {
  setenv("ZC_KERNELS", "baseline", 1);
  const Outcome asked = zc("info");
  EXPECT_EQ(asked.status, 0);
  EXPECT_NE(asked.out.find("kernels                  baseline  (by ZC_KERNELS)"), std::string::npos) << asked.out;
  setenv("ZC_KERNELS", "mmx", 1);
  const Outcome refused = zc("info");
  EXPECT_EQ(refused.status, 0);
  EXPECT_NE(refused.out.find("cannot be had  (the variable ZC_KERNELS is \"mmx\""), std::string::npos) << refused.out;
  unsetenv("ZC_KERNELS");
}

TEST(Program, output_that_cannot_be_written_ends_with_1_and_one_line) {
  const std::string odd = "layout " + kData + "odd.json -n 2 --stage 3";
  expect_refused(odd + " --output /nonexistent/x", 1, "/nonexistent/x: cannot be written: No such file");
  expect_refused(odd + " --output /", 1, "cannot be written");
  expect_refused(odd + " --output /dev/full", 1, "/dev/full: cannot be written: No space");
  expect_refused(odd + " >/dev/full", 1, "standard output: cannot be written: No space");
  expect_refused("--help >/dev/full", 1, "standard output: cannot be written: No space");
  expect_refused("estimate --params 5 -n 2 --output /dev/full", 1, "No space");
}

}  // namespace
