// Slurm's variables: lists, and who a task of a step is.
#include "boot/slurm.hpp"
#include "boot/launch.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

#include <map>

namespace zerocomm::boot {
namespace {

TEST(SlurmTasks, of_each_node_are_listed_with_repetitions) {
  const auto on_node = [](const char* text, std::int64_t node) { return slurm_tasks(text, node)->on_node; };
  EXPECT_EQ(on_node("4", 0), 4);
  EXPECT_EQ(on_node("4", 1), 0);
  for (const std::int64_t node : {0, 1, 2}) EXPECT_EQ(on_node("2(x3),1", node), 2);
  EXPECT_EQ(on_node("2(x3),1", 3), 1);
  EXPECT_EQ(on_node("2(x3),1", 4), 0);
  EXPECT_EQ(on_node("5,4(x3),1(x2)", 0), 5);
  EXPECT_EQ(on_node("5,4(x3),1(x2)", 3), 4);
  EXPECT_EQ(on_node("5,4(x3),1(x2)", 5), 1);
  EXPECT_EQ(slurm_tasks("5,4(x3),1(x2)", 0)->nodes, 6);
  EXPECT_EQ(slurm_tasks("5,4(x3),1(x2)", 0)->tasks, 19);
}

TEST(SlurmTasks, of_another_form_are_none) {
  for (const char* text : {"", "x", "0", "-1", "2(", "2(x", "2(x)", "2(x0)", "2(x3", "2(x3)1", "2,", ",2", "2, 1",
                           "2(3)", "99999999999", "2147483647(x2)"})
    EXPECT_FALSE(slurm_tasks(text, 0)) << text;
}

TEST(SlurmHosts, the_first_is_found_in_every_form) {
  EXPECT_EQ(slurm_first_host("login"), "login");
  EXPECT_EQ(slurm_first_host("a,b,c"), "a");
  EXPECT_EQ(slurm_first_host("node[003-005,7],login"), "node003");
  EXPECT_EQ(slurm_first_host("node[7,003-005]"), "node7");
  EXPECT_EQ(slurm_first_host("rack[1-2]node[4,6]-ib,z"), "rack1node4-ib");
  EXPECT_EQ(slurm_first_host("node[1-2"), "");
  EXPECT_EQ(slurm_first_host(""), "");
}

TEST(SlurmPorts, the_first_is_found) {
  EXPECT_EQ(slurm_first_port("12000"), 12000);
  EXPECT_EQ(slurm_first_port("12000-12003"), 12000);
  EXPECT_EQ(slurm_first_port("12000,12003"), 12000);
  for (const char* text : {"", "x", "0", "65536", "12000x"}) EXPECT_EQ(slurm_first_port(text), std::nullopt) << text;
}

using Environment = std::map<std::string, std::string>;

Environment operator+(Environment left, const Environment& right) {
  for (const auto& [name, value] : right) left[name] = value;
  return left;
}

Launch detect(const Environment& environment) {
  const auto lookup = [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
  return detect_launch(lookup, [] { return std::string("slurmstepd:1:1"); });
}

std::string refusal(const Environment& environment) {
  try {
    detect(environment);
    ADD_FAILURE();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_ARGUMENT);
    return error.what();
  }
}

// Task 5 of 7, on the last of four nodes... of a job that was asked for 16 tasks.
const Environment kBatch = {{"SLURM_JOB_ID", "4711"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"},
                            {"SLURM_LOCALID", "0"},   {"SLURM_NODEID", "0"}, {"SLURM_TASKS_PER_NODE", "4(x4)"}};
const Environment kStep = kBatch + Environment{{"SLURM_STEP_ID", "2"},        {"SLURM_PROCID", "5"},
                                               {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                                               {"SLURM_NODEID", "2"},         {"SLURM_LOCALID", "1"}};

TEST(Slurm, tells_a_task_of_a_step_who_it_is) {
  const Launch launch = detect(kStep);
  EXPECT_EQ(launch.launcher, Launcher::slurm);
  EXPECT_STREQ(launcher_name(launch.launcher), "Slurm");
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.ranks, 7);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_ranks, 2);
  EXPECT_EQ(launch.job, "SLURM_JOB_ID=4711,SLURM_STEP_ID=2");
  EXPECT_EQ(launch.job_everywhere, launch.job);
  EXPECT_EQ(launch.used,
            (std::vector<std::string>{"SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=7", "SLURM_LOCALID=1", "SLURM_NODEID=2",
                                      "SLURM_STEP_TASKS_PER_NODE=2(x3),1", "SLURM_JOB_ID=4711", "SLURM_STEP_ID=2"}));
}

TEST(Slurm, says_nothing_to_a_batch_script) { EXPECT_EQ(detect(kBatch).launcher, Launcher::none); }

TEST(Slurm, of_an_older_version_has_the_number_of_tasks_elsewhere) {
  const Launch launch = detect(kStep + Environment{{"SLURM_STEP_NUM_TASKS", ""}, {"SLURM_NTASKS", "7"}});
  EXPECT_EQ(launch.ranks, 7);
  EXPECT_EQ(launch.used[1], "SLURM_NTASKS=7");
}

TEST(Slurm, that_does_not_list_tasks_has_one_host) {
  EXPECT_EQ(detect(kStep + Environment{{"SLURM_STEP_TASKS_PER_NODE", ""}}).local_ranks, 7);
}

TEST(Slurm, steps_of_one_job_are_jobs_of_their_own) {
  EXPECT_NE(detect(kStep).job, detect(kStep + Environment{{"SLURM_STEP_ID", "3"}}).job);
  EXPECT_NE(detect(kStep).job, detect(kStep + Environment{{"SLURM_JOB_ID", "4712"}}).job);
}

TEST(Slurm, that_contradicts_itself_is_refused) {
  EXPECT_EQ(refusal(kStep + Environment{{"SLURM_STEP_TASKS_PER_NODE", "2x3"}}),
            "the variable SLURM_STEP_TASKS_PER_NODE is \"2x3\"; it takes a list such as 2(x3),1");
  EXPECT_EQ(refusal(kStep + Environment{{"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}}),
            "the variable SLURM_STEP_TASKS_PER_NODE is \"2(x3)\": 6 ranks on 3 hosts; that does not go with "
            "SLURM_STEP_NUM_TASKS=7 and SLURM_NODEID=2");
  EXPECT_EQ(refusal(kStep + Environment{{"SLURM_NODEID", "4"}}),
            "the variable SLURM_STEP_TASKS_PER_NODE is \"2(x3),1\": 7 ranks on 4 hosts; that does not go with "
            "SLURM_STEP_NUM_TASKS=7 and SLURM_NODEID=4");
  EXPECT_EQ(refusal(kStep + Environment{{"SLURM_LOCALID", "2"}}),
            "the variable SLURM_LOCALID is \"2\"; it takes a whole number from 0 to 1");
  EXPECT_EQ(refusal(kStep + Environment{{"SLURM_NODEID", ""}}),
            "the variables of Slurm are incomplete: SLURM_PROCID=5, SLURM_STEP_NUM_TASKS=7 set, but not SLURM_NODEID");
}

const Environment kRanks = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};

// One task of a step per host, which starts torchrun or a script like it.
TEST(Slurm, yields_to_torchrun_inside_a_step) {
  EXPECT_EQ(detect(kStep + kRanks).launcher, Launcher::torchrun);
  EXPECT_EQ(detect(kStep + kRanks + Environment{{"TORCHELASTIC_RUN_ID", "none"}}).launcher, Launcher::torchrun);
  EXPECT_EQ(detect(kStep + Environment{{"RANK", "1"}}).launcher, Launcher::slurm);  // incomplete ones do not count
}

TEST(Slurm, and_another_that_disagree_are_both_named) {
  EXPECT_EQ(refusal(kStep + Environment{{"OMPI_COMM_WORLD_RANK", "0"},
                                        {"OMPI_COMM_WORLD_SIZE", "4"},
                                        {"PMIX_NAMESPACE", "612892673"}}),
            "Slurm and Open MPI disagree about this process: SLURM_PROCID=5, SLURM_STEP_NUM_TASKS=7; "
            "OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=4. Unset the variables of the one that did not start it");
  // srun --mpi=pmi2: the variables of both, and they agree.
  EXPECT_EQ(detect(kStep + Environment{{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}}).launcher, Launcher::slurm);
}

TEST(Launch, the_name_of_a_job_on_all_hosts_has_nothing_of_one_host) {
  EXPECT_EQ(detect(kRanks).job_everywhere, "MASTER_ADDR=n1,MASTER_PORT=29500");
  EXPECT_EQ(detect({{"OMPI_COMM_WORLD_RANK", "0"},
                    {"OMPI_COMM_WORLD_SIZE", "1"},
                    {"PMIX_NAMESPACE", "7"},
                    {"PMIX_SERVER_URI2", "7.0;tcp4://10.0.0.1:3"}})
                .job_everywhere,
            "PMIX_NAMESPACE=7");
  EXPECT_EQ(detect({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).job_everywhere, "");
}

}  // namespace
}  // namespace zerocomm::boot
