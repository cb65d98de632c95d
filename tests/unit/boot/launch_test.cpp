// Who started this process: one row per environment.
#include "boot/launch.hpp"

#include "base/check.hpp"

#include <gtest/gtest.h>

#include <map>
#include <ostream>

namespace zerocomm::boot {

bool operator==(const Launch& a, const Launch& b) {
  return a.launcher == b.launcher && a.rank == b.rank && a.ranks == b.ranks && a.local_rank == b.local_rank &&
         a.local_ranks == b.local_ranks && a.job == b.job && a.job_everywhere == b.job_everywhere && a.used == b.used;
}

std::ostream& operator<<(std::ostream& out, const Launch& launch) {
  out << launcher_name(launch.launcher) << ": " << launch.rank << " of " << launch.ranks << ", on the host "
      << launch.local_rank << " of " << launch.local_ranks << ", job \"" << launch.job << "\", everywhere \""
      << launch.job_everywhere << "\", used:";
  for (const std::string& variable : launch.used) out << ' ' << variable;
  return out;
}

namespace {

using Environment = std::map<std::string, std::string>;

constexpr const char* kParent = "hydra_pmi_proxy:17943:1236579";

Launch detect(const Environment& environment, const char* parent = kParent) {
  const auto lookup = [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
  return detect_launch(lookup, [&] { return std::string(parent); });
}

Environment operator+(Environment left, const Environment& right) {
  for (const auto& [name, value] : right) left[name] = value;
  return left;
}

// Of rank 1 of 2, as the launchers set them; Open MPI 4.1.4 and MPICH 4.0.2.
const Environment kZcRun = {
    {"ZC_RANK", "1"}, {"ZC_RANKS", "2"}, {"ZC_LOCAL_RANK", "1"}, {"ZC_LOCAL_RANKS", "2"}, {"ZC_JOB", "8f3a"}};
const Environment kTorchrun = {{"RANK", "1"},
                               {"WORLD_SIZE", "2"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"GROUP_RANK", "0"},
                               {"ROLE_RANK", "1"},
                               {"ROLE_WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_RESTART_COUNT", "0"},
                               {"TORCHELASTIC_MAX_RESTARTS", "3"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Environment kByHand = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"OMPI_COMM_WORLD_NODE_RANK", "1"},
                              {"OMPI_UNIVERSE_SIZE", "2"},
                              {"OMPI_MCA_ess_base_jobid", "688521217"},
                              {"PMIX_ID", "688521217.1"},
                              {"PMIX_NAMESPACE", "688521217"},
                              {"PMIX_RANK", "1"},
                              {"PMIX_SERVER_URI2", "688521216.0;tcp4://127.0.0.1:34857"},
                              {"PMIX_SERVER_URI21", "688521216.0;tcp4://127.0.0.1:34857"}};
const Environment kHydra = {{"PMI_RANK", "1"},        {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"},
                            {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "8"},   {"HYDI_CONTROL_FD", "7"}};

const Launch kZcRunLaunch = {Launcher::zc_run,
                             1,
                             2,
                             1,
                             2,
                             "ZC_JOB=8f3a",
                             "ZC_JOB=8f3a",
                             {"ZC_RANK=1", "ZC_RANKS=2", "ZC_LOCAL_RANK=1", "ZC_LOCAL_RANKS=2", "ZC_JOB=8f3a"}};
const Launch kTorchrunLaunch = {
    Launcher::torchrun,
    1,
    2,
    1,
    2,
    "TORCHELASTIC_RUN_ID=none,TORCHELASTIC_RESTART_COUNT=0,MASTER_ADDR=127.0.0.1,MASTER_PORT=29500",
    "TORCHELASTIC_RUN_ID=none,TORCHELASTIC_RESTART_COUNT=0,MASTER_ADDR=127.0.0.1,MASTER_PORT=29500",
    {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=none",
     "TORCHELASTIC_RESTART_COUNT=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"}};
const Launch kByHandLaunch = {Launcher::torchrun,
                              1,
                              2,
                              1,
                              2,
                              "MASTER_ADDR=127.0.0.1,MASTER_PORT=29500",
                              "MASTER_ADDR=127.0.0.1,MASTER_PORT=29500",
                              {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"}};
const Launch kOpenMpiLaunch = {
    Launcher::open_mpi,
    1,
    2,
    1,
    2,
    "PMIX_NAMESPACE=688521217,PMIX_SERVER_URI2=688521216.0;tcp4://127.0.0.1:34857",
    "PMIX_NAMESPACE=688521217",
    {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
     "PMIX_NAMESPACE=688521217", "PMIX_SERVER_URI2=688521216.0;tcp4://127.0.0.1:34857"}};
const Launch kHydraLaunch = {
    Launcher::hydra, 1, 2, 1, 2, kParent, "", {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"}};

TEST(Launch, without_variables_there_is_no_launcher) {
  EXPECT_EQ(detect({}), Launch{});
  EXPECT_EQ(detect({{"RANK", ""}, {"WORLD_SIZE", ""}, {"LOCAL_RANK", "1"}, {"PMIX_RANK", "0"}, {"MASTER_PORT", "1"}}),
            Launch{});
  EXPECT_EQ(Launch{}.ranks, 0);
  EXPECT_EQ(Launch{}.launcher, Launcher::none);
}

TEST(Launch, each_launcher_is_known_by_its_variables) {
  EXPECT_EQ(detect(kZcRun), kZcRunLaunch);
  EXPECT_EQ(detect(kTorchrun), kTorchrunLaunch);
  EXPECT_EQ(detect(kByHand), kByHandLaunch);
  EXPECT_EQ(detect(kOpenMpi), kOpenMpiLaunch);
  EXPECT_EQ(detect(kHydra), kHydraLaunch);
}

TEST(Launch, names_of_launchers) {
  EXPECT_STREQ(launcher_name(Launcher::none), "no launcher");
  EXPECT_STREQ(launcher_name(Launcher::zc_run), "zc run");
  EXPECT_STREQ(launcher_name(Launcher::torchrun), "torchrun");
  EXPECT_STREQ(launcher_name(Launcher::open_mpi), "Open MPI");
  EXPECT_STREQ(launcher_name(Launcher::hydra), "Hydra (MPICH)");
}

TEST(Launch, inner_launchers_win) {
  const Environment torchrun_elsewhere = kTorchrun + Environment{{"RANK", "5"}, {"WORLD_SIZE", "8"}};
  const Environment mpi_elsewhere = kOpenMpi + Environment{{"OMPI_COMM_WORLD_RANK", "3"}} +
                                    Environment{{"OMPI_COMM_WORLD_SIZE", "not even a number"}};
  EXPECT_EQ(detect(kTorchrun + mpi_elsewhere), kTorchrunLaunch);
  EXPECT_EQ(detect(kTorchrun + kHydra + Environment{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), kTorchrunLaunch);
  EXPECT_EQ(detect(kZcRun + torchrun_elsewhere + mpi_elsewhere + kHydra), kZcRunLaunch);
  EXPECT_EQ(detect(kZcRun + Environment{{"RANK", "x"}}), kZcRunLaunch);
}

TEST(Launch, of_two_that_agree_the_first_of_the_table_counts) {
  EXPECT_EQ(detect(kByHand + kOpenMpi), kByHandLaunch);
  EXPECT_EQ(detect(kByHand + kHydra), kByHandLaunch);
  EXPECT_EQ(detect(kOpenMpi + kHydra), kOpenMpiLaunch);
}

TEST(Launch, incomplete_variables_do_not_count_beside_complete_ones) {
  EXPECT_EQ(detect(kOpenMpi + Environment{{"RANK", "0"}, {"WORLD_SIZE", "7"}}), kOpenMpiLaunch);
  EXPECT_EQ(detect(kHydra + Environment{{"WORLD_SIZE", "x"}}), kHydraLaunch);
  EXPECT_EQ(detect(kByHand + Environment{{"PMI_RANK", "0"}}), kByHandLaunch);
}

TEST(Launch, local_ranks_default_to_all_ranks) {
  Launch launch = detect(kByHand + Environment{{"LOCAL_RANK", "0"}});
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.local_ranks, 2);
  launch = detect(kByHand + Environment{{"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_ranks, 2);
}

TEST(Launch, several_hosts_show_in_the_local_ranks) {
  const Launch launch = detect(
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "9"}});
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.ranks, 4);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_ranks, 2);
}

TEST(Launch, jobs_differ_where_one_of_their_marks_does) {
  const auto job = [](const Environment& environment) { return detect(environment).job; };
  EXPECT_NE(job(kZcRun), job(kZcRun + Environment{{"ZC_JOB", "8f3b"}}));
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    EXPECT_NE(job(kTorchrun), job(kTorchrun + Environment{{name, "other"}})) << name;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
    EXPECT_NE(job(kByHand), job(kByHand + Environment{{name, "other"}})) << name;
  for (const char* name : {"PMIX_NAMESPACE", "PMIX_SERVER_URI2"})
    EXPECT_NE(job(kOpenMpi), job(kOpenMpi + Environment{{name, "other"}})) << name;
}

TEST(Launch, jobs_are_the_same_for_all_ranks) {
  const auto job = [](const Environment& environment) { return detect(environment).job; };
  EXPECT_EQ(job(kZcRun), job(kZcRun + Environment{{"ZC_RANK", "0"}, {"ZC_LOCAL_RANK", "0"}}));
  EXPECT_EQ(job(kTorchrun), job(kTorchrun + Environment{{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"ROLE_RANK", "0"}}));
  EXPECT_EQ(job(kOpenMpi),
            job(kOpenMpi +
                Environment{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"PMIX_RANK", "0"}}));
}

TEST(Launch, the_process_of_the_launcher_is_looked_for_only_where_it_names_the_job) {
  int calls = 0;
  const auto parent = [&] {
    ++calls;
    return std::string(kParent);
  };
  for (const Environment& environment : {Environment{}, kZcRun, kTorchrun, kByHand, kOpenMpi, kOpenMpi + kHydra}) {
    detect_launch(
        [&](const char* name) -> std::optional<std::string> {
          const auto found = environment.find(name);
          return found == environment.end() ? std::nullopt : std::optional(found->second);
        },
        parent);
  }
  EXPECT_EQ(calls, 0);
}

std::string refusal(const Environment& environment, const char* parent = kParent) {
  try {
    const Launch launch = detect(environment, parent);
    ADD_FAILURE() << launch;
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ZC_ARGUMENT);
    return error.what();
  }
}

TEST(Launch, values_that_are_no_numbers_or_out_of_range_are_quoted) {
  for (const char* value : {"2", "-1", "x", "1x", " 1", "+1", "1.0", "99999999999"})
    EXPECT_EQ(refusal(kByHand + Environment{{"RANK", value}}),
              std::string("the variable RANK is \"") + value + "\"; it takes a whole number from 0 to 1");
  for (const char* value : {"0", "-2", "2147483648", "two"})
    EXPECT_EQ(refusal(kOpenMpi + Environment{{"OMPI_COMM_WORLD_SIZE", value}}),
              std::string("the variable OMPI_COMM_WORLD_SIZE is \"") + value +
                  "\"; it takes a whole number from 1 to 2147483647");
  EXPECT_EQ(refusal(kHydra + Environment{{"MPI_LOCALNRANKS", "3"}}),
            "the variable MPI_LOCALNRANKS is \"3\"; it takes a whole number from 1 to 2");
  EXPECT_EQ(refusal(kZcRun + Environment{{"ZC_LOCAL_RANK", "2"}}),
            "the variable ZC_LOCAL_RANK is \"2\"; it takes a whole number from 0 to 1");
}

TEST(Launch, incomplete_variables_are_refused_with_what_is_missing) {
  EXPECT_EQ(refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
            "the variables of torchrun are incomplete: RANK=1, WORLD_SIZE=2 set, but not MASTER_ADDR, MASTER_PORT (or "
            "TORCHELASTIC_RUN_ID)");
  EXPECT_EQ(refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}}),
            "the variables of torchrun are incomplete: RANK=1, WORLD_SIZE=2 set, but not MASTER_PORT (or "
            "TORCHELASTIC_RUN_ID)");
  EXPECT_EQ(refusal({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}}),
            "the variables of torchrun are incomplete: WORLD_SIZE=2 set, but not RANK");
  EXPECT_EQ(refusal(kByHand + Environment{{"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}}),
            "the variables of torchrun are incomplete: RANK=1, WORLD_SIZE=4 set, but not LOCAL_RANK");
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
            "the variables of Open MPI are incomplete: OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=2 set, but not "
            "PMIX_NAMESPACE");
  EXPECT_EQ(refusal({{"PMI_RANK", "0"}}),
            "the variables of Hydra (MPICH) are incomplete: PMI_RANK=0 set, but not PMI_SIZE");
  EXPECT_EQ(refusal({{"RANK", "1"}, {"PMI_RANK", "0"}}),
            "the variables of torchrun are incomplete: RANK=1 set, but not WORLD_SIZE, MASTER_ADDR, MASTER_PORT (or "
            "TORCHELASTIC_RUN_ID)");
}

TEST(Launch, incomplete_variables_of_the_inner_launcher_are_refused_beside_complete_ones) {
  EXPECT_EQ(refusal(kOpenMpi + Environment{{"ZC_RANKS", "2"}}),
            "the variables of zc run are incomplete: ZC_RANKS=2 set, but not ZC_RANK, ZC_JOB");
  EXPECT_EQ(refusal(kOpenMpi + Environment{{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "1"}}),
            "the variables of torchrun are incomplete: RANK=1 set, but not WORLD_SIZE");
}

TEST(Launch, two_that_disagree_are_both_named) {
  EXPECT_EQ(refusal(kByHand + kOpenMpi + Environment{{"OMPI_COMM_WORLD_RANK", "0"}}),
            "torchrun and Open MPI disagree about this process: RANK=1, WORLD_SIZE=2; OMPI_COMM_WORLD_RANK=0, "
            "OMPI_COMM_WORLD_SIZE=2. Unset the variables of the one that did not start it");
  // A second launcher that was started by a rank of the first: rank 0 of 1, and rank 0 of 2.
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "1"},
                     {"PMIX_NAMESPACE", "612892673"},
                     {"PMI_RANK", "0"},
                     {"PMI_SIZE", "2"},
                     {"MPI_LOCALRANKID", "0"},
                     {"MPI_LOCALNRANKS", "2"}}),
            "Open MPI and Hydra (MPICH) disagree about this process: OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=1; "
            "PMI_RANK=0, PMI_SIZE=2. Unset the variables of the one that did not start it");
  // The third one is looked at too.
  EXPECT_EQ(
      refusal(kByHand + kOpenMpi + kHydra + Environment{{"PMI_RANK", "0"}}),
      "torchrun and Hydra (MPICH) disagree about this process: RANK=1, WORLD_SIZE=2; PMI_RANK=0, PMI_SIZE=2. Unset "
      "the variables of the one that did not start it");
}

TEST(Launch, a_launcher_without_a_name_for_the_job_and_without_a_process_is_refused) {
  EXPECT_EQ(refusal(kHydra, ""),
            "Hydra (MPICH) gives its jobs no name, and /proc does not show the process that started this one "
            "(PMI_RANK=1, PMI_SIZE=2)");
}

}  // namespace
}  // namespace zerocomm::boot
