/**
 * Requests: collectives, sends and receives in flight.
 *
 * A call with options->request returns at once. What it was given (buffers, and of the reductions also the output) belongs to the
 * library until the request is over; arrays of counts were copied.
 *
 * Requests are matched by key, not by the order of calls: the n-th request of a tag meets the n-th request of that tag on the
 * other ranks. Requests of different tags may be made in different orders on different ranks, and beside blocking
 * calls. The same key with other arguments is MISMATCH on all its ranks, and the communicator lives. A key that some rank never
 * brings is TIMEOUT: the text names tag, turn and rank.
 *
 * Nothing moves by itself, unless the communicator has a helper thread (zc_comm_config.helper_thread): requests advance inside
 * zc_request_test and zc_request_wait, and whenever any call of the process waits. Small requests go first, and large ones
 * advance by slices, so that a small one never waits for a large one to be over.
 *
 * A rank may have zc_comm_config.requests of them at once; one more is AGAIN, and nothing happened. A request that is over counts
 * until all its ranks have seen that, each in a call of its own: who makes many, faster than others look, tries again after AGAIN.
 * One that was canceled counts until all its ranks have come to it or have left.
 *
 * Tags are remembered: each that was ever used costs some 70 bytes, taken when it is used for the first time. Few tags used
 * many times cost nothing after that.
 *
 * zc_comm_destroy ends the requests of its rank with STATE. Each still has to be waited for, or tested: that frees it, and with
 * the last of them the rest of the communicator.
 */
#ifndef ZEROCOMM_REQUEST_H
#define ZEROCOMM_REQUEST_H

#include <zerocomm/coll.h>

ZC_BEGIN_DECLS

/** One call in flight. Freed by the call that reports its end. */
typedef struct zc_request zc_request;

/**
 * Is it over? Never waits.
 *
 * Result     *done 1: *request is NULL from here on, and what is returned is how the operation ended. *done 0: ZC_OK.
 *            *request NULL: *done 1, ZC_OK.
 * Errors     Those of the operation. TIMEOUT when its deadline has passed.
 * Threads    Any; one at a time for one request.
 */
ZC_API ZC_NODISCARD zc_status zc_request_test(zc_request **request, int32_t *done);

/**
 * Wait until it is over. *request is NULL afterwards. NULL there is ZC_OK.
 *
 * Errors     Those of the operation. TIMEOUT: its deadline, counted from the call that made it, has passed while this rank was
 *            waiting for others. A wait that begins later than that ends well what has come, and gives up at once what has not.
 * Threads    Any; one at a time for one request.
 */
ZC_API ZC_NODISCARD zc_status zc_request_wait(zc_request **request);

/** zc_request_wait for `count` requests, in any order. All are over afterwards; the first error is returned. */
ZC_API ZC_NODISCARD zc_status zc_request_wait_all(zc_request **requests, size_t count);

/**
 * Take a request back before it is matched: if some rank of it has not come yet, it moves no byte on any rank, and all its
 * ranks get CANCELED, those that come later as well. Local.
 *
 * Result     ZC_OK: canceled, *request is NULL. STATE: all ranks have come, it goes on; wait for it as usual.
 * Threads    Any; one at a time for one request.
 */
ZC_API ZC_NODISCARD zc_status zc_request_cancel(zc_request **request);

ZC_END_DECLS

#endif
