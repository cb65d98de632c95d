/**
 * A key-value store of the caller, over which the ranks of a communicator find each other.
 *
 * A framework that has a store of its own (torch's TCPStore, one over MPI, etcd) hands it over as four functions. Then no port,
 * no key file and no launcher is needed: what the store keeps away, the library does not see.
 */
#ifndef ZEROCOMM_STORE_H
#define ZEROCOMM_STORE_H

#include <zerocomm/types.h>

ZC_BEGIN_DECLS

/** Room that every key and value fits into. Keys are made of letters, digits and '/'. */
#define ZC_STORE_KEY_BYTES 128
#define ZC_STORE_VALUE_BYTES 4096

/**
 * The functions, and what they get as their first argument. The caller sets struct_size.
 *
 * All are called by the thread that is in zc_comm_create, one at a time, under no lock of the library, and not after it has
 * returned. None may wait for another rank: a wait inside of them is one that no deadline ends. A status other than those named
 * here ends the creation with TRANSPORT, with the key and the status in the text.
 */
typedef struct zc_store {
  size_t struct_size;
  void *context;
  /** Set a key, in place of what it had. What was put by one rank is seen by the others some time later. */
  zc_status (*put)(void *context, const char *key, const void *value, size_t value_bytes);
  /** Look a key up: ZC_OK with *value_bytes set, or ZC_AGAIN if it is not there (yet). No value is larger than
   *  ZC_STORE_VALUE_BYTES, which is capacity_bytes; of a longer one that somebody else put there, return ZC_AGAIN too. */
  zc_status (*get)(void *context, const char *key, void *value, size_t capacity_bytes, size_t *value_bytes);
  /** Forget a key. One that is not there is no error. Errors are logged, and end nothing. */
  zc_status (*remove)(void *context, const char *key);
  /** Called every few milliseconds until all ranks have joined: lets the caller's own runtime go on, where that makes progress
   *  inside of its calls alone. A rank that is already in zc_comm_create then still serves one that is not. May be NULL. */
  zc_status (*progress)(void *context);
} zc_store;

ZC_END_DECLS

#endif
