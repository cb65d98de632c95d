/* A rank of an MPI library that zc bench measures. One source, built with each MPI library that is installed. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

static const MPI_Comm kWorld = MPI_COMM_WORLD;

static MPI_Datatype type_of(peer_dtype dtype) {
  switch (dtype) {
    case PEER_F32:
      return MPI_FLOAT;
    case PEER_F64:
      return MPI_DOUBLE;
    case PEER_I32:
      return MPI_INT32_T;
    case PEER_I64:
      return MPI_INT64_T;
  }
  return MPI_DATATYPE_NULL;
}

static const char* prepare(void* state, const peer_call* call) {
  (void)state;
  return call->count > INT_MAX ? "MPI counts elements in an int" : NULL;
}

/* MPI ends the program if something fails. */
static const char* barrier(void* state) {
  (void)state;
  MPI_Barrier(kWorld);
  return NULL;
}

static const char* run(void* state, const peer_call* call) {
  const MPI_Datatype type = type_of(call->dtype);
  const int rank = *(const int*)state, count = (int)call->count, part = (int)call->part;
  const void* source = call->in_place ? MPI_IN_PLACE : call->source;
  switch (call->op) {
    case PEER_ALL_REDUCE:
    case PEER_REDUCE_SCATTER_BY_ALL_REDUCE:
      MPI_Allreduce(source, call->result, count, type, MPI_SUM, kWorld);
      break;
    case PEER_REDUCE_SCATTER:
      MPI_Reduce_scatter_block(source, call->result, part, type, MPI_SUM, kWorld);
      break;
    case PEER_ALL_GATHER:
      MPI_Allgather(source, part, type, call->result, part, type, kWorld);
      break;
    case PEER_BROADCAST:
      MPI_Bcast(call->result, count, type, 0, kWorld);
      break;
    case PEER_REDUCE:
      if (call->in_place && rank != 0) source = call->result;
      MPI_Reduce(source, call->result, count, type, MPI_SUM, 0, kWorld);
      break;
    case PEER_ALL_TO_ALL:
      MPI_Alltoall(source, part, type, call->result, part, type, kWorld);
      break;
    case PEER_BARRIER:
      MPI_Barrier(kWorld);
      break;
  }
  return NULL;
}

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2"; with what Open MPI was told to move messages by. */
static void write_version(char* text, size_t text_bytes) {
  char full[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(full, &length);
  full[strcspn(full, "\n,")] = '\0';
  for (char* at = strchr(full, '\t'); at != NULL; at = strchr(at, '\t')) *at = ' ';
  const char* way = getenv("OMPI_MCA_pml");
  snprintf(text, text_bytes, "%s%s%s", full, way != NULL ? ", pml " : "", way != NULL ? way : "");
}

int main(int argc, char** argv) {
  peer_options options;
  char version[MPI_MAX_LIBRARY_VERSION_STRING + 64];
  int rank = 0;
  peer_read_options(argc, argv, 0, &options);
  const int driver = peer_connect(options.socket_name);
  if (driver < 0) return 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(kWorld, &rank);
  write_version(version, sizeof version);
  peer_library library;
  memset(&library, 0, sizeof library);
  library.version = version;
  library.rank = rank;
  MPI_Comm_size(kWorld, &library.ranks);
  library.state = &rank;
  library.prepare = prepare;
  library.run = run;
  library.barrier = barrier;
  const peer_ending ending = peer_serve(driver, options.group, &library);
  if (ending == PEER_FAILED) MPI_Abort(kWorld, 1);
  /* Without a driver it is not sure that the others end as well: then SIGALRM ends this rank, and the launcher the
   * rest. */
  if (ending == PEER_GONE) alarm(2);
  MPI_Finalize();
  return 0;
}
