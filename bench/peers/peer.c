/* Speaks with the driver, and measures. */
#define _GNU_SOURCE
#include "peer.h"

#include "peer_data.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Memory of a run is kept for the next one up to this; all groups of a job live at the same time. */
static const size_t kKeptBytes = (size_t)16 << 20;

typedef struct request {
  peer_call call;
  int loop;
  int warmup;
  int iterations;
  int check;
} request;

typedef struct memory {
  char* at;
  size_t bytes;
} memory;

typedef struct server {
  int driver;
  const peer_library* library;
  char line[512]; /* what has come and is not answered yet */
  size_t held;
  memory source, result;
} server;

typedef struct name {
  const char* text;
  int value;
} name;

static const name kOps[] = {{"all_reduce", PEER_ALL_REDUCE},
                            {"reduce_scatter", PEER_REDUCE_SCATTER},
                            {"reduce_scatter_by_all_reduce", PEER_REDUCE_SCATTER_BY_ALL_REDUCE},
                            {"all_gather", PEER_ALL_GATHER},
                            {"broadcast", PEER_BROADCAST},
                            {"reduce", PEER_REDUCE},
                            {"all_to_all", PEER_ALL_TO_ALL},
                            {"barrier", PEER_BARRIER},
                            {NULL, 0}};
static const name kDtypes[] = {{"f32", PEER_F32}, {"f64", PEER_F64}, {"i32", PEER_I32}, {"i64", PEER_I64}, {NULL, 0}};
static const name kPlaces[] = {{"out", 0}, {"in", 1}, {NULL, 0}};
/* Neither MPI nor Gloo tells kinds of memory apart. */
static const name kMemories[] = {{"registered", 0}, {"plain", 0}, {NULL, 0}};
static const name kTimings[] = {{"fresh", 0}, {"loop", 1}, {NULL, 0}};

static int value_of(const name* names, const char* text) {
  for (; names->text != NULL; ++names)
    if (strcmp(names->text, text) == 0) return names->value;
  return -1;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the command line and the socket */

void peer_read_options(int argc, char** argv, int with_ranks, peer_options* options) {
  const char* ranks = with_ranks ? " --ranks RANKS" : "";
  memset(options, 0, sizeof *options);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--socket") == 0) options->socket_name = argv[i + 1];
    if (strcmp(argv[i], "--group") == 0) options->group = argv[i + 1];
    if (with_ranks && strcmp(argv[i], "--ranks") == 0) options->ranks = atoi(argv[i + 1]);
  }
  if (argc == (with_ranks ? 7 : 5) && options->socket_name != NULL && options->group != NULL &&
      (options->ranks > 0 || !with_ranks))
    return;
  fprintf(stderr,
          "usage: %s --socket NAME --group GROUP%s\nzc bench starts this program; it is a rank that it measures\n",
          argv[0], ranks);
  exit(2);
}

int peer_connect(const char* socket_name) {
  struct sockaddr_un address;
  struct ucred other;
  socklen_t other_bytes = sizeof other;
  const size_t characters = strlen(socket_name);
  const int driver = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (driver < 0 || characters + 1 > sizeof address.sun_path) {
    fprintf(stderr, "peer: no socket for '%s': %s\n", socket_name,
            driver < 0 ? strerror(errno) : "the name is too long");
    return -1;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  memcpy(address.sun_path + 1, socket_name, characters);
  const socklen_t address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + characters);
  int refused = connect(driver, (const struct sockaddr*)&address, address_bytes) != 0;
  int reason = errno;
  if (!refused && (getsockopt(driver, SOL_SOCKET, SO_PEERCRED, &other, &other_bytes) != 0 || other.uid != geteuid())) {
    refused = 1;
    reason = EPERM;
  }
  if (!refused) return driver;
  fprintf(stderr, "peer: no driver at the abstract socket '%s': %s\n", socket_name, strerror(reason));
  close(driver);
  return -1;
}

/* 0, or -1 if nobody is there. */
static int send_all(int driver, const char* text, size_t characters) {
  while (characters > 0) {
    const ssize_t sent = send(driver, text, characters, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return -1;
    text += sent;
    characters -= (size_t)sent;
  }
  return 0;
}

static int say(const server* self, const char* format, ...) __attribute__((format(printf, 2, 3)));
static int say(const server* self, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int characters = vsnprintf(text, sizeof text - 1, format, arguments);
  va_end(arguments);
  size_t used = characters < 0 ? 0 : (size_t)characters;
  if (used > sizeof text - 2) used = sizeof text - 2;
  for (size_t i = 0; i < used; ++i)
    if (text[i] == '\n') text[i] = ' ';
  text[used] = '\n';
  return send_all(self->driver, text, used + 1);
}

/* "WORD N n1 n2 ... nN" */
static int say_numbers(const server* self, const char* word, const int64_t* numbers, int count) {
  const size_t room = 64 + (size_t)count * 21;
  char* text = malloc(room);
  if (text == NULL) return -1;
  size_t used = (size_t)snprintf(text, room, "%s %d", word, count);
  for (int i = 0; i < count; ++i) used += (size_t)snprintf(text + used, room - used, " %" PRId64, numbers[i]);
  text[used++] = '\n';
  const int failed = send_all(self->driver, text, used);
  free(text);
  return failed;
}

/* The next line, without its end, in `line`. 0, or -1 if none will come. */
static int next_line(server* self, char* line) {
  for (;;) {
    char* end = memchr(self->line, '\n', self->held);
    if (end != NULL) {
      const size_t used = (size_t)(end - self->line) + 1;
      memcpy(line, self->line, used);
      line[used - 1] = '\0';
      self->held -= used;
      memmove(self->line, self->line + used, self->held);
      return 0;
    }
    if (self->held == sizeof self->line) return -1; /* nobody who knows the protocol */
    const ssize_t come = recv(self->driver, self->line + self->held, sizeof self->line - self->held, 0);
    if (come < 0 && errno == EINTR) continue;
    if (come <= 0) return -1;
    self->held += (size_t)come;
  }
}

/* ---- one run */

/* Reads "run ..." into `asked`. Returns NULL, or the answer that says why not. */
static const char* read_request(const char* line, int ranks, request* asked) {
  char op[64], dtype[16], place[16], kind[16], timing[16];
  unsigned long long count = 0;
  int used = 0;
  memset(asked, 0, sizeof *asked);
  if (sscanf(line, "run %63s %15s %llu %15s %15s %15s %d %d %d%n", op, dtype, &count, place, kind, timing,
             &asked->warmup, &asked->iterations, &asked->check, &used) != 9)
    return "error a request that cannot be read";
  if (line[used] != '\0') return "unsupported sums from or to rank 0, cut evenly, are all that is measured here";
  const int op_value = value_of(kOps, op), dtype_value = value_of(kDtypes, dtype);
  asked->call.in_place = value_of(kPlaces, place);
  asked->loop = value_of(kTimings, timing);
  if (asked->call.in_place < 0 || asked->loop < 0 || value_of(kMemories, kind) < 0)
    return "error a placement, memory or timing that is not known";
  if (asked->warmup < 0 || asked->iterations < 1 || asked->iterations > 10000000)
    return "error a number of iterations that cannot be";
  if (op_value < 0) return "unsupported no such operation";
  if (dtype_value < 0) return "unsupported no such type";
  asked->call.op = (peer_op)op_value;
  asked->call.dtype = (peer_dtype)dtype_value;
  asked->call.count = (size_t)count;
  asked->call.part = asked->call.count / (size_t)ranks;
  if (asked->call.part * (size_t)ranks != asked->call.count && asked->call.op != PEER_ALL_REDUCE &&
      asked->call.op != PEER_BROADCAST && asked->call.op != PEER_REDUCE)
    return "error a count that the ranks do not divide";
  if (count > (unsigned long long)1 << 40) return "error a count beyond all memory";
  return NULL;
}

static void give_back(memory* block) {
  if (block->at != NULL) munmap(block->at, block->bytes);
  block->at = NULL;
  block->bytes = 0;
}

/* `bytes` of touched memory, on a boundary of a page; it comes from the kernel as that of a large malloc() does. */
static void* take(memory* block, size_t bytes) {
  if (bytes > block->bytes) {
    give_back(block);
    void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    block->at = at;
    block->bytes = bytes;
    memset(at, 0, bytes);
  }
  return block->at;
}

static int take_buffers(server* self, peer_call* call) {
  const size_t element_bytes = peer_dtype_bytes(call->dtype);
  const size_t result_bytes = peer_result_count(call) * element_bytes;
  size_t source_bytes = peer_source_count(call) * element_bytes;
  if (call->op == PEER_BROADCAST) call->in_place = 1;
  if (call->in_place) source_bytes = 0;
  if (source_bytes > 0) call->source = take(&self->source, source_bytes);
  if (result_bytes > 0) call->result = take(&self->result, result_bytes);
  return (source_bytes > 0 && call->source == NULL) || (result_bytes > 0 && call->result == NULL) ? -1 : 0;
}

/* Every iteration on its own: new data, all ranks ready, the clock. Returns NULL, or what failed. */
static const char* measure_fresh(const peer_library* library, const request* asked, int64_t* times, int64_t* arrivals,
                                 int64_t* wrong) {
  const peer_call* call = &asked->call;
  for (int i = -asked->warmup; i < asked->iterations; ++i) {
    const int number = i + asked->warmup;
    peer_write_source(call, library->rank, number);
    const char* failure = library->barrier(library->state);
    if (failure != NULL) return failure;
    const int64_t start = now_ns();
    failure = library->run(library->state, call);
    const int64_t end = now_ns();
    if (failure != NULL) return failure;
    const int exact = peer_result_is_exact(call, library->rank, library->ranks, number);
    if (i < 0) continue;
    times[i] = end - start;
    arrivals[i] = start;
    *wrong += asked->check && !exact;
  }
  return NULL;
}

/* Back to back on data that stay; their result is looked at once, in an iteration after the clock has stopped. */
static const char* measure_loop(const peer_library* library, const request* asked, int64_t* times, int64_t* arrivals,
                                int64_t* wrong) {
  const peer_call* call = &asked->call;
  peer_write_source(call, library->rank, 0);
  const char* failure = NULL;
  for (int i = 0; i < asked->warmup && failure == NULL; ++i) failure = library->run(library->state, call);
  if (failure == NULL) failure = library->barrier(library->state);
  const int64_t start = now_ns();
  for (int i = 0; i < asked->iterations && failure == NULL; ++i) failure = library->run(library->state, call);
  const int64_t end = now_ns();
  times[0] = (end - start + asked->iterations / 2) / asked->iterations;
  arrivals[0] = start;
  if (failure != NULL || !asked->check) return failure;
  failure = library->barrier(library->state);
  peer_write_source(call, library->rank, 1);
  if (failure == NULL) failure = library->barrier(library->state);
  if (failure == NULL) failure = library->run(library->state, call);
  *wrong = !peer_result_is_exact(call, library->rank, library->ranks, 1);
  return failure;
}

/* Returns NULL, or why this rank is of no more use. */
static const char* measure(server* self, request* asked) {
  const peer_library* library = self->library;
  const int count = asked->loop ? 1 : asked->iterations;
  int64_t *times = calloc(2 * (size_t)count, sizeof *times), wrong = 0;
  const char* failure = "there is not enough memory";
  if (times == NULL) return failure;
  if (take_buffers(self, &asked->call) == 0) {
    const char* reason = library->prepare(library->state, &asked->call);
    if (reason != NULL) {
      free(times);
      return say(self, "unsupported %s", reason) != 0 ? "the driver is gone" : NULL;
    }
    failure = (asked->loop ? measure_loop : measure_fresh)(library, asked, times, times + count, &wrong);
    /* Nothing may be under way inside the library while the rank sleeps. */
    if (failure == NULL) failure = library->barrier(library->state);
    if (library->forget != NULL) library->forget(library->state);
  }
  if (failure == NULL &&
      (say_numbers(self, "times", times, count) != 0 || say_numbers(self, "arrive", times + count, count) != 0 ||
       say(self, "check %" PRId64, wrong) != 0))
    failure = "the driver is gone";
  free(times);
  if (self->source.bytes + self->result.bytes > kKeptBytes) {
    give_back(&self->source);
    give_back(&self->result);
    malloc_trim(0); /* what the library keeps is asked for again in the warm-up of the next run */
  }
  return failure;
}

peer_ending peer_serve(int driver, const char* group, const peer_library* library) {
  server self;
  char line[sizeof self.line];
  peer_ending ending = PEER_GONE;
  memset(&self, 0, sizeof self);
  self.driver = driver;
  self.library = library;
  if (say(&self, "hello %s %d %d %s", group, library->rank, library->ranks, library->version) != 0) return PEER_GONE;
  while (next_line(&self, line) == 0) {
    request asked;
    if (strcmp(line, "quit") == 0) {
      ending = PEER_QUIT;
      break;
    }
    const char* answer = read_request(line, library->ranks, &asked);
    if (answer != NULL) {
      if (say(&self, "%s", answer) != 0) break;
      continue;
    }
    const char* failure = measure(&self, &asked);
    if (failure != NULL) {
      say(&self, "error %s", failure);
      ending = PEER_FAILED;
      break;
    }
  }
  give_back(&self.source);
  give_back(&self.result);
  return ending;
}
